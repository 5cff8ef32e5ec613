"""What every store answers, not how: the protocols that the engine is written against."""

from polymnia.stores.contract.limits import LIMITS, ReadLimits, cancellation, check_cancelled, read_limits
from polymnia.stores.contract.reader import (
    TEXT,
    GraphReader,
    HistoryReader,
    NoteReader,
    Reader,
    SearchReader,
    Sessions,
    TrashReader,
    VectorReader,
    Writer,
)
from polymnia.stores.contract.store import Capabilities, Catalogue, ChangeFeed, Store, VectorStore

__all__ = [
    "LIMITS",
    "TEXT",
    "Capabilities",
    "Catalogue",
    "ChangeFeed",
    "GraphReader",
    "HistoryReader",
    "NoteReader",
    "ReadLimits",
    "Reader",
    "SearchReader",
    "Sessions",
    "Store",
    "TrashReader",
    "VectorReader",
    "VectorStore",
    "Writer",
    "cancellation",
    "check_cancelled",
    "read_limits",
]
