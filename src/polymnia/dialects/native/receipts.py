"""Receipts as text: what was stored, then a line for each exception with the call that mends it."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.json import encode
from msgspec.structs import replace

from polymnia.dialects.native.scope import Place
from polymnia.engine.curation.contradictions import find_changed, says_more
from polymnia.engine.facts.forget import ForgetReceipt
from polymnia.engine.facts.relocate import Relocation
from polymnia.engine.facts.remember import EntityReceipt, FactReceipt, RememberReceipt
from polymnia.engine.facts.revise import RevisionReceipt
from polymnia.engine.facts.secrets import find_secret, mask_secret
from polymnia.engine.history.changes import superseded_facts
from polymnia.engine.history.undo import UndoReceipt
from polymnia.engine.memory import find_by_name
from polymnia.engine.recall.names import similar_names
from polymnia.search.dates import day_of
from polymnia.search.pieces import MAX_WHOLE_CHARACTERS
from polymnia.search.question import content_words
from polymnia.search.terms import count_noun, one_line
from polymnia.search.times import day_name

# More facts than these are only counted.
_MAX_NAMED_FACTS = 3
_MAX_QUOTED_LETTERS = 80
_MAX_UNDONE_LINES = 20


def change_label(place: Place, change: int) -> str:
    """Return the id of a change with its workspace, as undo takes it: `shop:3`."""
    return f"{place.name}:{change}"


def remember_lines(
    place: Place, receipt: RememberReceipt, others: Sequence[Place] = ()
) -> list[str]:
    """Return what was stored, and then the exceptions. `others` may know an end of a relation."""
    lines = [_stored_line(place, receipt)]
    for entity in receipt.entities:
        lines += _entity_exceptions(place, entity)
    for given, name in receipt.guessed_ends.items():
        lines.append(f'! "{given}" was taken as {name}.')
    lines += _unknown_ends(place, receipt, others)
    return [one_line(line) for line in lines]


def _unknown_ends(place: Place, receipt: RememberReceipt, others: Sequence[Place]) -> Iterator[str]:
    """Yield the ends of relations without an entity, and the names that may have been meant."""
    unknown = dict.fromkeys([name for one in receipt.relations for name in one.unknown])
    for other in others if unknown else ():
        with other.memory.reading() as reader:
            for name in reader.existing_names(unknown):
                del unknown[name]
    for number, name in enumerate(unknown):
        similar: list[str] = []
        if number < 5:  # each reads all names
            similar = similar_names(place.memory, name)
        advice = "remember what is known of it."
        if similar:
            meant = "forget the relation and remember it with that name"
            advice = f"{advice} Similar: {', '.join(similar)}. If one is meant: {meant}."
        yield f'! "{name}" has no entity yet: {advice}'


def _stored_line(place: Place, receipt: RememberReceipt) -> str:
    new_facts, known_facts = [], []
    for entity in receipt.entities:
        for fact in entity.facts:
            if fact.outcome == "added" or fact.replaced:
                new_facts.append((entity, fact))
            else:
                known_facts.append((entity, fact))
    new_relations = [relation for relation in receipt.relations if relation.outcome == "created"]
    known_relations = len(receipt.relations) - len(new_relations)
    changed_names = [entity.name for entity in receipt.entities if entity.outcome != "unchanged"]
    if not changed_names and not new_relations:
        return _known_line(known_facts, known_relations)
    parts = []
    if new_facts:
        parts.append(_name_facts(new_facts))
    else:
        parts += _name_few(changed_names, "entity")
    if new_relations:
        parts.append(count_noun(len(new_relations), "relation"))
    known = len(known_facts) + known_relations
    line = f"stored {', '.join(parts)}"
    if known:
        line += f" ({known} known)"
    return labelled(place, receipt.change, f"{line}.")


def _known_line(facts: Sequence[tuple[EntityReceipt, FactReceipt]], relations: int) -> str:
    parts = []
    if facts:
        parts.append(_name_facts(facts))
    if relations:
        parts.append(count_noun(relations, "relation"))
    count = len(facts) + relations
    verb = "is" if count == 1 else "are"
    if not parts:
        return "nothing new: this is stored already."
    return f"nothing new: {', '.join(parts)} {verb} stored already."


def _name_facts(facts: Sequence[tuple[EntityReceipt, FactReceipt]]) -> str:
    """Return a few facts by number, or how many there are."""
    if len(facts) <= _MAX_NAMED_FACTS:
        return ", ".join(_name_fact(entity, fact) for entity, fact in facts)
    entities = {entity.name: entity for entity, _ in facts}
    text = f"{count_noun(len(facts), 'fact')} of {count_noun(len(entities), 'entity')}"
    created = sum(entity.outcome == "created" for entity in entities.values())
    return f"{text} ({created} new)" if created else text


def _name_fact(entity: EntityReceipt, fact: FactReceipt) -> str:
    text = f"{entity.name} #{fact.ordinal}"
    if fact.replaced:
        then = f" on {day_name(fact.replaced_at)}" if fact.replaced_at else ""
        text += f" (replaces #{fact.replaced}{then})"
    return text


def _entity_exceptions(place: Place, entity: EntityReceipt) -> Iterator[str]:
    name = entity.name
    if entity.given:
        yield f'! "{entity.given}" was taken as {name}.'
    if entity.reason:
        yield f"! {name}: {entity.reason}."
    if entity.similar_names:
        mend = call_text(place, "revise", {"name": entity.similar_names[0], "merge": [name]})
        similar = ", ".join(entity.similar_names)
        yield f"! {name} is new; similar: {similar}. If it is the same: {mend}"
    for fact in entity.facts:
        subject = f"{name} #{fact.ordinal}"
        yield from _similar_lines(place, name, fact)
        if fact.outcome == "added" and len(fact.text) > MAX_WHOLE_CHARACTERS:
            size = f"has {len(fact.text):,} characters: stored whole, searched by passages"
            yield f"! {subject} {size}. Short facts are found better."
        if fact.secret:
            unwanted = {"name": name, "facts": [f"#{fact.ordinal}"]}
            yield _secret_line(place, subject, fact.secret, unwanted)


def _secret_line(place: Place, subject: str, kind: str, unwanted: dict[str, Any]) -> str:
    mend = call_text(place, "forget", {**unwanted, "erase": True, "confirm": True})
    return f"! {subject} looks like {kind}. Ask the user, then remove it for good: {mend}"


def attribute_secrets(place: Place, name: str, texts: dict[str, str]) -> Iterator[str]:
    """Yield a line for each new text of an entity that looks like a key or token."""
    if place.memory.secrets == "warn":
        for what, text in texts.items():
            if kind := find_secret(text):
                unwanted = {"name": name, "whole": True}
                yield one_line(_secret_line(place, f"{what} of {name}", kind, unwanted))


def _similar_lines(place: Place, name: str, fact: FactReceipt) -> Iterator[str]:
    """Yield what a new fact may contradict, and the call that settles it."""
    if fact.older is not None:
        edit = {"old": f"#{fact.older.ordinal}", "new": f"#{fact.ordinal}"}
        mend = call_text(place, "revise", {"name": name, "facts": [edit]})
        quoted = f'#{fact.older.ordinal} "{_quote(fact.older.text)}"'
        advice = f"If it replaces all of it: {mend}"
        if says_more(fact.older.text, fact.text):
            advice = f"If a part changed: correct #{fact.older.ordinal}, and keep the rest."
        yield f"! {name} #{fact.ordinal} may contradict {quoted}. {advice}"
    if fact.conflict is None:
        return
    other, older = fact.conflict.entity, fact.conflict.fact
    quoted = f'{other} #{older.ordinal} "{_quote(older.text)}"'
    line = f"! {name} #{fact.ordinal} may contradict {quoted}."
    words = set(content_words(fact.text))
    lost = [word for word in content_words(older.text) if word not in words]
    # A call that would lose more words of the older fact is not proposed.
    if len(lost) > 2 or says_more(older.text, fact.text):
        line += f" If that is no longer true: correct {other} #{older.ordinal}."
    elif fact.text == mask_secret(fact.text):  # the call would repeat a secret
        edit = {"old": f"#{older.ordinal}", "new": fact.text}
        revision = call_text(place, "revise", {"name": other, "facts": [edit]})
        removal = call_text(place, "forget", {"name": name, "facts": [f"#{fact.ordinal}"]})
        line += f" If it replaces all of it: {revision} and {removal}"
    yield line


def _quote(text: str) -> str:
    return one_line(mask_secret(text))[:_MAX_QUOTED_LETTERS]


def call_text(place: Place | None, tool: str, arguments: dict[str, Any]) -> str:
    """Return a call as a model can make it. It names a workspace that is not the default."""
    if place is not None and not place.is_default:
        arguments = {**arguments, "workspace": place.name}
    return f"{tool} {encode(arguments).decode()}"


def revision_lines(place: Place, receipt: RevisionReceipt) -> list[str]:
    """Return what a revision changed."""
    before, after = receipt.before, receipt.after
    parts = []
    for edit in receipt.superseded:
        then = f" on {day_name(edit.new.valid_at)}" if edit.new.valid_at > receipt.at else ""
        parts.append(f"#{edit.old.ordinal} replaced by #{edit.new.ordinal}{then}")
    for edit in receipt.replaced:
        parts.append(f"#{edit.new.ordinal} corrected")
    for edit in receipt.retracted:
        parts.append(f"#{edit.old.ordinal} was never true, #{edit.new.ordinal} stays")
    if before.name != after.name:
        parts.append(f"renamed from {before.name}, which stays an alias")
    for attribute in ("type", "summary", "tags"):
        if getattr(before, attribute) != getattr(after, attribute):
            parts.append(f"{attribute} changed")
    if before.status != after.status:
        parts.append(f"status {after.status}")
    if before.due != after.due:
        parts.append(f"due {day_name(after.due)}")
    if after.due and before.due == after.due and receipt.superseded + receipt.replaced:
        parts.append(f"due is still {day_name(after.due)}")
    if before.expires != after.expires:
        parts.append(f"expires {day_of(after.expires)}")
    lines = [f"{after.name}: {', '.join(parts) or 'nothing changed'}."]
    if place.memory.secrets == "warn":
        for edit in (*receipt.superseded, *receipt.replaced):
            if kind := find_secret(edit.new.text):
                number = f"#{edit.new.ordinal}"
                unwanted = {"name": after.name, "facts": [number]}
                lines.append(_secret_line(place, f"{after.name} {number}", kind, unwanted))
    new_texts = {}
    for attribute in ("name", "type", "summary"):
        if getattr(before, attribute) != getattr(after, attribute):
            new_texts[f"the {attribute}"] = getattr(after, attribute) or ""
    lines += attribute_secrets(place, after.name, new_texts)
    return [labelled(place, receipt.change, lines[0]), *map(one_line, lines[1:])]


def move_lines(place: Place, goal: Place, moved: Relocation) -> list[str]:
    """Return what moved where, and the call that takes it back."""
    what = f"{moved.name} with {count_noun(len(moved.facts), 'fact')}"
    if not moved.is_whole:
        what = ", ".join(_name_few([f"{moved.name} #{fact}" for fact in moved.facts], "fact"))
    if moved.known:
        what = f"{what} ({moved.known} known there)".strip()
    if moved.relations:
        what += f", {count_noun(moved.relations, 'relation')}"
    source = change_label(place, moved.source_change)
    changes = [source]
    line = f"{source} moved to {goal.name}: {what}"
    if moved.target_change:
        changes.append(change_label(goal, moved.target_change))
        line += f" ({changes[1]})"
    mend = call_text(None, "undo", {"changes": changes})
    return [one_line(f"{line}, with authors and dates. To take it back: {mend}")]


def forget_lines(place: Place, receipt: ForgetReceipt, *, dry_run: bool) -> list[str]:
    """Return what was forgotten, and what does not exist."""
    parts = [entity.name for entity in receipt.entities]
    singles = []
    for changed in receipt.facts:
        for fact in changed.facts:
            singles.append(f"{changed.entity} #{fact.ordinal}")
    parts += _name_few(singles, "fact")
    if receipt.entities and receipt.fact_count:
        parts.append(f"{count_noun(receipt.fact_count, 'fact')} in all")
    if receipt.relations:
        parts.append(count_noun(len(receipt.relations), "relation"))
    text = ", ".join(parts) or "nothing"
    verb = "would forget" if dry_run else "forgot"
    lines = [labelled(place, receipt.change, f"{verb} {text}.")]
    lines += [f"! There is no {name}." for name in receipt.unknown]
    for part in receipt.facts[:_MAX_NAMED_FACTS]:
        forgotten = {fact.ordinal for fact in part.facts}
        for past in superseded_facts(place.memory, part.entity):
            if past.successor in forgotten and past.old.text == mask_secret(past.old.text):
                known = {"name": part.entity, "facts": [past.old.text]}
                mend = call_text(place, "remember", {"entities": [known]})
                line = f"! {part.entity} #{past.successor} had replaced #{past.old.ordinal}."
                lines.append(f"{line} If that is true again: {mend}")
    return [one_line(line) for line in lines]


def undo_lines(
    place: Place, receipt: UndoReceipt, conflicts: list[str], dry_run: bool
) -> list[str]:
    """Return what was undone or would be, and the conflicts."""
    labels = _name_few([change_label(place, change) for change in receipt.undone], "change")
    counts = []
    for outcome, rows in (("removed", receipt.before), ("restored", receipt.after)):
        count = len(rows.entities) + rows.fact_count + len(rows.relations) + len(rows.notes)
        if count:
            counts.append(f"{count} {outcome}")
    changes = f"{', '.join(labels) or 'nothing'}: {', '.join(counts) or 'nothing changed'}"
    texts: list[str] = []
    if dry_run:
        line = f"Would undo {changes}. Nothing is changed yet."
        texts = _changed_texts(receipt)
    elif receipt.change:
        line = labelled(place, receipt.change, f"undid {changes}.")
        texts = list(_restored_conflicts(place, receipt))
    elif receipt.conflicts:
        line = "nothing was undone: resolve the conflicts, or pass skip_conflicts."
    else:
        line = "nothing was undone: the memory is as it was before already."
    return [one_line(text) for text in (line, *texts, *(f"! {text}" for text in conflicts))]


def _restored_conflicts(place: Place, receipt: UndoReceipt) -> Iterator[str]:
    """Yield what a fact that an undo restored contradicts, and the call that settles it."""
    with place.memory.reading() as reader:
        entities = find_by_name(reader, {part.entity for part in receipt.after.facts})
    for part in receipt.after.facts:
        entity = entities.get(part.entity)
        if entity is None:
            continue
        for fact in part.facts:
            others = tuple([other for other in entity.facts if other.ordinal != fact.ordinal])
            older = find_changed(fact.text, replace(entity, facts=others))
            restored = FactReceipt(fact.text, "added", fact.ordinal, older=older)
            yield from _similar_lines(place, entity.name, restored)


def _changed_texts(receipt: UndoReceipt) -> list[str]:
    """Return the facts and entities that an undo would remove and restore, some of them."""
    lines = []
    for mark, rows in (("-", receipt.before), ("+", receipt.after)):
        for entity in rows.entities:
            lines.append(f"{mark} {entity.name} ({entity.type})")
            for fact in entity.facts:
                lines.append(f"{mark} {entity.name} #{fact.ordinal} {_quote(fact.text)}")
        for part in rows.facts:
            for fact in part.facts:
                lines.append(f"{mark} {part.entity} #{fact.ordinal} {_quote(fact.text)}")
        for relation in rows.relations:
            lines.append(f"{mark} {relation.source} -{relation.type}-> {relation.target}")
    if len(lines) > _MAX_UNDONE_LINES:
        left = count_noun(len(lines) - _MAX_UNDONE_LINES, "more line")
        lines = [*lines[:_MAX_UNDONE_LINES], f"and {left}"]
    return lines


def labelled(place: Place, change: int, line: str) -> str:
    """Return the line with the id of the change, if there is one."""
    if change:
        line = f"{change_label(place, change)} {line}"
    return one_line(line)


def _name_few(names: list[str], noun: str) -> list[str]:
    """Return a few names, or how many there are."""
    if len(names) > _MAX_NAMED_FACTS:
        return [count_noun(len(names), noun)]
    return names
