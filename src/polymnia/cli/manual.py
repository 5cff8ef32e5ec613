"""The manual page, in the language of man(7), made from the parser."""

from collections.abc import Iterator

from polymnia.cli.grammar import Argument, Command, Option


def manual_page(root: Command, version: str) -> str:
    """Return the text of polymnia(1)."""
    commands: list[str] = []
    for command in root.actions:
        commands += _command(command, f"polymnia {command.name}")
    lines = [
        f'.TH POLYMNIA 1 "" "polymnia {version}" "User Commands"',
        ".SH NAME",
        r"polymnia \- the memory server for AI agents",
        ".SH SYNOPSIS",
        ".B polymnia",
        "COMMAND [OPTIONS]",
        ".SH DESCRIPTION",
        _escape(root.description),
        ".SH COMMANDS",
        *commands,
        ".SH EXIT STATUS",
        "0 for success, 1 for a failure, a search without a hit or a store that is not sound, "
        "2 for wrong arguments.",
        ".SH FILES",
        ".TP",
        r"\fI~/.local/share/polymnia/workspaces\fR",
        "The memory, unless another store is named: "
        "a workspace for each project, and a personal one.",
        ".TP",
        r"\fI~/.config/polymnia/config.toml\fR",
        "Settings. Environment variables that start with POLYMNIA_ go before it, "
        "and options before both.",
    ]
    return "\n".join(lines) + "\n"


def _command(command: Command, name: str) -> Iterator[str]:
    if command.actions:
        for action in command.actions:
            yield from _command(action, f"{name} {action.name}")
        return
    usage = " ".join([name, *map(_usage, command.arguments)])
    yield f".SS {_escape(usage)}"
    yield _escape(f"{command.help[:1].upper()}{command.help[1:]}.")
    for argument in command.arguments:
        yield from (
            ".TP",
            rf"\fI{_escape(argument.metavar)}\fR",
            _escape(argument.help or "See above."),
        )
    for option in command.options:
        yield from (".TP", _flags(option), _escape(option.help))


def _usage(argument: Argument) -> str:
    usage = argument.metavar
    if argument.is_repeated:
        usage = f"{usage}..."
    if argument.is_optional:
        usage = f"[{usage}]"
    return usage


def _flags(option: Option) -> str:
    value = ""
    if option.metavar:
        value = rf" \fI{_escape(option.metavar)}\fR"
    return ", ".join(rf"\fB{_escape(flag)}\fR{value}" for flag in option.flags)


def _escape(text: str) -> str:
    """Return text for troff: hyphens that can be copied, and no line that looks like a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    lines = []
    for line in escaped.split("\n"):
        if line.startswith((".", "'")):
            line = rf"\&{line}"
        lines.append(line)
    return "\n".join(lines)
