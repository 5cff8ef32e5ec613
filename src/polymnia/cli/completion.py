"""`polymnia completion`: print a script that completes commands in bash, zsh or fish.

The scripts ask this command, with the words of the line, what may come next.
"""

import argparse

from polymnia.cli.common import Subparsers
from polymnia.settings import Settings

SCRIPTS = {
    "bash": """\
_polymnia() {
    local IFS=$'\\n'
    COMPREPLY=($(polymnia completion bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _polymnia polymnia
""",
    "zsh": """\
#compdef polymnia
_polymnia() {
    local -a found
    found=("${(@f)$(polymnia completion zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
if [[ "$funcstack[1]" == _polymnia ]]; then _polymnia "$@"; else compdef _polymnia polymnia; fi
""",
    "fish": """\
function __polymnia
    set -l words (commandline -opc) (commandline -ct)
    polymnia completion fish $words[2..] 2>/dev/null
end
complete -c polymnia -a '(__polymnia)'
""",
}


def add_completion(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description="""\
Print a completion script. To load it in every shell:

  bash:  cd ~/.local/share/bash-completion/completions
         polymnia completion bash > polymnia
  zsh:   polymnia completion zsh > ~/.zfunc/_polymnia   (a directory in fpath)
  fish:  polymnia completion fish > ~/.config/fish/completions/polymnia.fish
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run_completion(settings: Settings, options: argparse.Namespace) -> int:
    """Print the script or, for the script, what may stand in place of the last word."""
    if options.words:
        from polymnia.cli.main import build_parser

        *typed, last = options.words
        parser = build_parser(options.words[0])
        # argparse has no public list of what was added to a parser.
        for word in typed:
            for action in parser._actions:
                if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                    parser = action.choices[word]
        option = parser._option_string_actions.get(typed[-1]) if typed else None
        found: list[str] = []
        if option is not None and option.nargs != 0:
            found = list(option.choices or ())
        else:
            for action in parser._actions:
                found += action.option_strings if last.startswith("-") else ()
                if action.choices and not action.option_strings:
                    found += action.choices
        print("\n".join([word for word in found if word.startswith(last)]))
    else:
        print(SCRIPTS[options.shell], end="")
    return 0
