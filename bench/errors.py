"""The one error of the benchmark: a sentence about what stopped it."""


class BenchError(Exception):
    """A server misbehaved or could not be prepared; the text says which and how."""
