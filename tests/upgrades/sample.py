"""A memory with everything that a store can hold, and its description as JSON values.

The description names each field: a later version may add some, and loses none.
"""

from collections.abc import Iterable
from typing import Any

from polymnia.engine import notes
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash, undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import (
    VAULT,
    ChangeQuery,
    Entity,
    EntityDraft,
    FactAddition,
    Note,
    Perspective,
    Relation,
    Rows,
)

_ANN, _BOB = "ann (token laptop)", "bob"


def fill_graph(memory: Memory) -> None:
    """Add entities, observations and relations, and delete some, as any store can."""
    drafts = [
        EntityDraft(
            "Ada Lovelace", "person", ("lives in London", "drinks tea", "writes Über-Code")
        ),
        EntityDraft("Café Zoé", "place", ("opens at eight", "日本語 is spoken here")),
        EntityDraft("Notes", "thing"),
        EntityDraft("Short lived", "thing", ("is deleted soon",)),
    ]
    entities.create(memory, drafts, by=_ANN)
    links = [
        Relation("Ada Lovelace", "Café Zoé", "visits"),
        Relation("Ada Lovelace", "Notes", "wrote"),
        Relation("Short lived", "Notes", "mentions"),
    ]
    relations.create(memory, links, by=_BOB)
    fact = FactAddition("Ada Lovelace", ("moved to Turin",))
    facts.add(memory, [fact], by=_BOB, skip_repeats=False)
    facts.remove(memory, [("Ada Lovelace", ("drinks tea",))], by=_ANN)
    entities.delete(memory, ["Short lived"], by=_ANN)


def fill_history(memory: Memory) -> None:
    """Add versions, trash, notes, vectors, a perspective and a purge, as databases have them."""
    entities.create(memory, [EntityDraft("Purged", "x", ("purged text",))], by=_ANN)
    entities.delete(memory, ["Purged"], by=_ANN)
    trash.purge(memory, days=0)
    fill_graph(memory)
    dated = FactAddition("Café Zoé", ("was painted",), valid_at=1_600_000_000_000_000, source="x")
    facts.add(memory, [dated], by=_ANN, skip_repeats=False)
    revision = Revision(name="Zoé", summary="A café.", add_tags=("food", "paris"))
    revise(memory, "Café Zoé", revision, by=_BOB)
    entities.create(memory, [EntityDraft("Ada", "person", ("likes numbers",))], by=_BOB)
    merge(memory, ["Ada"], "Ada Lovelace", by=_ANN)
    entities.create(memory, [EntityDraft("Undone", "thing")], by=_ANN)
    with memory.reading() as read:
        last = read.history.changes(ChangeQuery(limit=1))[0].id
    undo.undo(memory, [last], by=_ANN)
    notes.commit(memory, Note("plan", "first"), by=_ANN)
    notes.commit(
        memory, Note("plan", "second", tags=("work",), embedding=b"\0\0\x80?" * 4), by=_BOB
    )
    notes.commit(memory, Note("old", "deleted note"), by=_ANN)
    notes.prune(memory, [VAULT], key="old", by=_ANN)
    _fill_vectors(memory)


def _fill_vectors(memory: Memory) -> None:
    vectors = memory.store.vectors
    vectors.set_perspective(Perspective("dated", "{date} {text}", "when {query}"))
    model = vectors.add_model("test/4", "onnx:test", 4)
    with memory.reading() as read:
        passages = [passage.id for passage in read.passages_containing("", 3)]
    vectors.put(model.number, [(passage, b"\0\0\0?" * 4) for passage in passages])


def describe_graph(memory: Memory) -> dict[str, Any]:
    """Return the entities and relations that live, as far as a file has them."""
    graph = entities.read_all(memory)
    return {
        "entities": [[entity.name, entity.type, entity.texts] for entity in graph.entities],
        "relations": [list(relation.key) for relation in graph.relations],
    }


def describe_all(memory: Memory) -> dict[str, Any]:
    """Return everything that can be read from a database: the present, each past, the trash."""
    with memory.reading() as read:
        changes = read.history.changes(ChangeQuery(limit=None))[::-1]
        return {
            "present": describe_rows(read.history.state_at(changes[-1].at)),
            "changes": [
                [change.id, change.at, change.actor, change.operation] for change in changes
            ],
            "states": _states(memory, [change.at for change in changes]),
            "trash": [
                [item.id, item.deleted_at, describe_rows(item.rows)] for item in trash.items(memory)
            ],
            "notes": [_note(note) for note in read.notes.notes(VAULT)],
            "perspectives": [
                [item.name, item.document, item.query] for item in read.vectors.perspectives()
            ],
            "models": [
                [model.identity, model.url, *read.vectors.coverage(model.number)]
                for model in read.vectors.models()
            ],
        }


def _states(memory: Memory, times: Iterable[int]) -> list[dict[str, Any] | str]:
    """Return what the memory held at each time; what was purged is refused."""
    states: list[dict[str, Any] | str] = []
    for time in times:
        with memory.reading() as read:
            try:
                states.append(describe_rows(read.history.state_at(time)))
            except BadInput:
                states.append("purged")
    return states


def describe_rows(rows: Rows) -> dict[str, Any]:
    """Return rows as JSON values."""
    return {
        "entities": [_entity(entity) for entity in rows.entities],
        "observations": [
            [group.entity, [_fact(fact) for fact in group.facts]] for group in rows.facts
        ],
        "relations": [[*relation.key, relation.created_at] for relation in rows.relations],
        "notes": [_note(note) for note in rows.notes],
    }


def _entity(entity: Entity) -> list[Any]:
    return [
        entity.name,
        entity.type,
        entity.id,
        entity.summary,
        entity.summary_at,
        list(entity.tags),
        entity.created_at,
        entity.updated_at,
        [_fact(fact) for fact in entity.facts],
    ]


def _fact(fact: Any) -> list[Any]:
    return [fact.ordinal, fact.text, fact.created_at, fact.valid_at, fact.source]


def _note(note: Note) -> list[Any]:
    return [note.key, note.content, list(note.tags), note.embedding.hex(), note.created_at]
