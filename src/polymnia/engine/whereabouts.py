"""Find what became of a name that no entity has any more: renamed, merged into another entity, or deleted."""

from typing import Literal

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import Change, ChangeQuery
from polymnia.stores.contract import Reader

# Changes that are searched for a name, and renames that are followed.
_MAX_SEARCHED = 200
_MAX_STEPS = 10


class Whereabouts(Struct, frozen=True):
    """What became of a name: how, in which change, by whom and when.

    `now` is the present name; empty if there is none.
    """

    name: str
    how: Literal["renamed", "merged", "deleted"]
    now: str
    change: int
    at: int
    actor: str


def find_former(memory: Memory, name: str) -> Whereabouts | None:
    """Return what became of a name; None if no entity ever had it, or in a store without history."""
    if not memory.store.capabilities.history:
        return None
    with memory.reading() as read:
        first = _last_end(read, name)
        if first is None:
            return None
        step = first
        for _ in range(_MAX_STEPS):
            if not step.now or read.known([step.now]):
                break
            following = _last_end(read, step.now)
            if following is None:
                break
            step = following
        now = step.now if step.now and read.known([step.now]) else ""
    return Whereabouts(first.name, first.how, now, first.change, first.at, first.actor)


def merge_target(change: Change) -> str:
    """Return the entity into which a change merged others; empty if its rows do not tell."""
    gone = {each.name for each in change.before.entities} - {
        each.name for each in change.after.entities
    }
    names = [each.entity for each in change.after.observations] + [
        each.name for each in change.after.entities
    ]
    if not names:  # only relations were redirected, and one end of each is the target
        old = {end for each in change.before.relations for end in (each.source, each.target)}
        names = [
            end
            for each in change.after.relations
            for end in (each.source, each.target)
            if end not in old
        ]
    return next((name for name in names if name and name not in gone), "")


def _last_end(read: Reader, name: str) -> Whereabouts | None:
    """Return how the last entity of that name lost it."""
    for change in read.history.latest(ChangeQuery(limit=_MAX_SEARCHED, names=(name,))):
        ended = next((each for each in change.before.entities if each.name == name), None)
        if ended is None:
            continue
        kept = next((each for each in change.after.entities if each.id == ended.id), None)
        if kept is not None and kept.name != name:
            return Whereabouts(name, "renamed", kept.name, change.id, change.at, change.actor)
        if kept is None:
            target = merge_target(change) if change.operation == "merge_entities" else ""
            how: Literal["merged", "deleted"] = "merged" if target else "deleted"
            return Whereabouts(name, how, target, change.id, change.at, change.actor)
    return None
