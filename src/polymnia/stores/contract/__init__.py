"""The protocols of a store, which the engine uses and every store implements."""

from polymnia.stores.contract.current import OpenReaders
from polymnia.stores.contract.limits import (
    CANCELLED,
    cancellation,
    check_cancelled,
    is_cancelled,
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
    VectorReader,
    Writer,
    find_note,
)
from polymnia.stores.contract.store import Capabilities, Catalogue, ChangeFeed, Store, VectorStore
from polymnia.stores.contract.tables import TABLES, ReadRows, TableRow
from polymnia.stores.contract.tokens import TokenStore
from polymnia.stores.contract.web_state import WebDocument, WebStateStore

__all__ = [
    "CANCELLED",
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
    "OpenReaders",
    "ReadRows",
    "Reader",
    "SearchReader",
    "Store",
    "TableRow",
    "TokenStore",
    "VectorReader",
    "VectorStore",
    "WebDocument",
    "WebStateStore",
    "Writer",
    "cancellation",
    "check_cancelled",
    "find_note",
    "is_cancelled",
]
