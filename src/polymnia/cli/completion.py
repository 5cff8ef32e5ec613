"""`polymnia completion`: print a script that completes commands in bash, zsh or fish.

`python -m docs.generate` makes the scripts in `completions/` from the parser, with shtab.
"""

import argparse
from importlib.resources import files

from polymnia.cli.common import Subparsers
from polymnia.settings import Settings

SHELLS = ("bash", "zsh", "fish")


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
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run_completion(settings: Settings, options: argparse.Namespace) -> int:
    """Print the script."""
    script = files("polymnia.cli") / "completions" / f"polymnia.{options.shell}"
    print(script.read_text("utf-8"), end="")
    return 0
