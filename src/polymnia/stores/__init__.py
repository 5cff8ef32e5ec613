"""Where memories are kept. `open_store` and `open_catalogue` are the entry points."""

from polymnia.stores.open import open_catalogue, open_store, store_kind

__all__ = ["open_catalogue", "open_store", "store_kind"]
