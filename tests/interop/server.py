"""The server under test, as the command line that starts it."""

import sys
from collections.abc import Callable
from pathlib import Path

Command = tuple[str, ...]

NewServer = Callable[[], Command]
"""Makes a server over a store of its own, empty at first."""


def polymnia(store: Path) -> Command:
    return (sys.executable, "-m", "polymnia", "serve", "--dialect", "reference", "--store", str(store))
