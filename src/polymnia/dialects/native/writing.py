"""`remember`, `revise`, `forget` and `undo`: each one change, with a receipt that says what became of every item."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw
from msgspec.json import encode

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.lines import one_line
from polymnia.dialects.native.scope import Place, target
from polymnia.dialects.native.shapes import (
    EditShape,
    EntityShape,
    Forget,
    Items,
    RelationShape,
    Remember,
    Revise,
    Undo,
)
from polymnia.dialects.questions import Elicited, Question, confirmation
from polymnia.dialects.times import parse_moment
from polymnia.engine.forget import ForgetReceipt, Unwanted
from polymnia.engine.forget import forget as forget_rows
from polymnia.engine.remember import (
    EntityFacts,
    EntityReceipt,
    FactDraft,
    FactReceipt,
    RememberReceipt,
)
from polymnia.engine.remember import remember as remember_facts
from polymnia.engine.revise import Edit, Revision, RevisionReceipt, merge
from polymnia.engine.revise import revise as revise_entity
from polymnia.engine.secrets import SecretRule
from polymnia.engine.undo import UndoReceipt, undo_since
from polymnia.engine.undo import undo as undo_changes
from polymnia.engine.undo_plan import UndoConflict
from polymnia.errors import BadInput
from polymnia.model import Relation

_MAX_SIMILAR_LETTERS = 160
_MAX_CONFLICTS = 20
# Conflicts that the user reads before an undo.
_MAX_ASKED_CONFLICTS = 5
# Above this many rows `forget` asks the user first, or wants `confirm` if the client cannot ask.
_MAX_UNCONFIRMED = 20


def make_remember(secrets: SecretRule) -> Callable[[Call, Remember], Reply]:
    """Return the function of the tool, with the server's rule for keys and tokens."""

    def remember(call: Call, arguments: Remember) -> Reply:
        """Store facts and relations in one step. A known name is extended. The receipt has similar facts to revise."""
        if not arguments.entities and not arguments.relations:
            raise BadInput("entities or relations: give at least one")
        place = target(call, arguments.workspace)
        facts = [_facts(each, arguments.source) for each in arguments.entities]
        wanted = [_relation(each) for each in arguments.relations]
        receipt = remember_facts(place.memory, facts, wanted, by=call.by, secrets=secrets)
        return _receipt_reply(receipt, place.name)

    return remember


@tool(Revise, needs="write", returns=Items, destructive=True, brief=True)
def revise(call: Call, arguments: Revise) -> Reply:
    """Change an entity; relations follow. A new fact ends the old one, or corrects it if that was wrong."""
    place = target(call, arguments.workspace)
    revision = _revision(arguments)
    items: list[dict[str, Any]] = []
    if arguments.merge:
        merged = merge(place.memory, arguments.merge, arguments.name, by=call.by)
        items.append(
            {
                "merged": arguments.merge,
                "facts": merged.observations,
                "relations": merged.relations,
                "change": merged.change,
            }
        )
    if revision != Revision():
        items.append(
            _revision_item(revise_entity(place.memory, arguments.name, revision, by=call.by))
        )
    if not items:
        raise BadInput(
            "nothing to revise: give a new name, type, summary, tags, facts, or names to merge"
        )
    return _plain_reply(items)


@tool(Forget, needs="write", returns=Items, destructive=True, brief=True)
def forget(call: Call, arguments: Forget) -> Reply:
    """Delete facts or relations; whole deletes the entity. dry_run counts first. undo brings it back."""
    place = target(call, arguments.workspace)
    unwanted = _parse_unwanted(arguments)
    planned = forget_rows(place.memory, unwanted, by=call.by, dry_run=True)
    if not arguments.dry_run:
        _confirm_forgetting(call, planned, is_confirmed=arguments.confirm)
    receipt = planned if arguments.dry_run else forget_rows(place.memory, unwanted, by=call.by)
    return _plain_reply([_forget_item(receipt, dry_run=arguments.dry_run)])


@tool(Undo, needs="write", returns=Items, destructive=True, brief=True)
def undo(call: Call, arguments: Undo) -> Reply:
    """Take back changes by id, or all since a time, perhaps of one actor. Conflicts are named, never overwritten."""
    place = target(call, arguments.workspace)
    if bool(arguments.changes) == bool(arguments.since):
        raise BadInput("give either changes or since; history lists the changes")
    receipt = _undo(call, place, arguments, skip_conflicts=arguments.skip_conflicts)
    if (
        receipt.conflicts
        and not arguments.dry_run
        and not arguments.skip_conflicts
        and call.may_ask("elicitation")
    ):
        if not call.ask(_undo_question(receipt)).is_accepted:
            raise BadInput(f"the user declined; nothing was undone ({_conflict_text(receipt)})")
        receipt = _undo(call, place, arguments, skip_conflicts=True)
    return _plain_reply([_undone(receipt, dry_run=arguments.dry_run)])


def _facts(shape: EntityShape, source: str) -> EntityFacts:
    at = parse_moment(shape.when, "when") if shape.when else 0
    facts = tuple([FactDraft(text, at, source) for text in shape.facts])
    return EntityFacts(
        name=shape.name,
        type=shape.type,
        facts=facts,
        summary=shape.summary or None,
        tags=tuple(shape.tags),
    )


def _relation(shape: RelationShape) -> Relation:
    return Relation(shape.source, shape.target, shape.type)


def _receipt_reply(receipt: RememberReceipt, workspace: str) -> Reply:
    items = [_entity_receipt(each) for each in receipt.entities]
    items += [
        _clean({"relation": " ".join((each.relation.source, each.relation.type, each.relation.target)),
                "outcome": each.outcome, "reason": each.reason})
        for each in receipt.relations
    ]  # fmt: skip
    done = (
        f"change {receipt.change} in {workspace}"
        if receipt.change
        else f"nothing changed in {workspace}"
    )
    return _plain_reply(items, done)


def _entity_receipt(receipt: EntityReceipt) -> dict[str, Any]:
    return _clean(
        {
            "name": receipt.name,
            "type": receipt.type,
            "outcome": receipt.outcome,
            "reason": receipt.reason,
            "similar_names": list(receipt.similar_names),
            "facts": [_fact_receipt(each) for each in receipt.facts],
        }
    )


def _fact_receipt(receipt: FactReceipt) -> dict[str, Any]:
    similar = [
        f"#{each.ordinal} {one_line(each.text)[:_MAX_SIMILAR_LETTERS]}" for each in receipt.similar
    ]
    warning = f"looks like {receipt.secret}; forget it if it is secret" if receipt.secret else ""
    return _clean(
        {
            "fact": receipt.ordinal,
            "outcome": receipt.outcome,
            "reason": receipt.reason,
            "similar": similar,
            "warning": warning,
        }
    )


def _revision(arguments: Revise) -> Revision:
    return Revision(
        name=arguments.rename or None,
        type=arguments.type or None,
        summary=arguments.summary or UNSET,
        add_tags=tuple(arguments.add_tags),
        remove_tags=tuple(arguments.remove_tags),
        replace=tuple([_edit(each) for each in arguments.facts if each.wrong]),
        supersede=tuple([_edit(each) for each in arguments.facts if not each.wrong]),
    )


def _edit(shape: EditShape) -> Edit:
    return Edit(
        _reference(shape.old), shape.new, parse_moment(shape.when, "when") if shape.when else 0
    )


def _reference(text: str) -> int | str:
    """Return the number of a fact, or its text."""
    number = text.strip().removeprefix("#")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else text


def _revision_item(receipt: RevisionReceipt) -> dict[str, Any]:
    after = receipt.after
    return _clean(
        {
            "name": after.name,
            "type": after.type,
            "change": receipt.change,
            "renamed_from": receipt.before.name if receipt.before.name != after.name else "",
            "relations_moved": receipt.relations,
            "corrected": [each.new.ordinal for each in receipt.replaced],
            "superseded": [
                f"#{each.old.ordinal} by #{each.new.ordinal}" for each in receipt.superseded
            ],
        }
    )


def _parse_unwanted(arguments: Forget) -> Unwanted:
    if arguments.name and not arguments.facts and not arguments.whole:
        raise BadInput(
            f"say which facts of {arguments.name} to forget, or pass whole: true for the entity itself"
        )
    if not arguments.name and (arguments.facts or arguments.whole):
        raise BadInput("name: say which entity")
    if not arguments.name and not arguments.relations:
        raise BadInput("nothing to forget: give a name with facts, or relations")
    return Unwanted(
        entities=(arguments.name,) if arguments.whole else (),
        observations=tuple([(arguments.name, _reference(each)) for each in arguments.facts]),
        relations=tuple([_relation(each) for each in arguments.relations]),
    )


def _confirm_forgetting(call: Call, planned: ForgetReceipt, *, is_confirmed: bool) -> None:
    """Raise BadInput if much is to be deleted and the user declines, or nobody confirms where no user can be asked."""
    rows = sum(len(each.observations) + 1 for each in planned.entities) + len(planned.relations)
    rows += sum(len(each.observations) for each in planned.observations)
    if rows <= _MAX_UNCONFIRMED:
        return
    names = dict.fromkeys(
        [each.name for each in planned.entities] + [each.entity for each in planned.observations]
    )
    question = f"Forget {', '.join(names) or 'relations'}: {rows} facts and relations in all?"
    is_agreed = call.confirm(confirmation("forget", question), otherwise=is_confirmed)
    if is_agreed is None:
        raise BadInput(
            f"that would forget {rows} facts and relations: look with dry_run, or pass confirm: true"
        )
    if not is_agreed:
        raise BadInput("the user declined; nothing was forgotten")


def _forget_item(receipt: ForgetReceipt, *, dry_run: bool) -> dict[str, Any]:
    facts = sum([len(each.observations) for each in receipt.entities])
    facts += sum([len(each.observations) for each in receipt.observations])
    return _clean(
        {
            "dry_run": dry_run,
            "change": receipt.change,
            "entities": [each.name for each in receipt.entities],
            "facts": facts,
            "relations": len(receipt.relations),
            "unknown": list(receipt.unknown),
        }
    )


def _undo(call: Call, place: Place, arguments: Undo, *, skip_conflicts: bool) -> UndoReceipt:
    """Undo what the arguments say. With conflicts that may not be skipped, nothing is changed."""
    options: dict[str, Any] = {
        "by": call.by,
        "dry_run": arguments.dry_run,
        "skip_conflicts": skip_conflicts,
    }
    if arguments.changes:
        return undo_changes(place.memory, arguments.changes, **options)
    since = parse_moment(arguments.since, "since")
    return undo_since(place.memory, since, actor=arguments.actor or None, **options)


def _undo_question(receipt: UndoReceipt) -> Question[Elicited]:
    changes = (
        f"change {receipt.undone[0]}"
        if len(receipt.undone) == 1
        else f"{len(receipt.undone)} changes"
    )
    return confirmation(
        "undo", f"Undo {changes} except for what was changed since? {_conflict_text(receipt)}"
    )


def _conflict_text(receipt: UndoReceipt) -> str:
    """Return the conflicts, the first few of them."""
    told = [_describe_conflict(each) for each in receipt.conflicts[:_MAX_ASKED_CONFLICTS]]
    more = len(receipt.conflicts) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def _describe_conflict(conflict: UndoConflict) -> str:
    return f"{conflict.what}: {conflict.reason} (undoing change {conflict.change})"


def _undone(receipt: UndoReceipt, *, dry_run: bool) -> dict[str, Any]:
    """Return what was undone, or would be. If nothing was, only the conflicts and a note that says so."""
    conflicts = [_describe_conflict(each) for each in receipt.conflicts]
    is_done = dry_run or receipt.change > 0
    done: dict[str, Any] = {
        "dry_run": dry_run,
        "change": receipt.change,
        "undone": list(receipt.undone[-50:]),
        "count": len(receipt.undone),
        "removed": _count(receipt, "before"),
        "restored": _count(receipt, "after"),
    }
    shown = {
        "conflicts": conflicts[:_MAX_CONFLICTS],
        "more_conflicts": max(len(conflicts) - _MAX_CONFLICTS, 0),
    }
    why = (
        "resolve the conflicts, or pass skip_conflicts"
        if conflicts
        else "the memory is as it was before already"
    )
    return _clean(
        {
            **(done if is_done else {}),
            **shown,
            "note": "" if is_done else f"nothing was undone: {why}",
        }
    )


def _count(receipt: UndoReceipt, side: str) -> int:
    rows = getattr(receipt, side)
    facts = sum(len(each.observations) for each in (*rows.entities, *rows.observations))
    return len(rows.entities) + facts + len(rows.relations) + len(rows.notes)


def _clean(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value not in ("", [], 0, False, None)}


def _plain_reply(items: list[dict[str, Any]], note: str = "") -> Reply:
    """Return a receipt: JSON is short enough to be the text too."""
    reply = encode(Items(items=items, note=note))
    lines = [encode(each).decode() for each in items]
    return Reply("\n".join([note, *lines] if note else lines), Raw(reply))
