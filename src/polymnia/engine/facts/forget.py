"""Forget entities, observations, relations and notes, in one change that can be undone."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.names import resolve_name
from polymnia.engine.facts.revise import ObservationIndex
from polymnia.engine.graph.relations import ends_of
from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import (
    VAULT,
    Change,
    ChangeQuery,
    Entity,
    Note,
    Observation,
    ObservationSet,
    Relation,
    Rows,
)
from polymnia.search.terms import words_of
from polymnia.stores.contract import Reader, find_note

# What an erasure cannot reach.
_COPIES = "Backups, exports and copies made earlier still hold it"
_SERVER = "the database server keeps deleted rows until its next VACUUM and in its archived log"


class Unwanted(Struct, frozen=True, kw_only=True):
    """What to forget. Observations are named by entity and by ordinal or text, notes by key."""

    entities: tuple[str, ...] = ()
    observations: tuple[tuple[str, int | str], ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[str, ...] = ()


class ForgetReceipt(Struct, frozen=True):
    """What was forgotten, or would be, and the names of what does not exist.

    The change is 0 if nothing was changed.
    """

    change: int
    at: int
    entities: tuple[Entity, ...] = ()
    observations: tuple[ObservationSet, ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[Note, ...] = ()
    unknown: tuple[str, ...] = ()


class ErasureReceipt(Struct, frozen=True):
    """What was erased, or would be, without its text, and the names of what does not exist."""

    erased: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def forget(memory: Memory, unwanted: Unwanted, *, by: str, dry_run: bool = False) -> ForgetReceipt:
    """Delete what is named, as one change; with `dry_run` only return what would be deleted.

    A whole entity takes its observations and relations along. Raise BadInput if an entity has no
    such observation.
    """
    if dry_run:
        with memory.reading() as read:
            rows, unknown = _find_rows(memory, read, unwanted)
        change, at = 0, 0
    else:
        with memory.writing("forget", by) as transaction:
            rows, unknown = _find_rows(memory, transaction.read, unwanted)
            transaction.apply(before=rows, touched=ends_of(rows.relations))
        change, at = transaction.change_id, transaction.at
    return ForgetReceipt(
        change, at, rows.entities, rows.observations, rows.relations, rows.notes, tuple(unknown)
    )


def erase(memory: Memory, unwanted: Unwanted, *, by: str, dry_run: bool = False) -> ErasureReceipt:
    """Forget what is named, and remove it from the history and from the store's files.

    All versions of a fact go, and a fact that ended earlier can be named by its number. It cannot
    be undone. A dry run only says what would go. Raise BadInput as `forget` does, and for a store
    that keeps its history in memory.
    """
    capabilities = memory.store.capabilities
    if capabilities.history and not capabilities.trash:
        raise BadInput("a memory that is not on disk cannot be erased: stop its server instead")
    past = _PastFacts(memory, unwanted)
    living = forget(memory, past.living(unwanted), by=by, dry_run=dry_run)
    names = [entity.name for entity in living.entities]
    facts = [f"{name} #{ordinal}" for name, ordinal in past.ended]
    texts = list(past.texts)
    for part in living.observations:
        for fact in part.observations:
            facts.append(f"{part.entity} #{fact.ordinal}")
            texts.append(fact.text)
    for entity in living.entities:
        texts += entity.texts
    if not dry_run and (texts or names):
        if capabilities.trash:
            memory.store.erase(texts, names)
        else:
            memory.store.compact()  # a log keeps deleted records until then
    return ErasureReceipt((*names, *facts), living.unknown)


def erased_remains(memory: Memory) -> str:
    """Return a sentence on what an erasure cannot reach."""
    if memory.store.capabilities.keeps_deleted:
        return f"{_COPIES}, and {_SERVER}."
    return f"{_COPIES}."


class _PastFacts:
    """The versions that facts had: their texts, and which of the facts ended earlier."""

    def __init__(self, memory: Memory, unwanted: Unwanted) -> None:
        self.texts: set[str] = set()
        self.ended: list[tuple[str, int]] = []
        self._memory = memory
        self._numbers: dict[str, set[int]] = {}
        for name, key in unwanted.observations:
            if isinstance(key, int):
                self._numbers.setdefault(name, set()).add(key)
        if memory.store.capabilities.history:
            for name in {*unwanted.entities, *self._numbers}:
                self._read(name, is_whole=name in unwanted.entities)

    def living(self, unwanted: Unwanted) -> Unwanted:
        """Return what is named without the facts that ended earlier."""
        ended = set(self.ended)
        facts = [key for key in unwanted.observations if key not in ended]
        return replace(unwanted, observations=tuple(facts))

    def _read(self, name: str, *, is_whole: bool) -> None:
        with self._memory.reading() as read:
            living = find_by_name(read, [name])
            changes = read.history.changes(ChangeQuery(limit=None, names=(name,)))
        present = {fact.ordinal for entity in living.values() for fact in entity.observations}
        numbers = self._numbers.get(name, set())
        past: set[int] = set()
        for change in changes:
            for fact in _facts_of(change, name):
                if is_whole or fact.ordinal in numbers:
                    self.texts.add(fact.text)
                    past.add(fact.ordinal)
        self.ended += [(name, number) for number in sorted(numbers & past - present)]


def _facts_of(change: Change, name: str) -> Iterator[Observation]:
    """Yield the facts of an entity on both sides of a change."""
    for rows in (change.before, change.after):
        for entity in rows.entities:
            if entity.name == name:
                yield from entity.observations
        for part in rows.observations:
            if part.entity == name:
                yield from part.observations


def _find_rows(memory: Memory, read: Reader, unwanted: Unwanted) -> tuple[Rows, list[str]]:
    """Return the rows to delete, and what is named and does not exist."""
    names = dict.fromkeys((*unwanted.entities, *(name for name, _ in unwanted.observations)))
    known = find_by_name(read, names.keys())
    unknown = [name for name in names if name not in known]
    whole = {name: known[name] for name in unwanted.entities if name in known}
    parts = [(name, key) for name, key in unwanted.observations if name not in whole]
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
        note = _find_note(memory, read, key)
        if note is None:
            unknown.append(key)
        else:
            notes.append(note)
    rows = Rows(
        tuple(whole.values()),
        _find_observations(parts, known),
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


def _find_observations(
    requested: Iterable[tuple[str, int | str]], known: dict[str, Entity]
) -> tuple[ObservationSet, ...]:
    """Return the requested observations of entities that exist, by entity, each once."""
    indexes: dict[str, ObservationIndex] = {}
    chosen: dict[str, dict[int, Observation]] = {}
    for name, key in requested:
        if name not in known:
            continue
        if name not in indexes:
            indexes[name] = ObservationIndex(known[name])
        observation = indexes[name].find(key)
        chosen.setdefault(name, {})[observation.ordinal] = observation
    sets = []
    for name, observations in chosen.items():
        in_order = sorted(observations.values(), key=lambda observation: observation.ordinal)
        sets.append(ObservationSet(name, tuple(in_order)))
    return tuple(sets)


def _find_note(memory: Memory, read: Reader, key: str) -> Note | None:
    if not memory.store.capabilities.notes:
        raise BadInput(f"this store has no notes; {USE_A_DATABASE}")
    return find_note(read.notes, VAULT, key)
