"""The notes of a memory: texts under keys, shared by all clients."""

from collections.abc import Sequence

from polymnia.api.records import NoteRecord, note_record
from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, Note, NoteQuery


class LocalNotes:
    """The notes of a `LocalMemory`. Methods raise NotSupported if the store cannot hold notes."""

    def __init__(self, memory: Memory, by: str) -> None:
        self._memory = memory
        self._by = by

    def put(self, key: str, content: str, *, tags: Sequence[str] = ()) -> NoteRecord:
        """Store a note; one with the same key is replaced."""
        return note_record(notes.commit(self._memory, Note(key, content, tuple(tags)), by=self._by))

    def get(self, key: str) -> NoteRecord | None:
        """Return the note with that key; None if there is none."""
        found = notes.read(self._memory, VAULT, key)
        return None if found is None else note_record(found)

    def search(self, text: str, *, tags: Sequence[str] = (), limit: int = 10) -> list[NoteRecord]:
        """Return the notes that contain words of the text and have all of the tags, best first."""
        found = notes.search(
            self._memory, NoteQuery(text=text, tags=tuple(tags), limit=limit), [VAULT]
        )
        return [note_record(hit.note) for hit in found.hits]

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that start with the prefix, in alphabetical order."""
        return notes.keys(self._memory, VAULT, prefix)

    def delete(self, key: str) -> bool:
        """Delete the note with that key. Return False if there is none."""
        return bool(notes.prune(self._memory, [VAULT], by=self._by, key=key))
