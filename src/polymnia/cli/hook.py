"""`polymnia hook`: answer a hook of a coding agent. The agent continues even if the hook fails."""

import argparse
import os
import sys
import threading

from polymnia.cli.common import Subparsers, add_store_arguments, add_workspace_argument, printable
from polymnia.errors import PolymniaError
from polymnia.hooks.events import EVENTS, PROMPTED, answer_hook
from polymnia.settings import Settings

# The longest that an agent waits, for a lock, a database or a disk.
# Codex allows 3 seconds at the end of a session.
MAX_SECONDS = 2.5
# A user waits for every prompt. The start of the interpreter comes before it and is not bounded.
MAX_PROMPT_SECONDS = 0.3
MAX_INPUT_BYTES = 16 << 20


def add_hook(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "hook",
        help="answer a hook of a coding agent: a briefing, facts for a prompt, or a checkpoint",
        description="Read the hook's JSON from standard input and answer it. "
        "Plugins and hooks run this command.",
    )
    # Any word is accepted: the status 2 of a wrong choice would stop the agent.
    parser.add_argument("event", metavar="EVENT", help=", ".join(EVENTS))
    parser.add_argument(
        "--for",
        dest="program",
        default="",
        metavar="PROGRAM",
        help="the program, if its answers have another form: copilot, opencode",
    )
    add_store_arguments(parser)
    add_workspace_argument(parser)


def run_hook(settings: Settings, options: argparse.Namespace) -> int:
    """Print the answer and return 0. Failures go to standard error only."""
    seconds = MAX_PROMPT_SECONDS if options.event in PROMPTED else MAX_SECONDS
    timer = threading.Timer(seconds, _give_up, [seconds])
    timer.daemon = True
    timer.start()
    try:
        data = (
            b""
            if sys.stdin is None or sys.stdin.isatty()
            else sys.stdin.buffer.read(MAX_INPUT_BYTES)
        )
        answer = answer_hook(settings, options.event, data, options.program)
        if answer:
            print(answer, flush=True)
    except (PolymniaError, OSError) as exc:
        print(f"polymnia: {printable(str(exc))}", file=sys.stderr)
    finally:
        timer.cancel()
    return 0


def _give_up(seconds: float) -> None:
    """End the process as a crash would.

    What was acknowledged is on disk. The next event does the rest.
    """
    if (
        seconds > MAX_PROMPT_SECONDS
    ):  # some programs would show it with every prompt of a busy machine
        sys.stderr.write(f"polymnia: gave up after {seconds} seconds\n")
        sys.stderr.flush()
    os._exit(0)
