"""The error of the benchmarks: a sentence about what stopped one."""


class BenchError(Exception):
    """A server failed or could not be prepared; the text says which and how."""
