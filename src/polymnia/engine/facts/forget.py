"""Forget entities, facts, relations and notes, in one change that can be undone."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import asdict, replace

from polymnia.engine.facts.names import resolve_name
from polymnia.engine.facts.revise import FactIndex, moved_ends
from polymnia.engine.graph.relations import ends_of
from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import (
    VAULT,
    Entity,
    Fact,
    FactSet,
    Relation,
    Rows,
)
from polymnia.search.terms import words_of
from polymnia.stores.contract import Reader, find_note


class Unwanted(Struct, frozen=True, kw_only=True):
    """What to forget. Facts are named by entity and by ordinal or text, notes by key."""

    entities: tuple[str, ...] = ()
    facts: tuple[tuple[str, int | str], ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[str, ...] = ()


class ForgetReceipt(Rows, frozen=True, kw_only=True):
    """What was forgotten, or would be, and the names of what does not exist.

    The change is 0 if nothing was changed.
    """

    change: int
    at: int
    unknown: tuple[str, ...] = ()


def forget(memory: Memory, unwanted: Unwanted, *, by: str, dry_run: bool = False) -> ForgetReceipt:
    """Delete what is named, as one change; with `dry_run` only return what would be deleted.

    A whole entity takes its facts and relations along. Raise BadInput if an entity has no
    such fact.
    """
    if dry_run:
        with memory.reading() as read:
            rows, unknown = find_rows(memory, read, unwanted)
        change, at = 0, 0
    else:
        with memory.writing("forget", by) as transaction:
            rows, unknown = find_rows(memory, transaction.read, unwanted)
            at = transaction.time()
            coming = [part for part in rows.facts if any(fact.valid_at > at for fact in part.facts)]
            owners = find_by_name(transaction.read, {part.entity for part in coming})
            old, new = [], []  # facts that these were to replace, and now stay
            for part in coming:
                ended = [(fact, 0) for fact in part.facts]
                for moved in moved_ends(owners[part.entity], ended, at):
                    old.append(FactSet(part.entity, (moved.old,)))
                    new.append(FactSet(part.entity, (moved.new,)))
            transaction.apply(
                before=replace(rows, facts=(*rows.facts, *old)),
                after=Rows(facts=tuple(new)),
                touched=ends_of(rows.relations),
            )
        change = transaction.change_id
    return ForgetReceipt(**asdict(rows), change=change, at=at, unknown=tuple(unknown))


def find_rows(memory: Memory, read: Reader, unwanted: Unwanted) -> tuple[Rows, list[str]]:
    """Return the rows to delete, and what is named and does not exist."""
    names = dict.fromkeys((*unwanted.entities, *(name for name, _ in unwanted.facts)))
    known = find_by_name(read, names.keys())
    unknown = [name for name in names if name not in known]
    whole = {name: known[name] for name in unwanted.entities if name in known}
    parts = [(name, key) for name, key in unwanted.facts if name not in whole]
    relations = read.find_relations({relation.key for relation in unwanted.relations})
    for relation in unwanted.relations:
        if relation.key in relations:
            continue
        alike = _find_alike(read, relation)
        relations |= {other.key: other for other in alike}
        if not alike:
            unknown.append(" ".join((relation.source, relation.type, relation.target)))
    if whole:
        relations |= {relation.key: relation for relation in read.relations(list(whole))}
    notes = []
    for key in dict.fromkeys(unwanted.notes):
        if not memory.store.capabilities.notes:
            raise BadInput(f"this store has no notes; {USE_A_DATABASE}")
        note = find_note(read.notes, VAULT, key)
        if note is None:
            unknown.append(key)
        else:
            notes.append(note)
    rows = Rows(
        tuple(whole.values()),
        _find_facts(parts, known),
        tuple(relations.values()),
        tuple(notes),
    )
    return rows, unknown


def _find_alike(read: Reader, wanted: Relation) -> list[Relation]:
    """Return the relations that differ from the wanted one only in case, accents and signs."""
    source, target = resolve_name(read, wanted.source), resolve_name(read, wanted.target)
    alike = []
    for relation in read.relations(source=source, target=target):
        if words_of(relation.type) == words_of(wanted.type):
            alike.append(relation)
    return alike


def _find_facts(
    requested: Iterable[tuple[str, int | str]], known: dict[str, Entity]
) -> tuple[FactSet, ...]:
    """Return the requested facts of entities that exist, by entity, each once."""
    indexes: dict[str, FactIndex] = {}
    chosen: dict[str, dict[int, Fact]] = {}
    for name, key in requested:
        if name not in known:
            continue
        if name not in indexes:
            indexes[name] = FactIndex(known[name])
        fact = indexes[name].find(key)
        chosen.setdefault(name, {})[fact.ordinal] = fact
    sets = []
    for name, facts in chosen.items():
        in_order = sorted(facts.values(), key=lambda fact: fact.ordinal)
        sets.append(FactSet(name, tuple(in_order)))
    return tuple(sets)
