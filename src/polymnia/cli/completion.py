"""`polymnia completion`: print a script that completes commands in bash, zsh or fish."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from polymnia.cli.grammar import Argument, Command, Option, read_grammar
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
    """Return a script for bash.

    It offers words by the commands before the cursor, and values by the option before it.
    """
    cases, values = [], []
    for path, command in _walk(root):
        words_before = " ".join(path)
        words = " ".join(_bash_words(command))
        cases.append(f'    "{words_before}") words="{words}" ;;')
        for option in command.options:
            if option.metavar:
                values.append(_bash_values(words_before, option))
    return _BASH.format(cases="\n".join(cases), values="\n".join(values), paths=_paths(root))


def _bash_words(command: Command) -> Iterator[str]:
    for action in command.actions:
        yield action.name
    for option in command.options:
        yield from option.flags
    for argument in command.arguments:
        yield from argument.choices


def _bash_values(words_before: str, option: Option) -> str:
    """Return the case for what comes after an option: one of its choices, or a file."""
    patterns = "|".join(f'"{words_before}:{flag}"' for flag in option.flags)
    if not option.choices:
        return f"    {patterns}) compopt -o default; COMPREPLY=(); return ;;"
    choices = " ".join(option.choices)
    return f'    {patterns}) COMPREPLY=($(compgen -W "{choices}" -- "$current")); return ;;'


def zsh_script(root: Command) -> str:
    """Return a script for zsh."""
    functions = "\n".join(_zsh_function(path, command) for path, command in _walk(root))
    return f'#compdef polymnia\n\n{functions}\n_polymnia "$@"\n'


def fish_script(root: Command) -> str:
    """Return a script for fish."""
    lines = ["# Completions of polymnia."]
    for path, command in _walk(root):
        condition = shlex.quote(_fish_condition(path, command))
        no_files = f"complete -c polymnia -f -n {condition}"
        for action in command.actions:
            lines.append(f"{no_files} -a {action.name} -d {shlex.quote(action.help)}")
        for argument in command.arguments:
            if argument.choices:
                choices = shlex.quote(" ".join(argument.choices))
                lines.append(f"{no_files} -a {choices}")
        for option in command.options:
            lines.append(f"complete -c polymnia -n {condition} {_fish_option(option)}")
    return "\n".join(lines) + "\n"


SHELLS: dict[str, Callable[[Command], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}

_BASH = """\
# Completions of polymnia.
_polymnia() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}"
    local path="" words="" index longer
    for ((index = 1; index < COMP_CWORD; index++)); do
        longer="${{path:+$path }}${{COMP_WORDS[index]}}"
        case " {paths} " in
        *" ${{longer// /,}} "*) path="$longer" ;;
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
        arguments = " ".join([options, *map(_zsh_argument, command.arguments)])
        return f"{name}() {{\n    _arguments \\\n        {arguments}\n}}\n"
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


def _zsh_argument(argument: Argument) -> str:
    repeated = "*" if argument.is_repeated else ""
    return f"'{repeated}:{argument.metavar}:{_zsh_values(argument.choices)}'"


def _zsh_option(option: Option) -> str:
    # Brackets, colons and quotes have a meaning in the specification of an option.
    text = option.help.replace("[", "(").replace("]", ")").replace(":", " ").replace("'", "")
    value = ""
    if option.metavar:
        label = option.metavar.strip("{}") or "value"
        value = f":{label}:{_zsh_values(option.choices)}"
    return " ".join(f"'{flag}[{text}]{value}'" for flag in option.flags)


def _zsh_values(choices: Sequence[str]) -> str:
    return f"({' '.join(choices)})" if choices else "_files"


def _fish_condition(path: Sequence[str], command: Command) -> str:
    if not path:
        return "__fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
    if not command.actions:
        return seen
    actions = " ".join(action.name for action in command.actions)
    return f"{seen}; and not __fish_seen_subcommand_from {actions}"


def _fish_option(option: Option) -> str:
    parts = []
    for flag in option.flags:
        if flag.startswith("--"):
            parts.append(f"-l {flag[2:]}")
        else:
            parts.append(f"-s {flag[1:]}")
    if option.choices:
        choices = shlex.quote(" ".join(option.choices))
        parts.append(f"-x -a {choices}")
    elif option.metavar:
        parts.append("-r")
    parts.append(f"-d {shlex.quote(option.help)}")
    return " ".join(parts)
