"""The commands and options of the parser as values, for completion scripts and the manual page."""

import argparse
from collections.abc import Mapping
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
    listed = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    options = [_option(action) for action in listed if action.option_strings]
    arguments = [
        _argument(action)
        for action in listed
        if not action.option_strings and not _is_commands(action)
    ]
    actions = [
        read_grammar(subparser, word, _summaries(action).get(word, ""))
        for action in listed
        if isinstance(action, argparse._SubParsersAction)
        for word, subparser in action.choices.items()
    ]
    return Command(
        name, summary, parser.description or "", tuple(options), tuple(arguments), tuple(actions)
    )


def _is_commands(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def _summaries(action: "argparse._SubParsersAction[Any]") -> Mapping[str, str]:
    return {choice.dest: choice.help or "" for choice in action._choices_actions}


def _option(action: argparse.Action) -> Option:
    takes_value = action.nargs != 0
    choices = tuple(map(str, action.choices or ()))
    metavar = str(action.metavar or ("" if choices else action.dest.upper())) if takes_value else ""
    shown = metavar or (f"{{{','.join(choices)}}}" if choices else "")
    return Option(tuple(action.option_strings), shown, _help(action), choices)


def _argument(action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    metavar = str(action.metavar or action.dest.upper())
    return Argument(
        metavar, _help(action), choices, action.nargs in ("?", "*"), action.nargs in ("+", "*")
    )


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": "polymnia"}
