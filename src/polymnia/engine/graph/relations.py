"""Verbs on relations: create, find, rename, delete. Writing a relation updates both its ends."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Relation, Rows, TypeCount
from polymnia.stores.contract import Reader

# `ADR-7 supersedes ADR-3`: the facts of the latter are no longer the last word.
SUPERSEDING_RELATIONS = ("supersedes", "replaces")


class CreatedRelations(Struct, frozen=True):
    """The new relations, those that existed, and the names of ends that no entity has."""

    new: list[Relation]
    existing: list[Relation]
    unknown_ends: list[str]


def create(
    memory: Memory,
    relations: Sequence[Relation],
    *,
    by: str,
    unknown_ends: Literal["keep", "skip", "refuse"] = "keep",
) -> CreatedRelations:
    """Create relations, each once.

    If no entity has the name of an end, keep the relation, skip it, or refuse all: raise
    EntityNotFound and create nothing.
    """
    requested = {relation.key: relation for relation in relations}
    with memory.writing("create_relations", by) as transaction:
        ends = ends_of(requested.values())
        known = set(ends)
        if unknown_ends != "keep":
            known = transaction.read.existing_names(ends)
        if unknown_ends == "refuse":
            require_known(ends, known)
        present = transaction.read.find_relations(requested)
        new = []
        for key, relation in requested.items():
            if key not in present and known.issuperset(relation.ends):
                new.append(replace(relation, created_at=transaction.time()))
        transaction.apply(after=Rows(relations=tuple(new)), touched=ends_of(new))
    existing = [present[key] for key in requested if key in present]
    return CreatedRelations(new, existing, [name for name in ends if name not in known])


def find_successors(read: Reader, names: Collection[str]) -> dict[str, str]:
    """Return which entity supersedes each of the names that one does."""
    successors = {}
    for relation in read.relations(names) if names else []:
        if relation.type in SUPERSEDING_RELATIONS and relation.target in names:
            successors[relation.target] = relation.source
    return successors


def find(
    memory: Memory, *, source: str | None, target: str | None, kind: str | None
) -> list[Relation]:
    """Return the relations with this source, target and type; None matches any."""
    with memory.reading() as read:
        return read.relations(source=source, target=target, kind=kind)


def between(memory: Memory, one: str, other: str) -> list[Relation]:
    """Return the relations between two entities, in both directions. Raise EntityNotFound."""
    with memory.reading() as read:
        require_known((one, other), read.existing_names((one, other)))
        relations = read.relations(source=one, target=other, kind=None)
        if one != other:
            relations += read.relations(source=other, target=one, kind=None)
        return relations


def rename(memory: Memory, relation: Relation, kind: str, *, by: str) -> Relation:
    """Give a relation another type and return it.

    Raise BadInput if it does not exist, or if the ends have a relation of the new type already.
    """
    source, target, old_kind = relation.key
    with memory.writing("update_relation_type", by) as transaction:
        present = transaction.read.find_relations({relation.key, (source, target, kind)})
        old = present.get(relation.key)
        if old is None:
            raise BadInput(f"there is no relation {source} -{old_kind}-> {target}")
        if kind == old_kind:
            return old
        if (source, target, kind) in present:
            raise BadInput(
                f"the relation {source} -{kind}-> {target} exists already; delete one of them"
            )
        new = replace(old, type=kind)
        transaction.apply(
            before=Rows(relations=(old,)), after=Rows(relations=(new,)), touched=ends_of([new])
        )
    return new


def types(memory: Memory) -> list[TypeCount]:
    """Return the types of relations, the most frequent first."""
    with memory.reading() as read:
        return read.type_counts("relations")


def delete(memory: Memory, relations: Sequence[Relation], *, by: str) -> list[Relation]:
    """Delete relations and return those that existed."""
    keys = {relation.key for relation in relations}
    with memory.writing("delete_relations", by) as transaction:
        deleted = list(transaction.read.find_relations(keys).values())
        transaction.apply(before=Rows(relations=tuple(deleted)), touched=ends_of(deleted))
    return deleted


def ends_of(relations: Iterable[Relation]) -> tuple[str, ...]:
    """Return the names at the ends of the relations, each once."""
    return tuple(dict.fromkeys(end for relation in relations for end in relation.ends))


def relations_among(read: Reader, names: set[str]) -> list[Relation]:
    """Return the relations whose ends are both among the names."""
    return [relation for relation in read.relations(names) if names.issuperset(relation.ends)]


def redirect(relation: Relation, old: Collection[str], new: str) -> Relation:
    """Return the relation with the new name at every end that had one of the old ones."""
    source, target = relation.ends
    if source in old:
        source = new
    if target in old:
        target = new
    return Relation(source, target, relation.type, relation.created_at)


def require_known(names: Iterable[str], known: Collection[str]) -> None:
    """Raise EntityNotFound for the first of the names that is not known."""
    for name in names:
        if name not in known:
            raise EntityNotFound(name)
