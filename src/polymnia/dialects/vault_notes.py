"""Notes of the vault beside a list of entities, for the catalogues whose searches return only entities."""

from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, NoteQuery
from polymnia.search.expression import wants_everything

_MAX_NOTES = 5
_MAX_LETTERS = 500
_HEADING = (
    "Matching notes of the vault (not entities: the other tools here cannot open or change them):"
)


def matching_notes(memory: Memory, query: str) -> str | None:
    """Return the notes that match best, one on each line; None if there are none."""
    if not memory.store.capabilities.notes or wants_everything(query):
        return None
    with memory.reading() as read:
        if not read.notes.count(
            VAULT, ()
        ):  # most memories have no notes, and a search for many words takes longer
            return None
    hits = notes.search(memory, NoteQuery(text=query, limit=_MAX_NOTES), [VAULT]).hits
    lines = [f"- {_one_line(each.note.key)}: {_one_line(each.note.content)}" for each in hits]
    return "\n".join([_HEADING, *lines]) if lines else None


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LETTERS else text[: _MAX_LETTERS - 1] + "…"
