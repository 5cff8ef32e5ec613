"""Where memories are kept. `open_store(url)` is the way in."""

from polymnia.stores.open import open_store, store_kind

__all__ = ["open_store", "store_kind"]
