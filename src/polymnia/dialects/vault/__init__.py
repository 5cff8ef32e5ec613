"""Notes by key, for one session or in the vault for all: three tools and one to name the session, three resources."""

from polymnia.dialects.vault.dialect import DIALECT, under

__all__ = ["DIALECT", "under"]
