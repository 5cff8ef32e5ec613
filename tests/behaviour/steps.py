"""Random writes for property tests.

Every verb that changes a memory, over few names, so that they meet.
"""

from contextlib import suppress

from hypothesis import strategies as st
from msgspec.structs import replace

from polymnia.engine import notes
from polymnia.engine.facts import forget, remember, revise
from polymnia.engine.facts.merge import merge
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NotSupported
from polymnia.model import (
    VAULT,
    ChangeQuery,
    Entity,
    EntityDraft,
    FactAddition,
    Note,
    Relation,
    Rows,
)

ACTORS = ("ann's client", "ben's client")
NAMES = ("a", "b", "c", "d")
TEXTS = ("tea", "Tea", "coffee", "two words", "")
VERBS = (
    "create", "add", "remove", "link", "unlink", "delete", "merge", "remember", "rename",
    "retype", "summarize", "tag", "replace", "supersede", "forget", "note", "prune", "restore",
)  # fmt: skip
Step = tuple[str, str, str, str, str]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(VERBS),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(TEXTS),
        st.sampled_from(ACTORS),
    ),
    min_size=1,
    max_size=14,
)


def take(memory: Memory, step: Step) -> None:
    """Make one write, if it can be made."""
    verb, name, other, text, by = step
    with suppress(BadInput, NotSupported):
        _take(memory, verb, name, other, text, by)


def state_of(memory: Memory) -> object:
    """Return everything the memory holds, except when entities were updated and which ordinals are
    left.
    """
    graph = entities.read_all(memory)
    return rows_state(
        Rows(tuple(graph.entities), (), tuple(graph.relations), tuple(_notes(memory)))
    )


def rows_state(rows: Rows) -> object:
    """Return the same of a past state."""
    kept = [replace(entity, updated_at=0, next_ordinal=0) for entity in rows.entities]
    return (
        sorted(kept, key=lambda entity: entity.name),
        sorted(rows.relations, key=lambda relation: relation.key),
        sorted(rows.notes, key=lambda note: note.key),
    )


def last_change(memory: Memory) -> tuple[int, int]:
    """Return the id and time of the last change; zeros if there is none."""
    with memory.reading() as read:
        changes = read.history.changes(ChangeQuery(limit=None))[::-1]
    return (changes[-1].id, changes[-1].at) if changes else (0, 0)


def _notes(memory: Memory) -> list[Note]:
    return notes.page(memory, VAULT) if memory.store.capabilities.notes else []


def _take(memory: Memory, verb: str, name: str, other: str, text: str, by: str) -> None:
    edit = (revise.Edit(_first_ordinal(memory, name), text or "new"),)
    revisions = {
        "rename": revise.Revision(name=other),
        "retype": revise.Revision(type=text),
        "summarize": revise.Revision(summary=text or None),
        "tag": revise.Revision(add_tags=(text,), remove_tags=("tea",)),
        "replace": revise.Revision(replace=edit),
        "supersede": revise.Revision(supersede=edit),
    }
    if verb in revisions:
        revise.revise(memory, name, revisions[verb], by=by)
    elif verb == "create":
        entities.create(memory, [EntityDraft(name, "t", (text,)), EntityDraft(other, "t")], by=by)
    elif verb == "add":
        facts.add(memory, [FactAddition(name, (text,), 5)], by=by, skip_repeats=False)
    elif verb == "remove":
        facts.remove(memory, [(name, (text,))], by=by)
    elif verb == "link":
        relations.create(memory, [Relation(name, other, "r")], by=by)
    elif verb == "unlink":
        relations.delete(memory, [Relation(name, other, "r")], by=by)
    elif verb == "delete":
        entities.delete(memory, [name], by=by)
    elif verb == "merge":
        merge(memory, [name], other, by=by)
    elif verb == "remember":
        given = remember.EntityFacts(
            name=name, facts=(remember.FactDraft(text, 7),), tags=(other,), summary=text
        )
        remember.remember(memory, [given], [Relation(other, name, "s")], by=by)
    elif verb == "forget":
        forget.forget(memory, forget.Unwanted(facts=((name, _first_ordinal(memory, name)),)), by=by)
    elif verb == "note":
        notes.commit(memory, Note(name, text, (other,)), by=by)
    elif verb == "prune":
        notes.prune(memory, [VAULT], key=name, by=by)
    elif verb == "restore":
        trash.restore(memory, name, by=by)


def _first_ordinal(memory: Memory, name: str) -> int:
    found: list[Entity] = entities.open_named(memory, [name]).entities
    return found[0].facts[0].ordinal if found and found[0].facts else 1
