"""`history` and `review`: who changed what, and what in the memory needs attention."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.receipts import call_text
from polymnia.dialects.native.replies import (
    Item,
    bounded_reply,
    change_item,
    fitting_items,
    line_item,
    offset_of,
    page_reply,
    short_time,
)
from polymnia.dialects.native.scope import Place, join_names, other_places, places
from polymnia.dialects.native.shapes import History, Review, ReviewKind
from polymnia.engine.curation.contradictions import contradictions, says_more
from polymnia.engine.curation.findings import (
    Check,
    Progress,
    part_of,
    scan,
    take_sample,
)
from polymnia.engine.curation.similar import duplicate_names
from polymnia.engine.facts.names import resolve_name
from polymnia.engine.facts.todos import OVERDUE, entities_with_status
from polymnia.engine.facts.work_tree import paths_in, remarks_on_files
from polymnia.engine.history import changes as histories
from polymnia.errors import BadInput, Cancelled, PolymniaError
from polymnia.model import Change, ChangeQuery, Fact
from polymnia.search.terms import fold, one_line
from polymnia.search.times import parse_optional_moment

# The facts about files that are compared with the work tree, and how long git may take.
_MAX_CHECKED_FACTS, _GIT_WAIT_S = 200, 5.0
# Entities of a workspace that a review looks at: those that changed last, and others each day.
MAX_LATEST, MAX_OTHERS = 1_000, 500
_MAX_QUOTED_LETTERS = 120


@tool(History, needs="read", brief=True)
def history(call: Call, arguments: History) -> Reply:
    """Who changed what and when, newest first: of an entity, of an actor (client name) in all \
workspaces you can read, or since a time. Gives the change ids that undo takes."""
    read = places(call, arguments.workspace)
    if not read:
        note = "Nothing was ever changed here."
        return bounded_reply([], max_tokens=arguments.max_tokens, note=note)
    if arguments.actor:
        if not arguments.workspace:
            read = [*read, *other_places(call, read)]
        read = _places_of(arguments.actor, read)
    last_ids = _parse_cursor(arguments.cursor, len(read))
    pages = []
    is_more = False
    names = {place.name: _resolve_name(place, arguments.name) for place in read}
    for place, last_id in zip(read, last_ids, strict=True):
        page = histories.latest(
            place.memory,
            limit=arguments.limit,
            before=last_id or None,
            actor=arguments.actor or None,
            names=names[place.name] or None,
            since=parse_optional_moment(arguments.since, "since"),
            # An import has thousands of rows, of which a line shows a few.
            max_rows=1_000,
        )
        pages.append([(place, change, page.sizes.get(change.id)) for change in page.changes])
        is_more = is_more or page.next is not None
    # Each workspace numbers its own changes, so only their times put them in one order.
    newest = list(heapq.merge(*pages, key=lambda entry: -entry[1].at))[: arguments.limit]
    items = []
    for place, change, size in newest:
        differences = _differences(place, change, names[place.name])
        items.append(change_item(change, place.name, differences, size))
    note = f"Changes in {join_names(read)}, newest first (UTC)."
    if not items:
        note = f"No such changes in {join_names(read)}."
    note = " ".join([*_guesses(arguments.name, names.values()), note])

    fitting = len(fitting_items(items, arguments.max_tokens, note))
    cursor = ""
    if is_more or fitting < sum(map(len, pages)):
        # The id of the last change shown of each workspace: new changes do not move a page.
        shown_ids = {place.name: change.id for place, change, _ in newest[:fitting]}
        ids = [shown_ids.get(place.name, last) for place, last in zip(read, last_ids, strict=True)]
        cursor = ".".join(map(str, ids))
    return bounded_reply(
        items[:fitting], max_tokens=arguments.max_tokens, note=note, next_cursor=cursor
    )


def _places_of(actor: str, read: list[Place]) -> list[Place]:
    """Return the workspaces that the actor has changed. Raise BadInput if there are none."""
    changed = []
    everyone: dict[str, None] = {}
    for place in read:
        with place.memory.reading() as reader:
            actors = histories.history_of(place.memory, reader).actors()
        everyone |= dict.fromkeys(actors)
        if any(fold(actor) in fold(name) for name in actors):
            changed.append(place)
    if not changed:
        known = ", ".join(list(everyone)[:10]) or "none"
        raise BadInput(f"nobody called {actor!r} has changed {join_names(read)}; actors: {known}")
    return changed


def _resolve_name(place: Place, given: str) -> list[str]:
    """Return the names whose changes are meant; none without a name.

    An alias stands for the entity that has it, and for the one that was merged into that.
    """
    if not given:
        return []
    with place.memory.reading() as reader:
        query = ChangeQuery(limit=1, names=(given,))
        is_known = bool(histories.history_of(place.memory, reader).change_heads(query))
        name = resolve_name(reader, given)
        if not is_known:
            return [name]
        is_alias = any(given in entity.aliases for entity in reader.outlines([name]))
    return [given, name] if is_alias else [given]


def _guesses(given: str, resolved: Iterable[list[str]]) -> list[str]:
    """Return a sentence for each entity that the name was taken for."""
    sentences: dict[str, None] = {}
    for names in resolved:
        for name in names:
            if name != given:
                sentences[one_line(f'"{given}" was taken as {name}.')] = None
    return list(sentences)


def _differences(place: Place, change: Change, names: list[str]) -> list[histories.Difference]:
    if not names:
        return histories.differences(change, None)
    all_names = set()
    for name in names:
        all_names |= histories.names_of(place.memory, name)
    return histories.differences(change, all_names)


def _parse_cursor(cursor: str, workspaces: int) -> list[int]:
    """Return the id of the last change shown of each workspace, or 0. Raise BadInput."""
    if not cursor:
        return [0] * workspaces
    last_ids = [offset_of(part) for part in cursor.split(".")]
    if len(last_ids) != workspaces:
        raise BadInput(f"cursor: {cursor!r} belongs to other workspaces; omit it to start over")
    return last_ids


class ReviewTask(Struct, frozen=True):
    """One kind of finding to look for in one workspace, among some entities or, if None, all."""

    place: Place
    limit: int
    among: tuple[str, ...] | None
    progress: Progress
    check: Check

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a search for findings."""
        return {
            "among": self.among,
            "limit": self.limit,
            "progress": self.progress,
            "check": self.check,
        }


@tool(Review, needs="read", brief=True)
def review(call: Call, arguments: Review) -> Reply:
    """Find what needs care, worst first: facts that contradict each other, overdue to-dos, names \
that are probably the same, facts about files that are gone. Use it when asked to tidy up."""
    items: list[Item] = []
    notes: list[str] = []
    kinds = arguments.kinds or list(_FINDERS)
    read = places(call, arguments.workspace)
    for number, place in enumerate(read):
        sample = take_sample(place.memory, latest=MAX_LATEST, others=MAX_OTHERS)
        if sample.names is not None:
            looked = f"the {MAX_LATEST:,} entities that changed last and {MAX_OTHERS} others"
            notes.append(f"looked at {looked} of {sample.total:,} in {place.name}")
        for step, kind in enumerate(kinds, number * len(kinds)):
            call.check()
            steps = len(read) * len(kinds)
            progress = part_of(call.progress, 100 * step / steps, 100 * (step + 1) / steps)
            task = ReviewTask(place, arguments.limit, sample.names, progress, call.check)
            try:
                items += _FINDERS[kind](task)
            except Cancelled:
                raise
            except PolymniaError as exc:
                # A kind that was not asked for may fail, say without an embedder: show the rest.
                if arguments.kinds and not isinstance(exc, BadInput):
                    raise
                notes.append(f"{kind}: {exc.public}")
    note = "; ".join(notes)
    if not items:
        note = f"Nothing needs attention{f' ({note})' if note else ''}."
    return page_reply(items, arguments, note=note)


def _contradictions(task: ReviewTask) -> Iterator[Item]:
    pairs = contradictions(task.place.memory, **task.options)
    for pair in pairs:
        older, newer = _quote(pair.older), _quote(pair.newer)
        edit = {"old": f"#{pair.older.ordinal}", "new": f"#{pair.newer.ordinal}"}
        mend = call_text(task.place, "revise", {"name": pair.entity, "facts": [edit]})
        line = f"- contradiction? {pair.entity} {older} and {newer}"
        advice = f"If the second replaces it: {mend}"
        if says_more(pair.older.text, pair.newer.text):
            advice = f"If a part changed: correct #{pair.older.ordinal}, and keep the rest."
        yield line_item(f"{line}. {advice}")


def _quote(fact: Fact) -> str:
    text = one_line(fact.text)
    if len(text) > _MAX_QUOTED_LETTERS:
        text = text[: _MAX_QUOTED_LETTERS - 1] + "…"
    return f'#{fact.ordinal} "{text}" ({short_time(fact.valid_at or fact.created_at)[:10]})'


def _overdue(task: ReviewTask) -> Iterator[Item]:
    with task.place.memory.reading() as reader:
        entities = entities_with_status(reader, OVERDUE)
    entities.sort(key=lambda entity: entity.due)
    for entity in entities[: task.limit]:
        mend = call_text(task.place, "revise", {"name": entity.name, "status": "done"})
        yield line_item(f"- overdue: {entity.name} ({short_time(entity.due)}). If done: {mend}")


def _duplicates(task: ReviewTask) -> Iterator[Item]:
    pairs = duplicate_names(task.place.memory, **task.options)
    for pair in pairs:
        entities = f"{pair.a} ({pair.a_type}) and {pair.b} ({pair.b_type})"
        mend = call_text(task.place, "revise", {"name": pair.a, "merge": [pair.b]})
        yield line_item(f"- duplicate? {entities}. If they are the same: {mend}")


def _files(task: ReviewTask) -> Iterator[Item]:
    """Yield facts about files of the project that are gone."""
    root = task.place.root
    if root is None:
        return
    facts = []
    with task.place.memory.reading() as reader:
        for entity in scan(
            reader, "comparing files", task.among, progress=task.progress, check=task.check
        ):
            facts += [(entity.name, fact) for fact in entity.facts if paths_in(fact.text)]
    facts.sort(key=lambda found: -found[1].created_at)
    remarks = remarks_on_files(
        root,
        [(fact.text, fact.created_at) for _, fact in facts],
        limit=_MAX_CHECKED_FACTS,
        wait=_GIT_WAIT_S,
    )
    for (name, fact), remark in zip(facts, remarks, strict=True):
        if remark.endswith("gone"):
            yield line_item(f"- file? {name} {_quote(fact)}: {remark}: revise or forget it")


_FINDERS: dict[ReviewKind, Callable[[ReviewTask], Iterator[Item]]] = {
    "contradictions": _contradictions,
    "overdue": _overdue,
    "duplicates": _duplicates,
    "files": _files,
}
