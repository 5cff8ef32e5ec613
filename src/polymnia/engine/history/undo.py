"""Undo changes as one new change. What others changed since is a conflict, never overwritten."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from polymnia.engine.graph.relations import ends_of
from polymnia.engine.history.changes import find_actors, history_of
from polymnia.engine.history.reversal import UndoConflict, plan_undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import Change, ChangeQuery, Rows
from polymnia.stores.clock import now_us
from polymnia.stores.contract import HistoryReader

MAX_CHANGES = 5_000

# Called when a step begins, with its number, how many there are, and the share of the work that is
# done.
StepListener = Callable[[int, int, float], None]
FindChanges = Callable[[HistoryReader], list[Change]]


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
    on_step: StepListener | None = None,
) -> UndoReceipt:
    """Undo the changes with these ids as one new change, which can itself be undone.

    With conflicts nothing is changed, unless they may be skipped; then everything else is undone.
    `overwrite` has the keys of conflicts that are undone anyway, with what others changed later.
    Raise BadInput for an unknown change or one that a purge has made incomplete, NotSupported in a
    store without history.
    """
    wanted = sorted(set(changes))
    return _undo(
        memory,
        lambda history: _find_all(history, wanted),
        by,
        skip_conflicts,
        overwrite,
        dry_run,
        on_step,
    )


def undo_since(
    memory: Memory,
    since: int,
    *,
    by: str,
    actor: str | None = None,
    actors: Collection[str] | None = None,
    skip_conflicts: bool = False,
    overwrite: Collection[str] = (),
    dry_run: bool = False,
    on_step: StepListener | None = None,
) -> UndoReceipt:
    """Undo all changes since a time, or all of an actor, as `undo` does.

    `actor` is any part of a name; `actors` are whole names.
    """
    chosen = None if actors is None else tuple(actors)
    return _undo(
        memory,
        lambda history: _find_since(history, since, actor, chosen),
        by,
        skip_conflicts,
        overwrite,
        dry_run,
        on_step,
    )


def _undo(
    memory: Memory,
    find: FindChanges,
    by: str,
    skip_conflicts: bool,
    overwrite: Collection[str],
    dry_run: bool,
    on_step: StepListener | None,
) -> UndoReceipt:
    # The shares of processor time were measured with 20,000 rows.
    done_before = {"read": 0.0, "plan": 0.08, "write": 0.74}

    def begin(step: str) -> None:
        if on_step is not None:
            on_step(list(done_before).index(step) + 1, len(done_before), done_before[step])

    begin("read")
    if dry_run:  # others may write meanwhile
        with memory.reading() as read:
            changes = find(history_of(memory, read))
            begin("plan")
            plan = plan_undo(read, changes, now_us(), overwrite)
        undone = tuple(change.id for change in changes)
        return UndoReceipt(0, now_us(), undone, plan.before, plan.after, plan.conflicts)
    with memory.writing("undo", by) as transaction:
        changes = find(history_of(memory, transaction.read))
        begin("plan")
        plan = plan_undo(transaction.read, changes, transaction.at, overwrite)
        begin("write")
        if skip_conflicts or not plan.conflicts:
            touched = ends_of((*plan.before.relations, *plan.after.relations))
            transaction.apply(before=plan.before, after=plan.after, touched=touched)
    change_id = transaction.change_id
    undone = tuple(change.id for change in changes)
    return UndoReceipt(change_id, transaction.at, undone, plan.before, plan.after, plan.conflicts)


def _find_all(history: HistoryReader, wanted: Sequence[int]) -> list[Change]:
    """Return the changes with these ids, which are in order.

    Raise BadInput if one does not exist.
    """
    if len(wanted) > MAX_CHANGES:
        raise BadInput(
            f"at most {MAX_CHANGES:,} changes can be undone at once; undo the later ones first"
        )
    changes = []
    for number in wanted:
        with_id = history.changes(ChangeQuery(after=number - 1, before=number + 1))
        if not with_id:
            raise BadInput(f"there is no change {number}; history lists the changes")
        changes += with_id
    return changes


def _find_since(
    history: HistoryReader, since: int, actor: str | None, actors: tuple[str, ...] | None
) -> list[Change]:
    if actor is not None:
        actors = find_actors(history, actor)
    changes = history.changes(ChangeQuery(limit=MAX_CHANGES + 1, since=since, actors=actors))
    if len(changes) > MAX_CHANGES:
        raise BadInput(f"more than {MAX_CHANGES:,} changes were made since then; name a later time")
    return changes[::-1]
