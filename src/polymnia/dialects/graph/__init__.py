"""The 24 tools of the graph catalogue: the reference server's, and a graph used as a graph."""

from polymnia.dialects.graph.dialect import DIALECT

__all__ = ["DIALECT"]
