"""Verbs on observations by their ordinals, which are stable: append, replace, delete."""

from collections.abc import Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace as with_values

from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, Observation, ObservationDraft, ObservationSet, Rows
from polymnia.search.dates import stamped_time


class OrdinalDraft(Struct, frozen=True):
    """Observations of the named entity, by ordinal."""

    entity: str
    ordinals: tuple[int, ...]


class Deletion(Struct, frozen=True):
    """Which of the wanted ordinals of an entity were deleted, and which it does not have."""

    entity: str
    deleted: tuple[int, ...]
    missing: tuple[int, ...]


def append(
    memory: Memory, additions: Sequence[ObservationDraft], *, by: str
) -> list[ObservationSet | None]:
    """Append observations, repeats included, and return them, one set per addition; None for an unknown name."""
    with memory.writing("add_observations", by) as transaction:
        entities = {
            each.name: each for each in transaction.read.find({each.entity for each in additions})
        }
        ordinals = {name: each.next_ordinal for name, each in entities.items()}
        # One microsecond apart, so that their times show the order in which they were given.
        times = count(transaction.at)
        added: list[ObservationSet | None] = []
        for each in additions:
            if each.entity not in entities:
                added.append(None)
                continue
            numbered = enumerate(each.texts, ordinals[each.entity])
            new = tuple(
                [_observation(ordinal, text, next(times), each) for ordinal, text in numbered]
            )
            ordinals[each.entity] += len(new)
            added.append(ObservationSet(each.entity, new))
        transaction.apply(
            after=Rows(observations=_by_entity([each for each in added if each is not None]))
        )
    return added


def _observation(ordinal: int, text: str, at: int, draft: ObservationDraft) -> Observation:
    return Observation(ordinal, text, at, draft.valid_at or stamped_time(text), draft.source)


def replace(memory: Memory, entity: str, ordinal: int, text: str, *, by: str) -> Observation:
    """Replace the text of one observation, which keeps its ordinal; return what it was.

    Raise EntityNotFound, or BadInput if the entity has no such observation.
    """
    with memory.writing("replace_observation", by) as transaction:
        old = _find(transaction.read.find([entity]), entity, ordinal)
        new = with_values(old, text=text, created_at=transaction.at)
        before, after = ObservationSet(entity, (old,)), ObservationSet(entity, (new,))
        if text != old.text:
            transaction.apply(
                before=Rows(observations=(before,)), after=Rows(observations=(after,))
            )
    return old


def delete(memory: Memory, deletions: Sequence[OrdinalDraft], *, by: str) -> list[Deletion]:
    """Delete observations. The others keep their ordinals. Of an unknown entity every ordinal is missing."""
    with memory.writing("delete_observations", by) as transaction:
        entities = {
            each.name: each for each in transaction.read.find({each.entity for each in deletions})
        }
        living = {
            name: {one.ordinal: one for one in each.observations} for name, each in entities.items()
        }
        results, ended = [], []
        for each in deletions:
            has = living.get(each.entity, {})
            wanted = tuple(dict.fromkeys(each.ordinals))
            gone = [has.pop(ordinal) for ordinal in wanted if ordinal in has]
            deleted = tuple([one.ordinal for one in gone])
            missing = tuple([ordinal for ordinal in wanted if ordinal not in deleted])
            results.append(Deletion(each.entity, deleted, missing))
            ended.append(ObservationSet(each.entity, tuple(gone)))
        transaction.apply(before=Rows(observations=_by_entity(ended)))
    return results


def _find(found: list[Entity], entity: str, ordinal: int) -> Observation:
    if not found:
        raise EntityNotFound(entity)
    for each in found[0].observations:
        if each.ordinal == ordinal:
            return each
    has = ", ".join(str(each.ordinal) for each in found[0].observations[:20]) or "none"
    raise BadInput(f"{entity} has no observation with ordinal {ordinal}; it has {has}")


def _by_entity(sets: Sequence[ObservationSet]) -> tuple[ObservationSet, ...]:
    """Return one set per entity, without empty ones: a change names each entity once."""
    joined: dict[str, tuple[Observation, ...]] = {}
    for each in sets:
        joined[each.entity] = joined.get(each.entity, ()) + each.observations
    return tuple(
        [ObservationSet(entity, all_of_it) for entity, all_of_it in joined.items() if all_of_it]
    )
