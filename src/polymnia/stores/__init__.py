"""Where memories are kept. `open_store(url)` is the way in."""

from polymnia.stores.open import adopt_legacy, open_store, store_kind

__all__ = ["adopt_legacy", "open_store", "store_kind"]
