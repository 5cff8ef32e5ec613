"""What every store answers, not how: the protocols that the engine is written against."""

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
    "TEXT",
    "Capabilities",
    "Catalogue",
    "ChangeFeed",
    "GraphReader",
    "HistoryReader",
    "NoteReader",
    "Reader",
    "SearchReader",
    "Sessions",
    "Store",
    "TrashReader",
    "VectorReader",
    "VectorStore",
    "Writer",
]
