"""Verbs on several things at once, each one change: move observations to another entity, and tag entities."""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.entities import new_entity
from polymnia.engine.memory import Memory, Transaction
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, EntityDraft, Observation, ObservationSet, Rows


class MoveReceipt(Struct, frozen=True):
    """What a move did, or would do: how many observations moved, and how many the target had already.

    The change is 0 in a dry run and in a store without history.
    """

    change: int
    target: str
    moved: int
    known: int
    is_new: bool


class TagReceipt(Struct, frozen=True):
    """Which entities got other tags. The change is 0 if none did, and in a store without history."""

    change: int
    names: tuple[str, ...]


def move_observations(
    memory: Memory,
    chosen: Sequence[tuple[str, int]],
    target: str,
    *,
    by: str,
    new_type: str | None = None,
    dry_run: bool = False,
) -> MoveReceipt:
    """Move observations, each named by entity and ordinal, to the target. They keep their times and sources.

    A text that the target has already is only removed from its entity. A target that does not exist is created with
    `new_type`. Raise EntityNotFound, or BadInput if an entity has no such observation or is the target.
    """
    with memory.writing("move_observations", by) as transaction:
        found = {
            each.name: each
            for each in transaction.read.find({target, *(name for name, _ in chosen)})
        }
        is_new = target not in found
        if is_new and new_type is None:
            raise EntityNotFound(target)
        created = new_entity(EntityDraft(target, new_type or ""), transaction.at)
        ended = _find_chosen(found, chosen, target)
        new = _number_gained(created if is_new else found[target], ended)
        if not dry_run:
            _apply_move(
                transaction, created if is_new else found[target], ended, new, is_new=is_new
            )
    total = sum(len(each.observations) for each in ended)
    change = transaction.change.id if transaction.change else 0
    return MoveReceipt(change, target, len(new), total - len(new), is_new)


def tag(
    memory: Memory,
    names: Collection[str],
    *,
    add: Collection[str] = (),
    remove: Collection[str] = (),
    by: str,
) -> TagReceipt:
    """Add tags to the named entities and remove others. Raise EntityNotFound, or BadInput for a blank tag."""
    if not all(each.strip() for each in (*add, *remove)):
        raise BadInput("a tag is blank; give each tag at least one visible character")
    with memory.writing("tag_entities", by) as transaction:
        found = {each.name: each for each in transaction.read.find(names)}
        for name in names:
            if name not in found:
                raise EntityNotFound(name)
        pairs = [(each, _with_tags(each, add, remove, transaction.at)) for each in found.values()]
        changed = [(old, new) for old, new in pairs if old.tags != new.tags]
        transaction.apply(
            before=Rows(tuple([old for old, _ in changed])),
            after=Rows(tuple([new for _, new in changed])),
        )
    change = transaction.change.id if transaction.change else 0
    return TagReceipt(change, tuple([new.name for _, new in changed]))


def _find_chosen(
    found: dict[str, Entity], chosen: Sequence[tuple[str, int]], target: str
) -> list[ObservationSet]:
    """Return the chosen observations by entity. Raise EntityNotFound, BadInput."""
    by_entity: dict[str, dict[int, Observation]] = {}
    for name, ordinal in chosen:
        if name == target:
            raise BadInput(
                f"observation {ordinal} belongs to {target} already; choose another entity"
            )
        if name not in found:
            raise EntityNotFound(name)
        one = next((each for each in found[name].observations if each.ordinal == ordinal), None)
        if one is None:
            raise BadInput(
                f"{name} has no observation {ordinal} any more; reload to see what it has"
            )
        by_entity.setdefault(name, {})[ordinal] = one
    return [ObservationSet(name, tuple(several.values())) for name, several in by_entity.items()]


def _number_gained(target: Entity, ended: Sequence[ObservationSet]) -> tuple[Observation, ...]:
    """Return the observations that the target gains, with its next ordinals."""
    known = set(target.texts)
    gained: dict[str, Observation] = {}
    for each in ended:
        for one in each.observations:
            if one.text not in known:
                gained.setdefault(one.text, one)
    return tuple(
        [
            replace(one, ordinal=number)
            for number, one in enumerate(gained.values(), target.next_ordinal)
        ]
    )


def _apply_move(
    transaction: Transaction,
    target: Entity,
    ended: Sequence[ObservationSet],
    new: tuple[Observation, ...],
    *,
    is_new: bool,
) -> None:
    if is_new:
        whole = replace(target, observations=new, next_ordinal=target.next_ordinal + len(new))
        transaction.apply(before=Rows(observations=tuple(ended)), after=Rows((whole,)))
        return
    after = Rows(observations=(ObservationSet(target.name, new),) if new else ())
    transaction.apply(before=Rows(observations=tuple(ended)), after=after)


def _with_tags(entity: Entity, add: Collection[str], remove: Collection[str], at: int) -> Entity:
    kept = [each for each in entity.tags if each not in remove]
    return replace(entity, tags=tuple(dict.fromkeys((*kept, *add))), updated_at=at)
