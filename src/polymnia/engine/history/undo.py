"""Undo changes as one new change. What others changed since is a conflict, never overwritten."""

from collections.abc import Collection

from msgspec import Struct

from polymnia.engine.graph.relations import ends_of
from polymnia.engine.history.changes import find_actors, history_of
from polymnia.engine.history.reversal import UndoConflict, UndoPlan, plan_undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import ChangeQuery, Rows
from polymnia.stores.clock import now_us
from polymnia.stores.contract import Reader

MAX_CHANGES = 5_000


class UndoReceipt(Struct, frozen=True):
    """What an undo did or would do: changes taken back, rows before and after, and conflicts.

    The change is 0 if nothing was written: in a dry run, with conflicts that may not be skipped, or
    if nothing differs.
    """

    change: int
    at: int
    undone: tuple[int, ...]
    before: Rows
    after: Rows
    conflicts: tuple[UndoConflict, ...]


def undo(
    memory: Memory,
    changes: Collection[int],
    *,
    by: str,
    skip_conflicts: bool = False,
    overwrite: Collection[str] = (),
    dry_run: bool = False,
) -> UndoReceipt:
    """Undo the changes with these ids as one new change, which can itself be undone.

    With conflicts nothing is changed, unless they may be skipped; then everything else is undone.
    `overwrite` has the keys of conflicts that are undone anyway, with what others changed later.
    Raise BadInput for an unknown change or one that a purge has made incomplete, NotSupported in a
    store without history.
    """
    undone = tuple(sorted(set(changes)))
    if len(undone) > MAX_CHANGES:
        raise BadInput(
            f"at most {MAX_CHANGES:,} changes can be undone at once; undo the later ones first"
        )
    if dry_run:  # others may write meanwhile
        with memory.reading() as read:
            plan = _plan(memory, read, undone, now_us(), overwrite)
        return UndoReceipt(0, now_us(), undone, plan.before, plan.after, plan.conflicts)
    with memory.writing("undo", by) as transaction:
        plan = _plan(memory, transaction.read, undone, transaction.time(), overwrite)
        if skip_conflicts or not plan.conflicts:
            touched = ends_of((*plan.before.relations, *plan.after.relations))
            transaction.apply(before=plan.before, after=plan.after, touched=touched)
    change = transaction.change_id
    return UndoReceipt(change, transaction.time(), undone, plan.before, plan.after, plan.conflicts)


def _plan(
    memory: Memory, read: Reader, undone: tuple[int, ...], at: int, overwrite: Collection[str]
) -> UndoPlan:
    changes = history_of(memory, read).changes(ChangeQuery(limit=None, ids=undone))
    unknown = set(undone) - {change.id for change in changes}
    if unknown:
        raise BadInput(f"there is no change {min(unknown)}; history lists the changes")
    return plan_undo(read, changes[::-1], at, overwrite)


def changes_since(
    memory: Memory, since: int, *, actor: str | None = None, actors: Collection[str] | None = None
) -> list[int]:
    """Return the ids of all changes since a time, or of those of an actor.

    `actor` is any part of a name; `actors` are whole names. Raise BadInput for more changes than
    can be undone at once.
    """
    with memory.reading() as read:
        history = history_of(memory, read)
        if actor is not None:
            actors = find_actors(history, actor)
        chosen = None if actors is None else tuple(actors)
        query = ChangeQuery(limit=MAX_CHANGES + 1, since=since, actors=chosen)
        heads = history.change_heads(query)
    if len(heads) > MAX_CHANGES:
        raise BadInput(f"more than {MAX_CHANGES:,} changes were made since then; name a later time")
    return [head.id for head in heads]
