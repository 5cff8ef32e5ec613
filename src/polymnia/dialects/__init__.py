"""The tool catalogues that clients call, one package each, over the same engine."""

from polymnia.dialects.registry import DIALECTS, open_dialect

__all__ = ["DIALECTS", "open_dialect"]
