"""Verbs on relations: create and delete."""

from collections.abc import Sequence

from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Relation, Rows
from polymnia.stores.contract import Reader


def create(memory: Memory, relations: Sequence[Relation], *, by: str, between_known: bool = False) -> list[Relation]:
    """The relations that were created; those that exist, or come twice, are left as they are.

    With `between_known`, raises EntityNotFound and creates nothing when an end is a name that no entity has.
    """
    wanted = {relation.key: relation for relation in relations}
    with memory.writing("create_relations", by) as transaction:
        if between_known:
            _refuse_unknown_ends(transaction.read, relations)
        linked = transaction.read.linked(wanted)
        fresh = [relation for key, relation in wanted.items() if key not in linked]
        created = [replace(relation, created_at=transaction.at) for relation in fresh]
        transaction.apply(after=Rows(relations=tuple(created)))
    return created


def delete(memory: Memory, relations: Sequence[Relation], *, by: str) -> list[Relation]:
    """The relations that were deleted; those that do not exist are passed over."""
    with memory.writing("delete_relations", by) as transaction:
        deleted = list(transaction.read.linked({relation.key for relation in relations}).values())
        transaction.apply(before=Rows(relations=tuple(deleted)))
    return deleted


def _refuse_unknown_ends(read: Reader, relations: Sequence[Relation]) -> None:
    ends = dict.fromkeys([end for each in relations for end in (each.source, each.target)])
    known = read.known(ends)
    for end in ends:
        if end not in known:
            raise EntityNotFound(end)
