"""Forget the named observations, relations, notes and entities, in one change that can be undone."""

from collections.abc import Sequence

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.engine.relations import ends_of
from polymnia.engine.revise import find_observation
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import VAULT, Entity, Note, ObservationSet, Relation, Rows
from polymnia.stores.contract import Reader


class Unwanted(Struct, frozen=True, kw_only=True):
    """What to forget: whole entities, observations by ordinal or text, relations, and notes of the vault by key."""

    entities: tuple[str, ...] = ()
    observations: tuple[tuple[str, int | str], ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[str, ...] = ()


class ForgetReceipt(Struct, frozen=True):
    """What was forgotten, or would be. `unknown` lists what does not exist. The change is 0 if nothing was changed."""

    change: int
    at: int
    entities: tuple[Entity, ...] = ()
    observations: tuple[ObservationSet, ...] = ()
    relations: tuple[Relation, ...] = ()
    notes: tuple[Note, ...] = ()
    unknown: tuple[str, ...] = ()


def forget(memory: Memory, unwanted: Unwanted, *, by: str, dry_run: bool = False) -> ForgetReceipt:
    """Delete what is named, as one change; with `dry_run` only return what would be deleted.

    A whole entity takes its observations and relations along. Raise BadInput if an entity has no such observation.
    """
    if dry_run:
        with memory.reading() as read:
            rows, unknown = _rows(memory, read, unwanted)
        return ForgetReceipt(
            0, 0, rows.entities, rows.observations, rows.relations, rows.notes, unknown
        )
    with memory.writing("forget", by) as transaction:
        rows, unknown = _rows(memory, transaction.read, unwanted)
        transaction.apply(before=rows, touched=ends_of(rows.relations))
    change = transaction.change.id if transaction.change else 0
    return ForgetReceipt(
        change,
        transaction.at,
        rows.entities,
        rows.observations,
        rows.relations,
        rows.notes,
        unknown,
    )


def _rows(memory: Memory, read: Reader, unwanted: Unwanted) -> tuple[Rows, tuple[str, ...]]:
    """Return the rows to delete, and what is named and does not exist."""
    owners = {name for name, _ in unwanted.observations}
    found = {each.name: each for each in read.find({*unwanted.entities, *owners})}
    whole = [found[name] for name in dict.fromkeys(unwanted.entities) if name in found]
    sets = _observations(
        [each for each in unwanted.observations if each[0] not in unwanted.entities], found
    )
    relations = read.linked({each.key for each in unwanted.relations})
    touching = (
        {each.key: each for each in read.touching([each.name for each in whole])} if whole else {}
    )
    notes = [(key, _note(memory, read, key)) for key in dict.fromkeys(unwanted.notes)]
    named = dict.fromkeys((*unwanted.entities, *(name for name, _ in unwanted.observations)))
    missing = [name for name in named if name not in found]
    missing += [
        " ".join((each.source, each.type, each.target))
        for each in unwanted.relations
        if each.key not in relations
    ]
    missing += [key for key, note in notes if note is None]
    present = tuple([note for _, note in notes if note is not None])
    return Rows(tuple(whole), sets, tuple((relations | touching).values()), present), tuple(missing)


def _observations(
    wanted: Sequence[tuple[str, int | str]], found: dict[str, Entity]
) -> tuple[ObservationSet, ...]:
    """Return the wanted observations of entities that exist, by entity, each once."""
    chosen: dict[str, dict[int, object]] = {}
    for name, which in wanted:
        if name in found:
            chosen.setdefault(name, {})[find_observation(found[name], which).ordinal] = which
    return tuple(
        [
            ObservationSet(
                name, tuple([each for each in found[name].observations if each.ordinal in ordinals])
            )
            for name, ordinals in chosen.items()
        ]
    )


def _note(memory: Memory, read: Reader, key: str) -> Note | None:
    if not memory.store.capabilities.notes:
        raise BadInput(f"this store has no notes; {USE_A_DATABASE}")
    return read.notes.find(VAULT, key)
