"""The command line. The only place that prints."""

import sys

if "typing_extensions" not in sys.modules:
    # msgspec takes two names from there that this Python has itself; importing it would be a tenth of a server's start.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # what the import system takes for "not there"
    import msgspec  # noqa: F401  # once, while it is not there

    del sys.modules["typing_extensions"]
