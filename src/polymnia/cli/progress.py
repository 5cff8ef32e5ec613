"""A progress bar on a terminal, and silence elsewhere."""

import sys

_WIDTH = 30


def progress_bar(done: int, total: int) -> None:
    """Draw how far it is on standard error."""
    if not sys.stderr.isatty():
        return
    filled = _WIDTH * done // max(total, 1)
    ending = "\n" if done >= total else ""
    bar = "#" * filled + "-" * (_WIDTH - filled)
    print(f"\r[{bar}] {done:,} of {total:,}", end=ending, file=sys.stderr, flush=True)
