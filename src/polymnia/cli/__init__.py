"""The command line: one module per command. Only this package prints."""

import gc
import sys
from typing import NoReturn

# msgspec prefers typing_extensions to typing, where Python 3.11 has the same. Loading it, with the
# `inspect` that it needs, takes 15 of the 175 ms of processor time until a server or hook answers.
# A program that imports polymnia as a library is left alone: other threads may want the module.
if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # makes importing it fail
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


def start() -> NoReturn:
    """Run one command and end the process with its status."""
    # A start leaves no garbage, and the collector would take a tenth of its time.
    gc.disable()
    from polymnia.cli.main import run_and_exit

    run_and_exit()
