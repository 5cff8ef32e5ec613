"""`polymnia completion`: print a script that lets bash, zsh or fish complete commands and options."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from polymnia.cli.grammar import Command, Option, read_grammar
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_DESCRIPTION = """\
Print a completion script. To load it in every shell:

  bash:  cd ~/.local/share/bash-completion/completions
         polymnia completion bash > polymnia
  zsh:   polymnia completion zsh > ~/.zfunc/_polymnia   (a directory in fpath)
  fish:  polymnia completion fish > ~/.config/fish/completions/polymnia.fish
"""


def add_completion(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell")
    return parser


def run_completion(settings: Settings, options: argparse.Namespace) -> int:
    """Print the script."""
    from polymnia.cli.main import build_parser

    print(SHELLS[options.shell](read_grammar(build_parser())), end="")
    return 0


def bash_script(root: Command) -> str:
    """Return a script for bash: words by the commands before the cursor, values by the option before it."""
    cases, values = [], []
    for path, command in _walk(root):
        words = [action.name for action in command.actions] + [
            flag for option in command.options for flag in option.flags
        ]
        words += [choice for argument in command.arguments for choice in argument.choices]
        cases.append(f'    "{" ".join(path)}") words="{" ".join(words)}" ;;')
        for option in command.options:
            if option.metavar:
                flags = "|".join(f'"{" ".join(path)}:{flag}"' for flag in option.flags)
                reply = (
                    f'$(compgen -W "{" ".join(option.choices)}" -- "$current")'
                    if option.choices
                    else ""
                )
                files = "" if option.choices else "compopt -o default; "
                values.append(f"    {flags}) {files}COMPREPLY=({reply}); return ;;")
    return _BASH.format(cases="\n".join(cases), values="\n".join(values), paths=_paths(root))


def zsh_script(root: Command) -> str:
    """Return a script for zsh."""
    functions = "\n".join(_zsh_function(path, command) for path, command in _walk(root))
    return f'#compdef polymnia\n\n{functions}\n_polymnia "$@"\n'


def fish_script(root: Command) -> str:
    """Return a script for fish."""
    lines = ["# Completions of polymnia."]
    for path, command in _walk(root):
        condition = shlex.quote(_fish_condition(path, command))
        for action in command.actions:
            lines.append(
                f"complete -c polymnia -f -n {condition} -a {action.name} -d {shlex.quote(action.help)}"
            )
        for argument in command.arguments:
            if argument.choices:
                lines.append(
                    f"complete -c polymnia -f -n {condition} -a {shlex.quote(' '.join(argument.choices))}"
                )
        lines += [
            f"complete -c polymnia -n {condition} {_fish_option(option)}"
            for option in command.options
        ]
    return "\n".join(lines) + "\n"


SHELLS: dict[str, Callable[[Command], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}

_BASH = """\
# Completions of polymnia.
_polymnia() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" path="" words="" index
    for ((index = 1; index < COMP_CWORD; index++)); do
        case " {paths} " in
        *" ${{path:+${{path// /,}},}}${{COMP_WORDS[index]}} "*) path="${{path:+$path }}${{COMP_WORDS[index]}}" ;;
        esac
    done
    case "$path:$before" in
{values}
    esac
    case "$path" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ ${{#COMPREPLY[@]}} -eq 0 ]] && compopt -o default
}}
complete -F _polymnia polymnia
"""


def _walk(
    command: Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield every command with the words that lead to it."""
    yield path, command
    for action in command.actions:
        yield from _walk(action, (*path, action.name))


def _paths(root: Command) -> str:
    return " ".join(",".join(path) for path, _ in _walk(root) if path)


def _zsh_function(path: Sequence[str], command: Command) -> str:
    name = "_".join(("_polymnia", *path))
    options = " \\\n        ".join(_zsh_option(option) for option in command.options)
    if not command.actions:
        arguments = [
            f"'{'*' if argument.is_repeated else ''}:{argument.metavar}:{_zsh_values(argument.choices)}'"
            for argument in command.arguments
        ]
        return f"{name}() {{\n    _arguments \\\n        {' '.join([options, *arguments])}\n}}\n"
    described = " ".join(shlex.quote(f"{action.name}:{action.help}") for action in command.actions)
    cases = "\n".join(
        f"            {action.name}) {name}_{action.name} ;;" for action in command.actions
    )
    return f"""{name}() {{
    local context state state_descr line
    typeset -A opt_args
    local -a actions=({described})
    _arguments -C \\
        {options} \\
        '1: :->action' '*:: :->rest'
    case $state in
        action) _describe command actions ;;
        rest)
            case $line[1] in
{cases}
            esac ;;
    esac
}}
"""


def _zsh_option(option: Option) -> str:
    text = option.help.replace("[", "(").replace("]", ")").replace(":", " ").replace("'", "")
    value = (
        f":{option.metavar.strip('{}') or 'value'}:{_zsh_values(option.choices)}"
        if option.metavar
        else ""
    )
    return " ".join(f"'{flag}[{text}]{value}'" for flag in option.flags)


def _zsh_values(choices: Sequence[str]) -> str:
    return f"({' '.join(choices)})" if choices else "_files"


def _fish_condition(path: Sequence[str], command: Command) -> str:
    if not path:
        return "__fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
    others = " ".join(action.name for action in command.actions)
    return f"{seen}; and not __fish_seen_subcommand_from {others}" if others else seen


def _fish_option(option: Option) -> str:
    flags = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    ]
    values = (
        f"-x -a {shlex.quote(' '.join(option.choices))}"
        if option.choices
        else "-r"
        if option.metavar
        else ""
    )
    return " ".join(part for part in (*flags, values, f"-d {shlex.quote(option.help)}") if part)
