"""`undo`: take back changes, in one workspace or several."""

from typing import Any

from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.receipts import call_text, change_label, undo_lines
from polymnia.dialects.native.replies import clean_reply
from polymnia.dialects.native.scope import Place, other_places, places, target
from polymnia.dialects.native.shapes import Undo
from polymnia.dialects.native.writing import MAX_NUMBER_DIGITS, require_text
from polymnia.dialects.questions import confirmation
from polymnia.engine.history.changes import client_label, find_actors, history_of
from polymnia.engine.history.reversal import UndoConflict
from polymnia.engine.history.undo import UndoReceipt, changes_since
from polymnia.engine.history.undo import undo as undo_changes
from polymnia.errors import BadInput
from polymnia.model import Change, ChangeQuery
from polymnia.search.times import parse_moment

_MAX_CONFLICTS = 20
_MOVES = ("move",)
# The two changes of a move are at most this far apart, in microseconds.
_ONE_MOVE = 10_000_000


@tool(Undo, needs="write", destructive=True, brief=True)
def undo(call: Call, arguments: Undo) -> Reply:
    """Take back changes by id: {"changes":["shop:17"]}; or all since a time, also of one actor. \
What was changed again later is named and never overwritten. dry_run counts first."""
    if bool(arguments.changes) == bool(arguments.since):
        raise BadInput("give either changes or since; history lists the changes")
    parts = []
    for workspace, changes in _parse_changes(call, arguments).items():
        parts.append((target(call, workspace), replace(arguments, changes=changes)))
    if arguments.skip_conflicts:
        parts = _keep_blocked_moves(call, parts)
    else:
        _refuse_half_moves(call, parts)
    if len(parts) > 1 and not arguments.dry_run and not arguments.skip_conflicts:
        _refuse_conflicts(call, parts)
    lines = []
    for place, part in parts:
        receipt = _undo_part(call, place, part)
        lines += undo_lines(place, receipt, _list_all_conflicts(place, receipt), part.dry_run)
    return clean_reply("\n".join(lines))


def _parse_changes(call: Call, arguments: Undo) -> dict[str, list[Any]]:
    """Return the numbers of the changes by workspace. Raise BadInput."""
    numbers: dict[str, list[Any]] = {}
    if not arguments.changes:
        numbers[arguments.workspace] = []
    for change in arguments.changes:
        label = require_text(change, "changes")
        name, _, number = label.strip().rpartition(":")
        number = number.removeprefix("#")
        name = name.removeprefix("#")
        is_number = number.isascii() and number.isdigit() and len(number) <= MAX_NUMBER_DIGITS
        if not is_number or int(number) == 0:
            raise BadInput(
                f"{label!r} is not the id of a change: use e.g. personal:3; history lists them"
            )
        if name and arguments.workspace not in ("", name):
            raise BadInput(f"{label} is a change in {name}, not in {arguments.workspace}")
        workspace = name or arguments.workspace or _workspace_of(call, int(number))
        numbers.setdefault(workspace, []).append(int(number))
    return numbers


def _workspace_of(call: Call, number: int) -> str:
    """Return the workspace with a change of that number. Raise BadInput if several have one."""
    query = ChangeQuery(limit=1, after=number - 1, before=number + 1)
    names, labels = [], []
    for place in places(call):
        with place.memory.reading() as reader:
            for change in history_of(place.memory, reader).change_heads(query):
                names.append(place.name)
                actor = client_label(change.actor)
                labels.append(f"{place.name}:{number} ({change.operation}, {actor})")
    if len(names) > 1:
        raise BadInput(
            f"{number} is a change in {len(names)} workspaces: pass {' or '.join(labels)}"
        )
    return names[0] if names else ""


def _refuse_half_moves(call: Call, parts: list[tuple[Place, Undo]]) -> None:
    """Raise BadInput for half of a move: its undo would double what moved, or lose it."""
    requested: set[str] = set()
    for place, part in parts:
        requested.update(change_label(place, number) for number in part.changes)
    for place, part in parts:
        for move in _find_moves(place, part):
            half = change_label(place, move.id)
            other = _find_other_half(call, place, move)
            if other and other not in requested:
                both = call_text(None, "undo", {"changes": [half, other]})
                raise BadInput(
                    f"{half} is half of a move between workspaces, {other} is the other: call "
                    f"{both}, or pass skip_conflicts to undo one half"
                )


def _keep_blocked_moves(call: Call, parts: list[tuple[Place, Undo]]) -> list[tuple[Place, Undo]]:
    """Return the changes to undo without both halves of a move if one of them has a conflict.

    Otherwise the undo would take what moved away from both workspaces.
    """
    blocked: set[str] = set()
    for place, part in parts:
        planned = _undo(call, place, replace(part, dry_run=True), skip_conflicts=False)
        conflicting = {conflict.change for conflict in planned.conflicts}
        for move in _find_moves(place, part):
            if move.id in conflicting:
                blocked.add(_find_other_half(call, place, move))
    kept = []
    for place, part in parts:
        changes = [one for one in part.changes if change_label(place, one) not in blocked]
        if changes or not part.changes:
            kept.append((place, replace(part, changes=changes)))
    return kept


def _find_moves(place: Place, arguments: Undo) -> list[Change]:
    """Return the moves among the changes to undo."""
    query = ChangeQuery(limit=None, operations=_MOVES, ids=tuple(arguments.changes))
    with place.memory.reading() as reader:
        history = history_of(place.memory, reader)
        if not arguments.changes:
            actors = find_actors(history, arguments.actor) if arguments.actor else None
            since = parse_moment(arguments.since, "since")
            query = ChangeQuery(limit=None, operations=_MOVES, since=since, actors=actors)
        return history.changes(query)


def _find_other_half(call: Call, place: Place, move: Change) -> str:
    """Return the change in another workspace that a move made too; empty if there is none.

    The two are not linked: they have the same actor and entity, and nearly the same time.
    """
    names: set[str] = set()
    for rows in (move.before, move.after):
        names.update(entity.name for entity in rows.entities)
        names.update(part.entity for part in rows.facts)
    query = ChangeQuery(
        limit=None,
        operations=_MOVES,
        actors=(move.actor,),
        since=move.at - _ONE_MOVE,
        until=move.at + _ONE_MOVE,
        names=tuple(names),
    )
    halves = []
    own = places(call)
    for other in (*own, *other_places(call, own)):
        if other.name == place.name or not other.memory.store.capabilities.history:
            continue
        with other.memory.reading() as reader:
            for change in reader.history.changes(query):
                # One half adds what the other one only ends.
                if bool(change.after) != bool(move.after):
                    distance = abs(change.at - move.at)
                    halves.append((distance, change_label(other, change.id)))
    return min(halves)[1] if halves else ""


def _refuse_conflicts(call: Call, parts: list[tuple[Place, Undo]]) -> None:
    """Raise BadInput if one of several workspaces has a conflict: all are undone, or none."""
    for place, part in parts:
        planned = _undo(call, place, replace(part, dry_run=True), skip_conflicts=False)
        if planned.conflicts:
            conflicts = _list_conflicts(place, planned)
            raise BadInput(
                f"nothing was undone: in {place.name} {conflicts}; undo one workspace at a time, "
                "or pass skip_conflicts"
            )


def _undo_part(call: Call, place: Place, arguments: Undo) -> UndoReceipt:
    """Undo the changes of one workspace. Raise BadInput if the user declines."""
    receipt = _undo(call, place, arguments, skip_conflicts=arguments.skip_conflicts)
    # An undo with conflicts has changed nothing, so the user can still be asked.
    is_open = not arguments.dry_run and not arguments.skip_conflicts
    if receipt.conflicts and is_open and call.may_ask("elicitation"):
        changes = f"{len(receipt.undone)} changes"
        if len(receipt.undone) == 1:
            changes = f"change {receipt.undone[0]}"
        conflicts = _list_conflicts(place, receipt)
        question = f"Undo {changes} except for what was changed since? {conflicts}"
        if not call.ask(confirmation("undo", question)).is_accepted:
            raise BadInput(f"the user declined; nothing was undone ({conflicts})")
        receipt = _undo(call, place, arguments, skip_conflicts=True)
    return receipt


def _undo(call: Call, place: Place, arguments: Undo, *, skip_conflicts: bool) -> UndoReceipt:
    """Undo what the arguments say. Conflicts that may not be skipped leave the memory unchanged."""
    options: dict[str, Any] = {
        "by": call.by,
        "dry_run": arguments.dry_run,
        "skip_conflicts": skip_conflicts,
    }
    changes = arguments.changes
    if not changes:
        since = parse_moment(arguments.since, "since")
        changes = changes_since(place.memory, since, actor=arguments.actor or None)
    return undo_changes(place.memory, changes, **options)


def _list_conflicts(place: Place, receipt: UndoReceipt) -> str:
    """Return the first few conflicts, which the user reads before an undo."""
    conflicts = receipt.conflicts[:5]
    phrases = [_describe_conflict(place, conflict) for conflict in conflicts]
    if len(receipt.conflicts) > len(phrases):
        phrases.append(f"and {len(receipt.conflicts) - len(phrases)} more")
    return "; ".join(phrases)


def _describe_conflict(place: Place, conflict: UndoConflict) -> str:
    """Return what cannot be undone, why, and the change that is in the way."""
    subject = conflict.what
    if conflict.ordinal:
        subject = f"{conflict.name} #{conflict.ordinal}"
    reason = conflict.reason
    if reason.startswith("it was "):
        text = f"{subject} {reason.removeprefix('it ')}"
    else:
        text = f"{subject}: {reason}"
    if conflict.later:
        text += f" by {change_label(place, conflict.later)}"
    return text


def _advise(place: Place, conflict: UndoConflict) -> str:
    """Return a conflict with what to do about it."""
    text = _describe_conflict(place, conflict)
    if conflict.later:
        text += f": undo {change_label(place, conflict.later)} first, or pass skip_conflicts"
    return text


def _list_all_conflicts(place: Place, receipt: UndoReceipt) -> list[str]:
    """Return the conflicts, each with what to do about it."""
    # What was skipped needs no advice.
    describe = _describe_conflict if receipt.change else _advise
    conflicts = [describe(place, conflict) for conflict in receipt.conflicts[:_MAX_CONFLICTS]]
    if len(receipt.conflicts) > _MAX_CONFLICTS:
        conflicts.append(f"and {len(receipt.conflicts) - _MAX_CONFLICTS} more conflicts")
    return conflicts
