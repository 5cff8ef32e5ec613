"""`remember`, `revise` and `forget`: each one change, with a receipt for every item."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import UNSET, ValidationError, convert
from msgspec.structs import replace

from polymnia.arguments import adapt, explain_mistake
from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.receipts import (
    attribute_secrets,
    call_text,
    forget_lines,
    labelled,
    move_lines,
    remember_lines,
    revision_lines,
)
from polymnia.dialects.native.replies import clean_reply
from polymnia.dialects.native.scope import Place, other_places, own_names, places, target
from polymnia.dialects.native.shapes import (
    EditShape,
    FactShape,
    Forget,
    GivenEntity,
    GivenRelation,
    Remember,
    Revise,
)
from polymnia.dialects.questions import confirmation
from polymnia.engine.facts.briefing import USER
from polymnia.engine.facts.erase import erase as erase_rows
from polymnia.engine.facts.erase import erased_remains, remark_on
from polymnia.engine.facts.forget import ForgetReceipt, Unwanted
from polymnia.engine.facts.forget import forget as forget_rows
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.names import resolve_name
from polymnia.engine.facts.relocate import relocate
from polymnia.engine.facts.remember import (
    EntityFacts,
    FactDraft,
)
from polymnia.engine.facts.remember import remember as remember_facts
from polymnia.engine.facts.revise import Edit, Revision
from polymnia.engine.facts.revise import revise as revise_entity
from polymnia.engine.facts.todos import parse_status
from polymnia.engine.history.changes import find_successor
from polymnia.engine.recall.names import similar_names
from polymnia.errors import BadInput, FactNotFound
from polymnia.model import Relation
from polymnia.search.terms import count_noun, fold, one_line
from polymnia.search.times import day_name, parse_optional_moment, starts_with_year

MAX_NUMBER_DIGITS = 9


@tool(Remember, needs="write", idempotent=True, always_load=True, brief=True)
def remember(call: Call, arguments: Remember) -> Reply:
    """Store what later conversations need: decisions and their reasons, preferences, rules, names \
and roles, how things are done here, errors with their fix, to-dos. One short fact per statement, \
under the full name of the entity it is about ("Priya Raman", not "Priya"); a known name is \
extended. Usual types: person, project, component, decision, preference, rule, todo, milestone, \
error, howto, document. Tag "pinned": shown in every briefing. A fact that changes an older one \
names it: "replaces":["#1"]. About the user: entity "user", workspace "personal". No secrets.
Example: {"entities":[{"name":"release 3.6.0","type":"milestone","due":"2026-12-04","facts":\
["QA needs a week (Marta)"],"when":"2026-11-13"}],"relations":\
[{"from":"Priya Raman","type":"signs_off","to":"release 3.6.0"}]}
The receipt lists exceptions: similar or contrary facts, guessed names, secrets. Act on them."""
    if not arguments.entities and not arguments.relations:
        raise BadInput("entities or relations: give at least one")
    read = places(call)
    place = target(call, arguments.workspace, opened=read)
    entities = [_entity_facts(shape, arguments.source) for shape in arguments.entities]
    relations = [_relation(shape) for shape in arguments.relations]
    with _naming_successors(place):
        receipt = remember_facts(
            place.memory, entities, relations, by=call.by, guess_names=True, compare=True
        )
    others = [other for other in read if other.name != place.name]
    lines = [*remember_lines(place, receipt, others), *_due_lines(arguments.entities, entities)]
    personal = own_names(call)[-1]
    for known in receipt.entities:
        if fold(known.name) == USER and place.name != personal:
            edits = [{"old": f"#{fact.ordinal}"} for fact in known.facts]
            move = {"name": known.name, "facts": edits, "move_to": personal}
            mend = call_text(place, "revise", move)
            lines.append(f"! Facts about the user belong in {personal}, for all projects: {mend}")
    for entity in entities:
        texts = {
            "the name": entity.name,
            "the type": entity.type,
            "the summary": entity.summary or "",
        }
        texts |= {f"tag {number}": tag for number, tag in enumerate(entity.tags, 1)}
        lines += attribute_secrets(place, entity.name, texts)
    for relation in relations:
        lines += attribute_secrets(place, relation.source, {"a relation": " ".join(relation.key)})
    return clean_reply("\n".join(lines))


def _due_lines(shapes: list[GivenEntity], entities: list[EntityFacts]) -> Iterator[str]:
    """Yield the days that relative due dates mean, such as next friday."""
    for shape, entity in zip(shapes, entities, strict=True):
        if entity.due and not starts_with_year(shape.due):
            yield one_line(f"{shape.name}: due {day_name(entity.due)}.")


@contextmanager
def _naming_successors(place: Place) -> Iterator[None]:
    """Say in the error for an unknown number which fact replaced the one that had it."""
    try:
        yield
    except FactNotFound as exc:
        successor = 0
        if isinstance(exc.key, int):
            successor = find_successor(place.memory, exc.name, exc.key)
        if not successor:
            raise
        fact = f"#{exc.key} of {exc.name}"
        raise BadInput(one_line(f"{fact} was replaced by #{successor}: use that number")) from exc


def _entity_facts(shape: GivenEntity, source: str) -> EntityFacts:
    valid_at = parse_optional_moment(shape.when, "when") or 0
    if len(shape.replaces) > len(shape.facts):
        raise BadInput("replaces: give a new fact for each of them; to delete facts, use forget")
    expires = parse_optional_moment(shape.expires, "expires", ahead=True) or 0
    # Only the facts move: a fact that ends must not take the whole person along.
    common = FactDraft("", valid_at, source, expires=expires)
    facts = [_fact_draft(fact, common) for fact in shape.facts]
    for position, older in enumerate(shape.replaces):
        if older:
            reference = _fact_reference(require_text(older, "replaces"))
            facts[position] = replace(facts[position], replaces=reference)
    return EntityFacts(
        name=shape.name,
        type=shape.type,
        facts=tuple(facts),
        summary=shape.summary or None,
        tags=tuple(shape.tags),
        due=parse_optional_moment(shape.due, "due", ahead=True) or 0,
        status=parse_status(shape.status),
    )


def _fact_draft(fact: object, common: FactDraft) -> FactDraft:
    """Return a fact that is given as a text or an object. Raise BadInput.

    `common` has the times and the source of facts that do not say their own.
    """
    if not isinstance(fact, dict):
        return replace(common, text=require_text(fact, "facts"))
    try:
        shape = convert(adapt(fact, FactShape), FactShape)
    except ValidationError as exc:
        raise BadInput(explain_mistake(str(exc), FactShape, "facts")) from exc
    replaces = None
    if shape.replaces is not None:
        replaces = _fact_reference(require_text(shape.replaces, "replaces"))
    valid_at = parse_optional_moment(shape.when, "when") or common.valid_at
    expires = parse_optional_moment(shape.expires, "expires", ahead=True) or common.expires
    return FactDraft(shape.text, valid_at, common.source, replaces, expires)


def require_text(value: object, argument: str) -> str:
    """Return a text or a number as text. Raise BadInput for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"{argument}: expected a string")
    return str(value)


def _relation(shape: GivenRelation) -> Relation:
    return Relation(shape.source, shape.target, shape.type)


@tool(Revise, needs="write", destructive=True, brief=True)
def revise(call: Call, arguments: Revise) -> Reply:
    """Change what is stored; the old text stays in the history. A fact that is no longer true: \
{"name":"CI","facts":[{"old":"#1","new":"CI runs on Forgejo","when":"2026-11-13"}]}; add \
"wrong":true if it never was. new may be the number of a fact that is already stored ("#4"). Also: \
rename, close a to-do (status "done"), merge others into this one, or move_to another workspace."""
    place = target(call, arguments.workspace)
    if arguments.move_to:
        return _move(call, place, arguments)
    revision = _revision(arguments)
    untrue = [shape.old for shape in arguments.facts if _is_untrue(shape)]
    if revision == Revision() and not arguments.merge and not untrue:
        raise BadInput(
            "nothing to revise: give a new name, type, summary, tags, facts, names to merge, or "
            "move_to"
        )
    arguments, lines = _resolve_names(place, arguments)
    if arguments.merge:
        merged = merge(place.memory, arguments.merge, arguments.name, by=call.by)
        facts = count_noun(merged.facts + merged.known, "fact")
        line = f"merged {', '.join(arguments.merge)} into {merged.target}: {facts}"
        if merged.known:
            line += f" ({merged.known} identical)"
        line += ", authors and dates kept; old names stay aliases"
        lines.append(labelled(place, merged.change, f"{line}."))
    if revision != Revision():
        with _naming_successors(place):
            receipt = revise_entity(place.memory, arguments.name, revision, by=call.by)
        lines += revision_lines(place, receipt)
    if untrue:
        name = arguments.rename or arguments.name
        references = [_fact_reference(require_text(old, "old")) for old in untrue]
        unwanted = Unwanted(facts=tuple((name, reference) for reference in references))
        with _naming_successors(place):
            forgotten = forget_rows(place.memory, unwanted, by=call.by)
        lines += forget_lines(place, forgotten, dry_run=False)
    return clean_reply("\n".join(lines))


def _move(call: Call, place: Place, arguments: Revise) -> Reply:
    """Move an entity or some of its facts to another workspace."""
    if any(shape.new is not None for shape in arguments.facts):
        raise BadInput('with move_to, facts say only which to move: {"old":"#3"}')
    others = replace(arguments, move_to="", facts=[])
    if others != Revise(name=arguments.name, workspace=arguments.workspace):
        raise BadInput("move_to goes with name and facts alone: revise the rest in another call")
    goal = target(call, arguments.move_to)
    if goal.name == place.name:
        raise BadInput(f"{arguments.name} is in {place.name} already: there is nothing to move")
    arguments, lines = _resolve_names(place, arguments)
    facts = [_fact_reference(require_text(shape.old, "old")) for shape in arguments.facts]
    with _naming_successors(place):
        moved = relocate(place.memory, goal.memory, arguments.name, facts, by=call.by)
    lines += move_lines(place, goal, moved)
    return clean_reply("\n".join(lines))


def _resolve_names(place: Place, arguments: Revise) -> tuple[Revise, list[str]]:
    """Return the arguments with names that entities have, and a line for each that was guessed."""
    given = [arguments.name, *arguments.merge]
    with place.memory.reading() as read:
        names = [resolve_name(read, name) for name in given]
        known = read.existing_names(names)
    for name in names:
        if name not in known:
            similar = ", ".join(similar_names(place.memory, name))
            advice = f"similar: {similar}" if similar else "recall finds what there is"
            raise BadInput(one_line(f"there is no entity {name} in {place.name}; {advice}"))
    lines = []
    for old, new in zip(given, names, strict=True):
        if old != new:
            lines.append(one_line(f'! "{old}" was taken as {new}.'))
    return replace(arguments, name=names[0], merge=names[1:]), lines


def _revision(arguments: Revise) -> Revision:
    edits = [(_edit(shape), shape.wrong) for shape in arguments.facts if not _is_untrue(shape)]
    return Revision(
        name=arguments.rename or None,
        type=arguments.type or None,
        summary=arguments.summary or UNSET,
        due=parse_optional_moment(arguments.due, "due", ahead=True),
        status=parse_status(arguments.status) or None,
        expires=parse_optional_moment(arguments.expires, "expires", ahead=True),
        add_tags=tuple(arguments.add_tags),
        remove_tags=tuple(arguments.remove_tags),
        replace=tuple(edit for edit, is_wrong in edits if is_wrong),
        supersede=tuple(edit for edit, is_wrong in edits if not is_wrong),
    )


def _is_untrue(shape: EditShape) -> bool:
    """Return True for a fact that was never true, with nothing in its place."""
    return shape.wrong and shape.new is None


def _edit(shape: EditShape) -> Edit:
    valid_at = parse_optional_moment(shape.when, "when") or 0
    if shape.new is None:
        raise BadInput("facts: give the new text as new, or a workspace as move_to")
    old = _fact_reference(require_text(shape.old, "old"))
    text = require_text(shape.new, "new")
    new = _fact_reference(text)
    literal = ""
    if isinstance(new, int) and not text.strip().startswith("#"):
        literal = text  # "8080" may be a fact, "#4" is a number
    return Edit(old, new, valid_at, literal=literal)


def _fact_reference(text: str) -> int | str:
    """Return the number of a fact, or its text."""
    number = text.strip().removeprefix("#")
    is_number = number.isascii() and number.isdigit()
    if is_number and len(number) <= MAX_NUMBER_DIGITS:
        return int(number)
    return text


@tool(Forget, needs="write", destructive=True, brief=True)
def forget(call: Call, arguments: Forget) -> Reply:
    """Delete facts, relations or a whole entity; undo brings them back. Use revise for what \
changed. For a secret or personal data pass erase: it is also removed from history and search, for \
good. Look first with dry_run."""
    place = target(call, arguments.workspace)
    if arguments.name:
        with place.memory.reading() as read:
            arguments = replace(arguments, name=resolve_name(read, arguments.name))
    name = arguments.name
    if name and not arguments.facts and not arguments.whole:
        raise BadInput(
            f"say which facts of {name} to forget, or pass whole: true for the entity itself"
        )
    if not name and (arguments.facts or arguments.whole):
        raise BadInput("name: say which entity")
    if not name and not arguments.relations:
        raise BadInput("nothing to forget: give a name with facts, or relations")
    facts = [_fact_reference(require_text(fact, "facts")) for fact in arguments.facts]
    unwanted = Unwanted(
        entities=(name,) if arguments.whole else (),
        facts=tuple((name, fact) for fact in facts),
        relations=tuple(_relation(shape) for shape in arguments.relations),
    )
    if arguments.erase:
        return _erase(call, place, unwanted, arguments)
    with _naming_successors(place):
        receipt = forget_rows(place.memory, unwanted, by=call.by, dry_run=True)
    if not arguments.dry_run:
        _confirm_forgetting(call, receipt, is_confirmed=arguments.confirm)
        receipt = forget_rows(place.memory, unwanted, by=call.by)
    lines = forget_lines(place, receipt, dry_run=arguments.dry_run)
    return clean_reply("\n".join(lines))


def _erase(call: Call, place: Place, unwanted: Unwanted, arguments: Forget) -> Reply:
    """Erase what is named after the user has agreed, and say what remains."""
    planned = erase_rows(place.memory, unwanted, by=call.by, dry_run=True)
    subject = ", ".join(planned.erased) or "nothing"
    if arguments.dry_run:
        line = f"Would erase {subject} from {place.name} for good. Nothing is changed yet."
    else:
        loss = f"Erasing {subject} cannot be undone"
        _require_agreement(call, f"Erase {subject} for good?", loss, arguments.confirm)
        erase_rows(
            place.memory,
            unwanted,
            by=call.by,
            other_memories=lambda: (other.memory for other in other_places(call, [place])),
        )
        line = f"Erased {subject} from facts, history and search in {place.name}."
        line += f" This cannot be undone. {erased_remains(place.memory)}"
    lines = [one_line(line), *(f"! {one_line(remark)}" for remark in remark_on(planned))]
    lines += [f"! There is no {one_line(name)}." for name in planned.unknown]
    return clean_reply("\n".join(lines))


def _require_agreement(call: Call, question: str, loss: str, is_confirmed: bool) -> None:
    """Raise BadInput if the user declines, or cannot be asked and `confirm` is not given."""
    is_agreed = call.confirm(confirmation("forget", question), otherwise=is_confirmed)
    if is_agreed is None:
        raise BadInput(one_line(f"{loss}. Ask the user, then pass confirm: true."))
    if not is_agreed:
        raise BadInput("the user declined; nothing was forgotten")


def _confirm_forgetting(call: Call, planned: ForgetReceipt, *, is_confirmed: bool) -> None:
    """Raise BadInput if a whole entity or much else would go and the user does not agree."""
    facts = planned.fact_count
    rows = len(planned.entities) + facts + len(planned.relations)
    is_whole = any(entity.facts for entity in planned.entities)
    if rows <= 20 and not is_whole:  # a slip of this size is undone soon
        return
    names = [entity.name for entity in planned.entities]
    names += [changed.entity for changed in planned.facts]
    subject = ", ".join(dict.fromkeys(names)) or "relations"
    question = f"Forget {subject}: {rows} facts and relations in all?"
    loss = f"Forgetting {subject} deletes {count_noun(facts, 'fact')}"
    _require_agreement(call, question, loss, is_confirmed)
