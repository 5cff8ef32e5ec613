"""Writing notes to SQLite, and what of them the change log keeps."""

import apsw
from msgspec.structs import replace

from polymnia.model import VAULT, Change, Note, Rows
from polymnia.search.embedding import length
from polymnia.stores.sqlite.indexing import IndexedTexts, forget, index_soon
from polymnia.stores.sqlite.layout import as_json, run, run_many


def apply_notes(connection: apsw.Connection, before: tuple[Note, ...], after: tuple[Note, ...], at: int) -> None:
    """Turn the notes of a change of that time into rows: what is only before goes, what is after is there."""
    stays = {(each.scope, each.key) for each in after}
    for note in before:
        if (note.scope, note.key) not in stays:
            run(connection, "delete_note", note.scope.owner, note.scope.session, note.key)
            if note.scope == VAULT:
                run(connection, "remember_gone", note.key, at)
    for note in after:
        _put(connection, note)


def without_session_texts(change: Change) -> Change:
    """The change as the log keeps it: that a session's note was written is remembered, what it said is not."""
    return replace(change, before=_without_texts(change.before), after=_without_texts(change.after))


def _put(connection: apsw.Connection, note: Note) -> None:
    owner, session = note.scope.owner, note.scope.session
    row = (owner, session, note.key, note.content, as_json(note.tags), note.created_at, note.updated_at)
    ((number,),) = run(connection, "upsert_note", *row)
    run(connection, "delete_note_tags", number)
    run_many(connection, "insert_note_tag", [(tag, number) for tag in dict.fromkeys(note.tags)])
    run(connection, "delete_note_vector", number)
    if note.embedding:
        run(connection, "insert_note_vector", number, note.embedding, length(note.embedding))
    if note.scope == VAULT:
        _index(connection, number, note)


def _index(connection: apsw.Connection, number: int, note: Note) -> None:
    """Let a note of the vault be found: by the vault's own search, and among everything else under a negative id."""
    run(connection, "delete_vault_words", number)
    run(connection, "insert_vault_words", number, note.key, note.content, " ".join(note.tags))
    forget(connection, [-number])
    index_soon(connection, [IndexedTexts(-number, note.key, None, note.content)])


def _without_texts(rows: Rows) -> Rows:
    return replace(rows, notes=tuple([_without_text(note) for note in rows.notes]))


def _without_text(note: Note) -> Note:
    if note.scope == VAULT:
        return note
    return replace(note, content="", tags=(), embedding=b"")
