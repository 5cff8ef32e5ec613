"""The commands and options of the parser as values, for completion scripts and the manual page."""

import argparse
from typing import Any

from msgspec import Struct


class Option(Struct, frozen=True):
    """A flag with its spellings. `metavar` is empty if it takes no value."""

    flags: tuple[str, ...]
    metavar: str
    help: str
    choices: tuple[str, ...] = ()


class Argument(Struct, frozen=True):
    """A word without a flag."""

    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    is_optional: bool = False
    is_repeated: bool = False


class Command(Struct, frozen=True):
    """A command, its own options and arguments, and its actions."""

    name: str
    help: str
    description: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    actions: tuple["Command", ...]


def read_grammar(
    parser: argparse.ArgumentParser, name: str = "polymnia", summary: str = ""
) -> Command:
    """Return the parser's commands and options."""
    options, arguments, commands = [], [], []
    # argparse has no public list of what was added to a parser.
    for action in parser._actions:
        if action.help is argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            commands += _read_commands(action)
        elif action.option_strings:
            options.append(_option(action))
        else:
            arguments.append(_argument(action))
    return Command(
        name,
        summary,
        parser.description or "",
        tuple(options),
        tuple(arguments),
        tuple(commands),
    )


def _read_commands(action: "argparse._SubParsersAction[Any]") -> list[Command]:
    summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
    commands = []
    for word, parser in action.choices.items():
        commands.append(read_grammar(parser, word, summaries.get(word, "")))
    return commands


def _option(action: argparse.Action) -> Option:
    choices = tuple(map(str, action.choices or ()))
    metavar = ""
    takes_value = action.nargs != 0
    if takes_value and action.metavar:
        metavar = str(action.metavar)
    elif choices:
        metavar = f"{{{','.join(choices)}}}"
    elif takes_value:
        metavar = action.dest.upper()
    return Option(tuple(action.option_strings), metavar, _help(action), choices)


def _argument(action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    return Argument(
        str(action.metavar or action.dest.upper()),
        _help(action),
        choices,
        is_optional=action.nargs in ("?", "*"),
        is_repeated=action.nargs in ("+", "*"),
    )


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": "polymnia"}
