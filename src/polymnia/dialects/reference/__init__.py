"""The nine tools of the reference memory server, with its names, texts and reply shapes."""

from polymnia.dialects.reference.dialect import DIALECT

__all__ = ["DIALECT"]
