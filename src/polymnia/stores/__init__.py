"""Where memories are kept. `open_store` and `open_catalogue` are the entry points."""

from polymnia.stores.open import adopt_legacy, open_catalogue, open_store, store_kind

__all__ = ["adopt_legacy", "open_catalogue", "open_store", "store_kind"]
