"""Where memories are kept. `open_store` and `open_catalogue` are the entry points."""

from polymnia.stores.open import (
    adopt_legacy,
    check_catalogue,
    hide_passwords,
    open_catalogue,
    open_store,
    rebuild_catalogue,
    store_kind,
)

__all__ = [
    "adopt_legacy",
    "check_catalogue",
    "hide_passwords",
    "open_catalogue",
    "open_store",
    "rebuild_catalogue",
    "store_kind",
]
