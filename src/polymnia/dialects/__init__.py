"""The tool catalogues clients call, one package each, over the same engine."""

from polymnia.dialects.open import DIALECTS, open_dialect

__all__ = ["DIALECTS", "open_dialect"]
