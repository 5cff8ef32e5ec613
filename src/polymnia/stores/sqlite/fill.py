"""Fill a new store with rows from elsewhere: living ones, and deleted ones, which go to the trash.

Every row keeps its own times.
Changes are in commit order, so what was deleted elsewhere counts as deleted now.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from polymnia.model import (
    Change,
    Entity,
    Fact,
    FactSet,
    Note,
    Relation,
    RelationKey,
    Rows,
)
from polymnia.stores.sqlite.store import SqliteStore

_ACTOR, _OPERATION = "polymnia", "import"
T = TypeVar("T")


class DeletedEntity(Struct, frozen=True):
    """A deleted entity with its facts, and what was deleted with it or before it.

    The relations were deleted with it, and `earlier` has the facts deleted before it.
    """

    entity: Entity
    relations: tuple[Relation, ...] = ()
    earlier: tuple[Fact, ...] = ()


class StoreContents(Struct, frozen=True, kw_only=True):
    """Everything to write.

    What is not living was deleted; `facts` belonged to living entities.
    """

    living: Rows = Rows()
    entities: tuple[DeletedEntity, ...] = ()
    facts: tuple[FactSet, ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[Note, ...] = ()


def fill(store: SqliteStore, contents: StoreContents) -> None:
    """Write the contents into an empty store."""
    for entities in _rounds(contents.entities, lambda entity: entity.entity.name):
        _write_deleted_entities(store, entities)
    for relations in _rounds(contents.relations, lambda relation: relation.key):
        _create_and_delete(store, Rows(relations=tuple(relations)))
    for notes in _rounds(contents.notes, lambda note: note.key):
        _create_and_delete(store, Rows(notes=tuple(notes)))
    living = contents.living
    deleted = {part.entity: part.facts for part in contents.facts}
    # What was deleted of a living entity is written with it, and then deleted.
    whole = [_with_facts(entity, deleted.get(entity.name, ())) for entity in living.entities]
    _apply(store, after=replace(living, entities=tuple(whole)))
    _delete_facts(store, contents.facts, living.entities)


def _write_deleted_entities(store: SqliteStore, deleted: list[DeletedEntity]) -> None:
    created: list[Entity] = []
    entities: list[Entity] = []
    earlier: list[FactSet] = []
    # A relation between two of the entities was deleted with both.
    relations: dict[RelationKey, Relation] = {}
    for item in deleted:
        created.append(_with_facts(item.entity, item.earlier))
        entities.append(item.entity)
        if item.earlier:
            earlier.append(FactSet(item.entity.name, item.earlier))
        relations |= {relation.key: relation for relation in item.relations}
    ended = tuple(relations.values())
    _apply(store, after=Rows(entities=tuple(created), relations=ended))
    _delete_facts(store, earlier, entities)
    _apply(store, before=Rows(entities=tuple(entities), relations=ended))


def _delete_facts(store: SqliteStore, sets: Iterable[FactSet], entities: Iterable[Entity]) -> None:
    """Delete facts of living entities, which remain as old as they were."""
    deleted = tuple(sets)
    _apply(store, before=Rows(facts=deleted))
    names = {item.entity for item in deleted}
    times = {entity.id: entity.updated_at for entity in entities if entity.name in names}
    if times:
        with store.writing() as writer:
            writer.set_updated(times)


def _create_and_delete(store: SqliteStore, rows: Rows) -> None:
    _apply(store, after=rows)
    _apply(store, before=rows)


def _apply(store: SqliteStore, *, before: Rows | None = None, after: Rows | None = None) -> None:
    if before or after:
        with store.writing() as writer:
            writer.apply(
                Change(_OPERATION, _ACTOR, writer.clock(), before or Rows(), after or Rows())
            )


def _rounds(values: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[list[T]]:
    """Divide values into rounds in which no key occurs twice.

    So values with the same key are written in order.
    """
    rounds: list[dict[Hashable, T]] = []
    for value in values:
        for values_by_key in rounds:
            if key(value) not in values_by_key:
                values_by_key[key(value)] = value
                break
        else:
            rounds.append({key(value): value})
    for values_by_key in rounds:
        yield list(values_by_key.values())


def _with_facts(entity: Entity, more: Iterable[Fact]) -> Entity:
    facts = sorted(chain(entity.facts, more), key=lambda fact: fact.ordinal)
    return replace(entity, facts=tuple(facts))
