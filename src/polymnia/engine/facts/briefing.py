"""What an agent should know when a session starts: what matters, not what is recent."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.remember import OPEN
from polymnia.engine.facts.todos import DAY, entities_with_status, is_overdue
from polymnia.engine.facts.work_tree import remarks_on_files
from polymnia.engine.graph.relations import find_successors
from polymnia.engine.history.changes import (
    MAX_WHOLE_ROWS,
    Difference,
    client_label,
    differences,
    read_changes,
)
from polymnia.engine.memory import Memory, find_by_name, one_snapshot
from polymnia.engine.workspaces import PERSONAL
from polymnia.model import (
    ChangeQuery,
    Entity,
    Fact,
    Within,
    drop_expired_facts,
    is_expired,
)
from polymnia.search.dates import day_of
from polymnia.search.terms import fold, terms_of
from polymnia.search.times import day_name
from polymnia.search.tokens import estimate_tokens, shorten_to
from polymnia.stores.clock import now_us
from polymnia.stores.contract import Reader

# Entities with this tag are always part of a briefing, with all their facts.
PINNED_TAG = "pinned"
# The type of entities whose facts are what was said: an agent has one for each session.
CONVERSATION = "conversation"
DEFAULT_TOKENS = 800
MAX_PINNED, MAX_RECENT = 20, 20
# More conversations would hide the facts. Other entities are looked for among this many.
MAX_CONVERSATIONS, MAX_RECENT_SCANNED = 2, 200
# No fact takes more than this, so that one long text does not fill a briefing.
MAX_FACT_TOKENS = 80
USER = "user"
RULE, PREFERENCE, DECISION = "rule", "preference", "decision"
DECISION_DAYS = 14
MAX_CANDIDATES, MAX_CHANGES = 200, 30
_LATELY = "Lately"
# Shares of the budget. What a section does not use is left for those after it, and then for all.
_SHARES = {
    "About the user": 0.2,
    "Rules": 0.15,
    "To-dos": 0.2,
    "Decided": 0.15,
    "Changed": 0.1,
    "Pinned": 0.15,
    _LATELY: 0.05,
}
_PREFERENCE_WORDS = re.compile(r"\b(?:prefer|like|love|want|hate|dislike|avoid|favou?r)", re.I)
_RULE_WORDS = re.compile(r"\b(?:never|always|must)\b", re.I)


class BriefingLine(Struct, frozen=True):
    """A line of a section: an entity and a text about it. `at` and `due` are times, or 0."""

    workspace: str
    name: str
    type: str
    text: str
    at: int = 0
    due: int = 0
    is_overdue: bool = False
    actor: str = ""
    change: int = 0
    written_at: int = 0
    ordinal: int = 0  # of a fact that another client changed; 0 if it is the plan of the entity


class Section(Struct, frozen=True):
    """A part of a briefing, and how many of its lines did not fit."""

    title: str
    lines: tuple[BriefingLine, ...]
    left_out: int = 0


class SessionBriefing(Struct, frozen=True):
    """The sections that have lines, when this client last wrote, and what is not shown."""

    sections: tuple[Section, ...]
    last_write_at: int
    entities: int
    facts: int
    shown: int


Memories = Sequence[tuple[str, Memory]]


def brief_session(
    memories: Memories, *, by: str, max_tokens: int, root: Path | None = None
) -> SessionBriefing:
    """Return what a client should know from the memories, by workspace, within a budget.

    Facts of the first memory that name files of the work tree at `root` are compared with it.
    """
    with one_snapshot([memory for _, memory in memories], may_lag=True) as together:
        session = _brief(memories, by, max_tokens, together)
    if root is None or memories[0][0] == PERSONAL:
        return session
    lines = [line for section in session.sections for line in section.lines]
    own = [line for line in lines if line.workspace == memories[0][0] and line.written_at]
    remarks = remarks_on_files(root, [(line.text, line.written_at) for line in own])
    remark_of = {id(line): remark for line, remark in zip(own, remarks, strict=True) if remark}
    sections = []
    for section in session.sections:
        marked = []
        for line in section.lines:
            if id(line) in remark_of:
                line = replace(line, text=f"{line.text} [{remark_of[id(line)]}]")
            marked.append(line)
        sections.append(replace(section, lines=tuple(marked)))
    return replace(session, sections=tuple(sections))


def _brief(
    memories: Memories, by: str, max_tokens: int, together: Callable[..., list[Any]]
) -> SessionBriefing:
    last_writes = together(*[partial(_last_write, memory, by) for _, memory in memories])
    last_write_at = max(last_writes, default=0)
    finders: dict[str, Callable[[str, Memory, Reader], Iterable[BriefingLine]]] = {
        "About the user": _about_user,
        "Rules": _rules,
        "To-dos": _todos,
        "Decided": _decisions,
        "Changed": lambda name, memory, read: _changes(name, memory, read, by, last_write_at),
        "Pinned": _pinned,
        "Lately": _recent,
    }
    questions: list[Callable[[], Any]] = []
    for name, memory in memories:
        with memory.reading() as read:
            questions += [partial(find, name, memory, read) for find in finders.values()]
            questions.append(read.counts)
    answers = iter(together(*questions))
    lines: dict[str, list[BriefingLine]] = {title: [] for title in finders}
    entities = facts = 0
    for _ in memories:
        for title in finders:
            lines[title] += next(answers)
        counts = next(answers)
        entities += counts.entities
        facts += counts.facts
    lines["To-dos"].sort(key=lambda line: line.due or 2**62)
    lines["Decided"].sort(key=lambda line: -line.at)
    sections = _fit(lines, max_tokens)
    shown = {(line.workspace, line.name) for section in sections for line in section.lines}
    return SessionBriefing(tuple(sections), last_write_at, entities, facts, len(shown))


def _fit(lines: dict[str, list[BriefingLine]], max_tokens: int) -> list[Section]:
    """Return the sections with the lines that fit. A text is said once."""
    said: set[tuple[str, str, str]] = set()
    fitting: dict[str, list[BriefingLine]] = {title: [] for title in _SHARES}
    waiting: dict[str, list[BriefingLine]] = {title: [] for title in _SHARES}
    left = 0.0
    for share_of in (_SHARES, dict.fromkeys(_SHARES, 0.0)):
        for title, share in share_of.items():
            left += share * max_tokens
            candidates = waiting[title] if fitting[title] or waiting[title] else lines[title]
            waiting[title] = []
            for line in candidates:
                key = (line.workspace, line.name, line.text)
                cost = estimate_tokens(f"{line.name} {line.type} {line.text}") + 12
                if key in said:
                    continue
                if waiting[title] or (cost > left and said):
                    waiting[title].append(line)
                    continue
                left -= cost
                fitting[title].append(line)
                said.add(key)
    sections = []
    for title, shown in fitting.items():
        # A section of which nothing fits is named, or it would seem empty.
        if shown or (waiting[title] and title != _LATELY):
            sections.append(Section(title, tuple(shown), len(waiting[title])))
    return sections


def _about_user(workspace: str, memory: Memory, read: Reader) -> list[BriefingLine]:
    """Return facts about the user: preferences, what was said first, and then the newest."""
    named, preferences = read.together(
        lambda: read.entities([USER, "User"]), lambda: _of_type(read, PREFERENCE)
    )
    entities = drop_expired_facts(named) + preferences
    facts = []
    for entity in entities:
        facts += [(entity, fact) for fact in (*entity.facts[:1], *entity.facts[:0:-1])]
    facts.sort(
        key=lambda pair: pair[0].type != PREFERENCE and not _PREFERENCE_WORDS.search(pair[1].text)
    )
    return [_line(workspace, entity, fact) for entity, fact in facts]


def _rules(workspace: str, memory: Memory, read: Reader) -> list[BriefingLine]:
    """Return the facts of rules, and facts that say never, always or must."""
    words = ("never", "always", "must")
    rules, *passages_with = read.together(
        partial(_of_type, read, RULE),
        *[partial(read.candidates, terms_of(word), MAX_CANDIDATES) for word in words],
    )
    lines = []
    for entity in rules:
        lines += [_line(workspace, entity, fact) for fact in entity.facts]
    for passages in passages_with:
        for passage in passages:
            is_said = passage.type == CONVERSATION or bool(passage.valid_at % DAY)
            # Earlier versions kept guesses of a program in an entity of this type.
            is_confirmed = not is_said and passage.type != "unconfirmed"
            if passage.ordinal > 0 and is_confirmed and _RULE_WORDS.search(passage.text):
                at = passage.valid_at or passage.created_at
                text = _shorten(passage.text)
                line = BriefingLine(workspace, passage.entity, passage.type, text, at)
                lines.append(replace(line, written_at=passage.created_at))
    return list(dict.fromkeys(lines))


def _todos(workspace: str, memory: Memory, read: Reader) -> list[BriefingLine]:
    names = {entity.name for entity in entities_with_status(read, OPEN)}
    lines = []
    for entity in drop_expired_facts(read.entities(names) if names else []):
        text = _shorten(entity.texts[-1] if entity.texts else entity.summary or "")
        overdue = is_overdue(entity)
        lines.append(
            BriefingLine(
                workspace, entity.name, entity.type, text, due=entity.due, is_overdue=overdue
            )
        )
    return lines


def _decisions(workspace: str, memory: Memory, read: Reader) -> list[BriefingLine]:
    """Return the newest fact of each recent decision that nothing supersedes."""
    since = now_us() - DECISION_DAYS * DAY
    lines = []
    for entity in _without_superseded(read, _of_type(read, DECISION)):
        recent = [fact for fact in entity.facts if _time_of(fact) >= since]
        # What holds now, and what is decided for a day to come.
        for is_coming in (False, True):
            facts = [fact for fact in recent if (fact.valid_at > now_us()) == is_coming]
            if facts:
                lines.append(_line(workspace, entity, max(facts, key=_time_of)))
    return lines


def _changes(
    workspace: str, memory: Memory, read: Reader, by: str, since: int
) -> list[BriefingLine]:
    """Return what others changed since the client last wrote, as far as it still holds."""
    if not since or not memory.store.capabilities.history:
        return []
    pairs = []
    query = ChangeQuery(limit=MAX_CHANGES, since=since)
    recent, _ = read_changes(read.history, query, MAX_WHOLE_ROWS)  # an import is no news
    for change in recent:
        if client_label(change.actor) != client_label(by):
            pairs += [(change, difference) for difference in differences(change)]
    entities = _find_present(read, {difference.name for _, difference in pairs})
    lines: dict[tuple[str, str, int], BriefingLine] = {}
    for change, difference in pairs:
        entity = entities.get(difference.name)
        if entity is None or not _still_holds(difference, entity):
            continue
        # Changes come newest first: the last one of a fact made it what it is.
        key = (entity.name, difference.what, difference.ordinal)
        text = difference.after or ""
        due = 0
        if difference.what == "status":
            text = f"is {text or 'without a status'}"
        elif difference.what == "due":
            due = entity.due
            text = f"is due {text}" if due else "is not due any more"
        change_line = BriefingLine(
            workspace,
            entity.name,
            "",
            _shorten(text),
            change.at,
            due=due,
            actor=change.actor,
            change=change.id,
            ordinal=difference.ordinal,
        )
        lines.setdefault(key, change_line)
    return list(lines.values())


def _find_present(read: Reader, names: set[str]) -> dict[str, Entity]:
    """Return the entities that have or had the names."""
    entities: dict[str, Entity]
    entities, aliased = read.together(lambda: find_by_name(read, names), read.aliased)
    present_names = {}
    for outline in aliased:
        for alias in names.intersection(outline.aliases) - entities.keys():
            present_names[alias] = outline.name
    renamed = find_by_name(read, set(present_names.values()))
    return entities | {alias: renamed[name] for alias, name in present_names.items()}


def _still_holds(difference: Difference, entity: Entity) -> bool:
    """Return True if the entity has the fact, the status or the due day that a change gave it."""
    if is_expired(entity) or difference.after is None:
        return False
    if difference.what == "status":
        return difference.after == entity.status
    if difference.what == "due":
        return difference.after == day_of(entity.due)
    for fact in entity.facts:
        if difference.what == "fact" and fact.ordinal == difference.ordinal:
            return fact.text == difference.after and not is_expired(fact)
    return False


def _pinned(workspace: str, memory: Memory, read: Reader) -> list[BriefingLine]:
    lines = []
    passages = read.candidates(terms_of(PINNED_TAG), 5 * MAX_PINNED, Within(tags=(PINNED_TAG,)))
    names = dict.fromkeys(passage.entity for passage in passages if passage.kind == "entity")
    entities = read.entities(list(names)[:MAX_PINNED]) if names else []
    for entity in drop_expired_facts(entities):
        if entity.summary:
            lines.append(
                BriefingLine(workspace, entity.name, entity.type, _shorten(entity.summary))
            )
        lines += [_line(workspace, entity, fact) for fact in entity.facts]
    return lines


def _recent(workspace: str, memory: Memory, read: Reader) -> list[BriefingLine]:
    """Return the newest fact of the entities updated last."""
    lines = []
    for entity in _without_superseded(read, _find_recent(read)):
        if entity.facts and entity.status in ("", OPEN):
            lines.append(_line(workspace, entity, entity.facts[-1]))
    return lines


def _find_recent(read: Reader) -> list[Entity]:
    """Return the entities updated last, the latest first, with few conversations among them."""
    names: list[str] = []
    conversations = 0
    for entity in read.outlines(latest=MAX_RECENT_SCANNED):
        if entity.type == CONVERSATION:
            conversations += 1
            if conversations > MAX_CONVERSATIONS:
                continue
        names.append(entity.name)
    entities = find_by_name(read, names[:MAX_RECENT])
    return drop_expired_facts([entities[name] for name in names[:MAX_RECENT]])


def _without_superseded(read: Reader, entities: list[Entity]) -> list[Entity]:
    """Return the entities that no other one supersedes."""
    successors = find_successors(read, {entity.name for entity in entities})
    return [entity for entity in entities if entity.name not in successors]


def _last_write(memory: Memory, by: str) -> int:
    """Return when the client, of any version, last changed the memory; 0 if it never did."""
    if not memory.store.capabilities.history:
        return 0
    label = client_label(by)
    with memory.reading() as read:
        actors = [actor for actor in read.history.actors() if client_label(actor) == label]
        if not actors:
            return 0
        heads = read.history.change_heads(ChangeQuery(limit=1, actors=tuple(actors)))
    return heads[0].at if heads else 0


def _of_type(read: Reader, kind: str) -> list[Entity]:
    """Return the entities of a type, found by the index of words."""
    cards = read.candidates(terms_of(kind), MAX_CANDIDATES, Within(types=(kind, kind.title())))
    names = {passage.entity for passage in cards}
    entities = drop_expired_facts(read.entities(names) if names else [])
    return [entity for entity in entities if fold(entity.type) == kind]


def _line(workspace: str, entity: Entity, fact: Fact) -> BriefingLine:
    text = _shorten(fact.text)
    if fact.valid_at > now_us():
        text += f" (from {day_name(fact.valid_at)})"
    at = _time_of(fact)
    return BriefingLine(workspace, entity.name, entity.type, text, at, written_at=fact.created_at)


def _time_of(fact: Fact) -> int:
    """Return when a fact became true or, if that is unknown or to come, when it was noted."""
    return fact.valid_at if 0 < fact.valid_at <= now_us() else fact.created_at


def _shorten(text: str) -> str:
    return shorten_to(" ".join(text.split()), MAX_FACT_TOKENS)
