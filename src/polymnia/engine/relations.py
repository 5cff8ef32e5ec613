"""Verbs on relations: create, find, rename, delete. The entities at both ends of a written relation are updated."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Relation, Rows, TypeCount
from polymnia.stores.contract import Reader


class Creation(Struct, frozen=True):
    """The relations that were created, those that existed, and the names of ends that no entity has."""

    created: list[Relation]
    existing: list[Relation]
    unknown: list[str]


def create(
    memory: Memory, relations: Sequence[Relation], *, by: str, between_known: bool = False
) -> list[Relation]:
    """Create relations and return the new ones. Skip those that exist or come twice.

    With `between_known`, raise EntityNotFound and create nothing if no entity has the name of an end.
    """
    wanted = {relation.key: relation for relation in relations}
    with memory.writing("create_relations", by) as transaction:
        if between_known:
            _require_known(transaction.read, ends_of(relations))
        linked = transaction.read.linked(wanted)
        new = [relation for key, relation in wanted.items() if key not in linked]
        created = [replace(relation, created_at=transaction.at) for relation in new]
        transaction.apply(after=Rows(relations=tuple(created)), touched=ends_of(created))
    return created


def create_known(memory: Memory, relations: Sequence[Relation], *, by: str) -> Creation:
    """Create the relations whose ends both exist, and tell what became of the others."""
    wanted = {relation.key: relation for relation in relations}
    with memory.writing("create_relations", by) as transaction:
        ends = ends_of(wanted.values())
        known = transaction.read.known(ends)
        linked = transaction.read.linked(wanted)
        new = [
            each
            for key, each in wanted.items()
            if key not in linked and {each.source, each.target} <= known
        ]
        created = [replace(relation, created_at=transaction.at) for relation in new]
        transaction.apply(after=Rows(relations=tuple(created)), touched=ends_of(created))
    existing = [linked[key] for key in wanted if key in linked]
    return Creation(created, existing, [name for name in ends if name not in known])


def find(
    memory: Memory, *, source: str | None, target: str | None, kind: str | None
) -> list[Relation]:
    """Return the relations with this source, target and type; None matches any."""
    with memory.reading() as read:
        return read.relations_like(source, target, kind)


def between(memory: Memory, one: str, other: str) -> list[Relation]:
    """Return the relations between two entities, in both directions. Raise EntityNotFound."""
    with memory.reading() as read:
        _require_known(read, (one, other))
        found = read.relations_like(one, other, None)
        return found if one == other else found + read.relations_like(other, one, None)


def rename(memory: Memory, relation: Relation, kind: str, *, by: str) -> Relation:
    """Give a relation another type and return it. Raise BadInput if it does not exist, or the other exists already."""
    renamed = replace(relation, type=kind)
    with memory.writing("update_relation_type", by) as transaction:
        found = transaction.read.linked({relation.key, renamed.key})
        if relation.key not in found:
            raise BadInput(
                f"there is no relation {relation.source} -{relation.type}-> {relation.target}"
            )
        if renamed.key == relation.key:
            return found[relation.key]
        if renamed.key in found:
            raise BadInput(
                f"the relation {relation.source} -{kind}-> {relation.target} exists already; delete one of them"
            )
        renamed = replace(found[relation.key], type=kind)
        before, after = Rows(relations=(found[relation.key],)), Rows(relations=(renamed,))
        transaction.apply(before=before, after=after, touched=ends_of([renamed]))
    return renamed


def types(memory: Memory) -> list[TypeCount]:
    """Return the types of relations, the most frequent first."""
    with memory.reading() as read:
        return read.relation_types()


def delete(memory: Memory, relations: Sequence[Relation], *, by: str) -> list[Relation]:
    """Delete relations and return those that existed."""
    with memory.writing("delete_relations", by) as transaction:
        deleted = list(transaction.read.linked({relation.key for relation in relations}).values())
        transaction.apply(before=Rows(relations=tuple(deleted)), touched=ends_of(deleted))
    return deleted


def ends_of(relations: Iterable[Relation]) -> tuple[str, ...]:
    """Return the names at the ends of the relations, each once."""
    return tuple(dict.fromkeys([end for each in relations for end in (each.source, each.target)]))


def _require_known(read: Reader, names: Sequence[str]) -> None:
    known = read.known(names)
    for name in names:
        if name not in known:
            raise EntityNotFound(name)
