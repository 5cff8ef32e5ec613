"""What every store answers, not how: the protocols that the engine is written against."""

from polymnia.stores.contract.catalogue import Catalogue
from polymnia.stores.contract.graph import GraphReader
from polymnia.stores.contract.history import ChangeFeed, HistoryReader, TrashReader
from polymnia.stores.contract.notes import NoteReader, Sessions
from polymnia.stores.contract.search import SearchReader
from polymnia.stores.contract.store import Capabilities, Reader, Store, Writer
from polymnia.stores.contract.vectors import VectorReader, VectorStore

__all__ = [
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
