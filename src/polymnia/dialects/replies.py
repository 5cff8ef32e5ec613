"""What several catalogues reply with: JSON, second texts, and notes beside entities."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Raw, Struct
from msgspec.json import encode
from msgspec.json import format as reformat

from polymnia.dialects.base import Reply
from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, Entity, Graph, NoteQuery
from polymnia.search.fulltext import wants_everything

_MAX_LETTERS = 500


def json_reply(shape: Struct, note: str | None = None) -> Reply:
    """Return the shape as text and as structured content, encoded once."""
    encoded = encode(shape)
    return Reply(encoded.decode(), Raw(encoded), note)


def array_reply(items: Sequence[Struct], field: str, note: str | None = None) -> Reply:
    """Return an array as text, and as structured content, which must be an object, a field."""
    return Reply(encode(items).decode(), Raw(encode({field: items})), note)


def indented_json(value: object) -> str:
    """Return the value as JSON with two spaces per level."""
    return reformat(encode(value), indent=2).decode()


def in_order(graph: Graph, names: Sequence[str]) -> list[Entity]:
    """Return the entities of the graph in the order of their names, each once."""
    entities = {entity.name: entity for entity in graph.entities}
    return [entities[name] for name in dict.fromkeys(names) if name in entities]


def unchanged_note(requested: Sequence[str], created: Sequence[str]) -> str | None:
    """Return which of the requested things exist already, or came more than once in the call."""
    counts = Counter(requested)
    new = set(created)
    existing = [name for name in counts if name not in new]
    repeated = [name for name, count in counts.items() if count > 1 and name in new]
    sentences = []
    if existing:
        sentences.append(f"Unchanged, because they exist: {', '.join(existing)}.")
    if repeated:
        sentences.append(f"Given more than once, and created as the first: {', '.join(repeated)}.")
    return " ".join(sentences) or None


def matching_notes(memory: Memory, query: str) -> str | None:
    """Return the best matching notes of the vault, one on each line; None if there are none."""
    if not memory.store.capabilities.notes or wants_everything(query):
        return None
    with memory.reading() as read:
        # Most memories have no notes, and a search for many words takes longer than this.
        if not read.notes.has_any():
            return None
    result = notes.search(memory, NoteQuery(text=query, limit=5), [VAULT])
    if not result.hits:
        return None
    lines = [
        "Matching notes of the vault "
        "(not entities: the other tools here cannot open or change them):"
    ]
    for hit in result.hits:
        lines.append(f"- {_one_line(hit.note.key)}: {_one_line(hit.note.content)}")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > _MAX_LETTERS:
        return text[: _MAX_LETTERS - 1] + "…"
    return text
