"""The protocols of a store, which the engine uses and every store implements."""

from typing import TYPE_CHECKING

from polymnia.stores.contract.reader import (
    MAX_CONVERSATION_GAP,
    MAX_CONVERSATION_STEPS,
    TEXT,
    GraphReader,
    Reader,
    SearchReader,
    Writer,
    find_note,
)
from polymnia.stores.contract.reads import (
    CANCELLED,
    OpenReaders,
    cancellation,
    check_cancelled,
    is_cancelled,
)
from polymnia.stores.contract.store import (
    Capabilities,
    Catalogue,
    ChangeFeed,
    Store,
    TokenStore,
    WebDocument,
    WebStateStore,
)
from polymnia.stores.contract.tables import TABLES, ReadRows, TableRow

if TYPE_CHECKING:  # a server that needs none of them does not import them
    from polymnia.stores.versioned.history import HistoryReader
    from polymnia.stores.versioned.notes import NoteReader
    from polymnia.stores.versioned.vectors import VectorReader, VectorStore

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
