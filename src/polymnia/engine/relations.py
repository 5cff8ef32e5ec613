"""Verbs on relations: create, find, delete."""

from collections.abc import Sequence

from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Relation, Rows, TypeCount
from polymnia.stores.contract import Reader


def create(memory: Memory, relations: Sequence[Relation], *, by: str, between_known: bool = False) -> list[Relation]:
    """Create relations and return the new ones. Skip those that exist or come twice.

    With `between_known`, raise EntityNotFound and create nothing if no entity has the name of an end.
    """
    wanted = {relation.key: relation for relation in relations}
    with memory.writing("create_relations", by) as transaction:
        if between_known:
            _require_ends(transaction.read, relations)
        linked = transaction.read.linked(wanted)
        new = [relation for key, relation in wanted.items() if key not in linked]
        created = [replace(relation, created_at=transaction.at) for relation in new]
        transaction.apply(after=Rows(relations=tuple(created)))
    return created


def find(memory: Memory, *, source: str | None, target: str | None, kind: str | None) -> list[Relation]:
    """Return the relations with this source, target and type; None matches any."""
    with memory.reading() as read:
        return read.relations_like(source, target, kind)


def types(memory: Memory) -> list[TypeCount]:
    """Return the types of relations, the most frequent first."""
    with memory.reading() as read:
        return read.relation_types()


def delete(memory: Memory, relations: Sequence[Relation], *, by: str) -> list[Relation]:
    """Delete relations and return those that existed."""
    with memory.writing("delete_relations", by) as transaction:
        deleted = list(transaction.read.linked({relation.key for relation in relations}).values())
        transaction.apply(before=Rows(relations=tuple(deleted)))
    return deleted


def _require_ends(read: Reader, relations: Sequence[Relation]) -> None:
    ends = dict.fromkeys([end for each in relations for end in (each.source, each.target)])
    known = read.known(ends)
    for end in ends:
        if end not in known:
            raise EntityNotFound(end)
