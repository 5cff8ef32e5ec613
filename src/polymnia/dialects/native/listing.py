"""`recall` without a question: entities by type, tag, time and status."""

from collections.abc import Sequence

from msgspec import Struct

from polymnia.dialects.base import Call, Reply
from polymnia.dialects.native.grouping import (
    Line,
    fact_line,
    head_of,
    heading_of,
    line_data,
    note_lines,
    shared_day_of,
    usual,
)
from polymnia.dialects.native.marks import mark_superseded, successors_of
from polymnia.dialects.native.replies import (
    clean_reply,
    cut_text,
    offset_of,
    prose,
)
from polymnia.dialects.native.scope import Place, join_names, places
from polymnia.dialects.native.shapes import Found, Recall
from polymnia.engine.facts.todos import entities_with_status
from polymnia.engine.history import changes as history
from polymnia.model import Entity, Fact, Passage, Within, drop_expired_facts
from polymnia.search.terms import count_noun, fold, one_line, terms_of
from polymnia.search.times import parse_optional_moment
from polymnia.search.tokens import count_tokens
from polymnia.stores.contract import Reader

MAX_LISTED = 24
# Entities that are considered where an index does not select them.
MAX_CONSIDERED = 500
# Each entity shows so many facts; a few entities share MAX_LISTED ones.
MIN_FACTS_PER_ENTITY = 3
MAX_FACT_CHARACTERS = 200
# For the heading and for what follows the list.
_FRAME_TOKENS = 60


class _Listed(Struct, frozen=True):
    place: Place
    entity: Entity
    facts: tuple[Fact, ...]

    @property
    def subject(self) -> tuple[str, str]:
        """The workspace and the entity."""
        return (self.place.name, self.entity.name)


class Period(Struct, frozen=True):
    """A span of time: since <= at < until; None allows any."""

    since: int | None
    until: int | None

    def has(self, at: int) -> bool:
        """Return True if the time is in the span."""
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


def list_entities(call: Call, arguments: Recall) -> Reply:
    """Return the entities that the filters select: to-dos by due time, others newest first."""
    read = places(call, arguments.workspace)
    period = Period(
        parse_optional_moment(arguments.since, "since"),
        parse_optional_moment(arguments.until, "until"),
    )
    # Without other filters the question is what is new: also what was told now of an earlier day.
    is_news = not (arguments.types or arguments.tags or arguments.status)
    listed = []
    for place in read:
        with place.memory.reading() as reader:
            for entity in drop_expired_facts(select_entities(reader, arguments)):
                if arguments.status and entity.due:
                    if period.has(entity.due):
                        listed.append(_Listed(place, entity, entity.facts))
                    continue
                facts = []
                for fact in entity.facts:
                    if period.has(_time_of(fact)) or (is_news and period.has(fact.created_at)):
                        facts.append(fact)
                if facts or (period.has(entity.updated_at) and not entity.facts):
                    listed.append(_Listed(place, entity, tuple(facts)))
    listed.sort(key=_newest_time, reverse=True)
    listed.sort(key=lambda one: one.entity.due or 2**62)
    if not listed:
        note = _explain_nothing(read, arguments)
        return clean_reply(note, Found(items=[]))
    return _reply(listed, arguments)


def names_with_status(reader: Reader, status: str) -> list[str]:
    """Return the names of the entities with a status, such as open, done or overdue."""
    return [entity.name for entity in entities_with_status(reader, status)]


def _reply(listed: list[_Listed], arguments: Recall) -> Reply:
    offset = offset_of(arguments.cursor)
    limit = arguments.limit or MAX_LISTED
    tokens_left = arguments.max_tokens - _FRAME_TOKENS
    page = listed[offset : offset + limit]
    facts_each = max(MIN_FACTS_PER_ENTITY, MAX_LISTED // max(1, len(page)))
    lines = _lines(page, facts_each)
    usual_workspace, usual_author = usual(lines)
    home = usual_workspace or listed[0].place.name
    texts = [head_of(home, usual_author)]
    shown: list[Line] = []
    count = 0
    for one in page:
        own_lines = [line for line in lines if line.subject == one.subject]
        day = shared_day_of(own_lines)
        heading = _heading(one, home, len(own_lines))
        block = [f"{heading}, {day}" if day else heading]
        block += [fact_line(line, usual_author, day) for line in own_lines]
        tokens_left -= count_tokens("\n".join(block)) + 1
        if tokens_left < 0 and count:
            break
        texts += block
        shown += own_lines
        count += 1
    left_out = len(listed) - offset - count
    cursor = ""
    if left_out > 0:
        cursor = str(offset + count)
        texts.append(f'{left_out} more: pass cursor "{cursor}", or raise max_tokens.')
    note_lines(shown)
    found = Found(items=[line_data(line) for line in shown], cursor=cursor)
    return clean_reply("\n".join(texts), found)


def _lines(page: list[_Listed], facts_each: int) -> list[Line]:
    """Return the newest facts of each entity, with authors and with what supersedes them."""
    lines = []
    for place in {one.place.name: one.place for one in page}.values():
        shown = [
            (one.entity, fact)
            for one in page
            if one.place.name == place.name
            for fact in one.facts[-facts_each:]
        ]
        keys = [(entity.name, fact.ordinal) for entity, fact in shown]
        authors = history.authors(place.memory, keys)
        for entity, fact in shown:
            author = authors.get((entity.name, fact.ordinal))
            lines.append(
                Line(
                    place,
                    Passage.of(entity, fact),
                    cut_text(prose(fact.text), MAX_FACT_CHARACTERS),
                    author,
                )
            )
    return mark_superseded(
        lines, successors_of([(line.place, line.passage.entity) for line in lines])
    )


def _heading(one: _Listed, home: str, shown_count: int) -> str:
    heading = heading_of(one.entity, "" if one.place.name == home else one.place.name)
    earlier = len(one.facts) - shown_count
    if earlier > 0:
        heading += f", {count_noun(earlier, 'earlier fact')}: open shows all"
    return heading


def select_entities(reader: Reader, arguments: Recall) -> list[Entity]:
    """Return the entities with one of the types, all of the tags and the status."""
    types = {_type_key(kind) for kind in arguments.types}
    tags = {fold(tag) for tag in arguments.tags}
    if arguments.status:
        names = names_with_status(reader, arguments.status)
    elif types:
        names = []
        for kind in stored_types(reader, arguments.types):
            names += [entity.name for entity in reader.newest_of_type(kind, MAX_CONSIDERED)]
    elif tags:
        found = reader.candidates(terms_of(" ".join(arguments.tags)), MAX_CONSIDERED, Within())
        names = [passage.entity for passage in found if passage.kind == "entity"]
    else:
        names = [entity.name for entity in reader.outlines(latest=MAX_CONSIDERED)]
    selected = []
    for entity in reader.entities(set(names)) if names else []:
        if types and _type_key(entity.type) not in types:
            continue
        if tags <= {fold(tag) for tag in entity.tags}:
            selected.append(entity)
    return selected


def stored_types(reader: Reader, types: Sequence[str]) -> list[str]:
    """Return the types in use that differ from the given ones only in case and number."""
    keys = {_type_key(kind) for kind in types}
    return [kind for kind in reader.types() if _type_key(kind) in keys]


def _type_key(kind: str) -> str:
    """Return a type without differences of case and number: `Decisions` means `decision`."""
    if fold(kind) == "people":
        return "person"
    return " ".join(terms_of(kind.replace("-", ""))) or fold(kind)


def _explain_nothing(read: list[Place], arguments: Recall) -> str:
    """Return which filter matches nothing, and what there is."""
    counts: dict[str, int] = {}
    for place in read:
        with place.memory.reading() as reader:
            for counted in reader.type_counts("entities"):
                counts[counted.type] = counts.get(counted.type, 0) + counted.count
    known = {_type_key(kind) for kind in counts}
    unknown = [kind for kind in arguments.types if _type_key(kind) not in known]
    if unknown:
        by_count = sorted(counts.items(), key=lambda item: -item[1])
        in_use = ", ".join(f"{kind} {count}" for kind, count in by_count[:8])
        kinds = " or ".join(unknown)
        return one_line(f"No entity has the type {kinds}. Types in use: {in_use or 'none'}.")
    filters = []
    for name in ("types", "tags", "status", "since", "until"):
        value = getattr(arguments, name)
        if value:
            filters.append(f"{name} {value if isinstance(value, str) else ', '.join(value)}")
    where = join_names(read) if read else "a memory without facts"
    total = count_noun(sum(counts.values()), "entity")
    chosen = f" with {' and '.join(filters)}" if filters else ""
    return one_line(f"Nothing{chosen} in {where}; without filters: {total}.")


def _newest_time(one: _Listed) -> int:
    return max((_time_of(fact) for fact in one.facts), default=one.entity.updated_at)


def _time_of(fact: Fact) -> int:
    return fact.valid_at or fact.created_at
