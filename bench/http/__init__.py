"""The HTTP benchmark: `python3 -m bench.http`."""
