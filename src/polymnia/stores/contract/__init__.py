"""The protocols of a store, which the engine uses and every store implements."""

from polymnia.stores.contract.limits import (
    LIMITS,
    ReadLimits,
    cancellation,
    check_cancelled,
    read_limits,
)
from polymnia.stores.contract.reader import (
    MAX_CONVERSATION_GAP,
    MAX_CONVERSATION_STEPS,
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
from polymnia.stores.contract.tables import TABLES, TableReader, TableRow, TableWriter

__all__ = [
    "LIMITS",
    "MAX_CONVERSATION_GAP",
    "MAX_CONVERSATION_STEPS",
    "TABLES",
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
    "TableReader",
    "TableRow",
    "TableWriter",
    "TrashReader",
    "VectorReader",
    "VectorStore",
    "Writer",
    "cancellation",
    "check_cancelled",
    "read_limits",
]
