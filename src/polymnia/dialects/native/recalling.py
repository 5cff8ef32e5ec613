"""`recall`: which of the hits a question gets, and what is said when there are none."""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.empty_reply import count_passages, explain_nothing
from polymnia.dialects.native.entity_reply import (
    PlacedHit,
    authors_of,
    lines_of,
    newest_passages,
    show_entities,
    with_newest_facts,
    without_repeats,
)
from polymnia.dialects.native.grouping import (
    Line,
    fit_turns,
    head_of,
    line_data,
    note_lines,
    turn_groups,
)
from polymnia.dialects.native.listing import (
    MAX_LISTED,
    list_entities,
    names_with_status,
    select_entities,
    stored_types,
)
from polymnia.dialects.native.replies import clean_reply, offset_of, prose
from polymnia.dialects.native.scope import Place, places
from polymnia.dialects.native.shapes import Found, Recall
from polymnia.engine.facts.remember import OPEN, TODO_TYPES
from polymnia.engine.facts.todos import OVERDUE
from polymnia.engine.memory import one_snapshot
from polymnia.engine.recall.passages import RecallResult
from polymnia.engine.recall.passages import recall as find_passages
from polymnia.model import (
    Entity,
    Hit,
    Passage,
    Signals,
    Within,
    drop_expired_facts,
)
from polymnia.search.hits import EXACT_KINDS
from polymnia.search.languages import language_of
from polymnia.search.terms import fold, one_line, words_of
from polymnia.search.times import parse_optional_moment
from polymnia.search.tokens import count_tokens

# Hits are ranked up to here, so that those left out can be counted.
MAX_RANKED = 200
# A fact is shown if its score is this share of the best one's. A list has more and shorter facts.
# With a larger budget than the usual one, proportionally more facts and lower scores are shown.
MIN_SCORE_SHARE = 0.3
MAX_FACTS, MAX_TURNS, USUAL_TOKENS = 10, 120, 1_000
# A hit with this share of the question's words probably answers it.
MIN_SURE_SHARE = 0.5
# Facts of the entities of a type that is asked for, if they are few: one "open tasks" may hold all.
MAX_FACTS_OF_TYPE = 8
# Hits that follow the entities of a type that is asked for.
MAX_BESIDE_LIST = 4
# If a filter selects so few entities, all of them are shown.
MAX_SELECTED = 8
# The hits are turns of a conversation if so many of the first ten are.
MIN_TURNS = 6
# A turn that ends with a question is shown with its answer.
QUESTION_TAIL, MAX_ANSWER_CHARACTERS = 90, 400

_LIST_WORDS = re.compile(
    r"\b(?:all|every|list|how many|each of)\b"
    r"|\b(?:which|what)\s+(?:are\s+)?(?:the\s+|our\s+|my\s+|all\s+)*"
    r"(?!is\b|was\b|does\b|has\b)(?-i:[a-z-]+)(?<!s)s\b",  # not "which Kubernetes version"
    re.IGNORECASE,
)

# Words that say nothing about what is asked, if no fact has them.
_FILLERS = frozenset(
    words_of(
        "around anybody find give handle last look must next part put recently take times today"
        " tomorrow trouble two way week wrong year yesterday"
    )
)
_DUE_WORDS = re.compile(
    r"\b(?:what|which|anything|everything)\b.{0,100} due\b|\bdeadlines\b|\bleft to do\b"
    r"|\b(?:must|should|have to|need to|ought to) (?:i |we )?(?:do|finish|prepare)\b"
)
_OVERDUE_WORDS = re.compile(r"\boverdue\b|\b(?:tasks?|todos?|items?)\b.{0,100}\blate\b")
_TODO_FILTERS = {kind + ending for kind in TODO_TYPES for ending in ("", "s")}
_OPEN_WORDS = re.compile(r"\b(?:open|overdue|pending)\b")
# How a question asks for all entities of a type, where that is not the plural.
_ASKED_TYPES = {
    "person": r"(?:people|persons)\b",
    "decision": r"decisions\b|decided?\W*$",
    "todo": r"todos\b|to ?do lists?\b",
}


@tool(Recall, needs="read", always_load=True, brief=True)
def recall(call: Call, arguments: Recall) -> Reply:
    """Search the memory before you answer or act. Ask one whole question per call; put other \
wordings, synonyms and guessed answers into also. Without query it lists: \
{"types":["todo"],"status":"open"} or {"types":["decision"],"since":"last week"}. Facts come \
grouped by entity; [Fri 13 Nov] is the day a fact became true. If none answers, ask once more with \
other words, then say it is not stored. The default model reads English: translate other languages \
in also. In long conversations max_tokens 2000 shows 91 % of what answers need, the default 88 %. \
open shows all."""
    if arguments.status and arguments.types and set(arguments.types) <= _TODO_FILTERS:
        arguments = replace(arguments, types=[])  # whatever has a status is a to-do
    if not arguments.query.strip() and not arguments.also:
        return list_entities(call, arguments)
    read = places(call, arguments.workspace)
    # The whole reply comes from one state of the workspaces.
    with one_snapshot([place.memory for place in read], may_lag=True) as together:
        return _answer(call, arguments, read, together)


def _answer(
    call: Call, arguments: Recall, read: list[Place], together: Callable[..., list[Any]]
) -> Reply:
    """Search the workspaces, decide which hits are shown, and write the reply."""
    offset = offset_of(arguments.cursor)
    within = _within(read, arguments)
    search = partial(_search_place, arguments=arguments, within=within, together=together)
    searched = together(*[partial(search, place) for place in read])
    results = [(place, result) for place, (result, _) in zip(read, searched, strict=True)]
    ranked = _rank(results)
    first_ten = [hit.passage for _, hit in ranked[:10]]
    turns = sum(passage.is_turn for passage in first_ten)
    shows_turns = bool(turns) and turns >= min(MIN_TURNS, len(first_ten))
    # The entities of a type that the question asks a list of, the latest first, or all that a
    # filter selects.
    listed: list[PlacedHit] = []
    selected: list[PlacedHit] = []
    if not shows_turns:
        beside = selected if _selects(arguments) else listed
        for place, (_, passages) in zip(read, searched, strict=True):
            beside += [(place, Hit(passage, 0.0, "type", Signals())) for passage in passages]
    if not ranked and not listed and not selected:
        notes = _search_notes(results)
        sentences = [explain_nothing(call, arguments, read, within), *notes]
        if notes:  # nothing can be said before the model is loaded
            sentences.append("Ask again in a moment.")
        elif within is None and any(count_passages(place) for place in read):
            advice = _ask_again(arguments.query, [])
            sentences.append(f"{advice[:1].upper()}{advice[1:]}")
        return clean_reply(" ".join(sentences), Found(items=[]))

    # Which hits: those that come close to the best one, and the best of each named entity. For a
    # conversation, or of a number that was asked for, all.
    room = max(1.0, arguments.max_tokens / USUAL_TOKENS)
    is_list = bool(_selects(arguments) or listed or _LIST_WORDS.search(arguments.query))
    hits = ranked
    if not shows_turns and not arguments.limit:
        hits = _relevant_hits(ranked, MIN_SCORE_SHARE / room)
    if listed:
        # The list is the answer, or else the best hits are: "how many customers joined".
        hits = hits[:MAX_BESIDE_LIST]
    hits = without_repeats([*listed, *hits, *selected])[offset:]

    # How much of them fits. The first entities are shown whole, unless facts were asked for.
    shown: list[Line]
    if shows_turns:
        head = head_of("", "")  # turns have no notes
        turns_said = with_newest_facts(hits)
        lines = _with_answers(lines_of(turns_said, authors_of(turns_said)))
        budget = arguments.max_tokens - count_tokens(head) - 8  # for what follows the turns
        shown = fit_turns(lines[: arguments.limit or MAX_TURNS], budget)
        texts = turn_groups(shown)
    else:
        limit = arguments.limit or int(room * (MAX_LISTED if is_list else MAX_FACTS))
        reply = show_entities(arguments, hits, ranked, within, together, limit, is_list=is_list)
        head, texts, lines, shown = reply
    present = {(place.name, *hit.passage.key) for place, hit in hits}

    # What is missing matters if the best hits have little of the question. It cannot be told before
    # the model is loaded. A question about a known name needs no other words.
    unknown = _unknown_everywhere([result for _, result in results])
    notes = _search_notes(results)
    first_hits = [hit for _, hit in ranked[:3]]
    is_unsure = not listed and not offset and not notes
    is_unsure &= not any(hit.share >= MIN_SURE_SHARE for hit in first_hits)
    if unknown and is_unsure:
        head += "\n" + one_line(f"No fact has: {', '.join(unknown[:5])}. Nearest:")
    more = len(lines) - len(shown)
    shown_hits = sum(line.key in present for line in shown)  # not what completes an entity
    if arguments.limit and not shows_turns and hits:
        least = MIN_SCORE_SHARE * max(hit.score for _, hit in hits)
        more = min(more, sum(hit.score >= least for _, hit in hits) - len(shown))
    remarks = []
    is_named = any(hit.signals.entity for hit in first_hits)
    if is_unsure and not is_named and (unknown or all(hit.is_weak for hit in first_hits)):
        advice = _ask_again(arguments.query, [passage.text for passage in first_ten])
        remarks.append(f"If none of these answers: {advice}")
    elif more > 0 and not shows_turns:  # turns are ranked to the last, so there are always more
        bound = "limit" if arguments.limit else "max_tokens"
        remarks.append(f"{more} more match: raise {bound} or ask more narrowly.")
    note_lines(shown)
    found = Found(
        items=[line_data(line) for line in shown],
        cursor=str(offset + shown_hits) if more > 0 else "",
        unknown=unknown,
    )
    return clean_reply("\n".join([head, *texts, *remarks, *notes]), found)


def _search_place(
    place: Place, arguments: Recall, within: Within | None, together: Callable[..., list[Any]]
) -> tuple[RecallResult, list[Passage]]:
    """Return what answers the question, and the entities of a type that it asks a list of."""
    own_filter = _with_status(place, within, arguments.status)
    search = partial(
        find_passages,
        place.memory,
        arguments.query,
        also=arguments.also,
        limit=MAX_RANKED,
        within=own_filter,
    )
    of_types = partial(_newest_of_asked_types, place, arguments.query, own_filter)
    if _selects(arguments):
        of_types = partial(_newest_of_selected, place, arguments, own_filter)
    result, passages = together(search, of_types)
    return result, passages


def _selects(arguments: Recall) -> bool:
    return bool(arguments.types or arguments.tags or arguments.status)


def _newest_of_selected(place: Place, arguments: Recall, within: Within | None) -> list[Passage]:
    """Return facts of the entities that a filter selects, if they are few: what is due first."""
    with place.memory.reading() as reader:
        selected = drop_expired_facts(select_entities(reader, arguments))
    if len(selected) > MAX_SELECTED:
        return []
    return _newest_facts(selected, within)


def _relevant_hits(ranked: list[PlacedHit], share: float) -> list[PlacedHit]:
    """Return the hits with this share of the best score, and the best of each named entity."""
    least = share * max((hit.score for _, hit in ranked), default=0.0)
    relevant = []
    named: set[tuple[str, str]] = set()
    for place, hit in ranked:
        subject = (place.name, hit.passage.entity)
        is_best_of_named = hit.signals.entity == 1 and subject not in named
        if hit.signals.entity == 1:
            named.add(subject)
        if hit.score >= least or hit.match_kind in EXACT_KINDS or is_best_of_named:
            relevant.append((place, hit))
    return relevant or ranked[:1]


def _unknown_everywhere(results: list[RecallResult]) -> list[str]:
    """Return the words of the question that no fact of any workspace has."""
    unknown = list(results[0].unknown)
    for result in results[1:]:
        unknown = [word for word in unknown if word in result.unknown]
    return [word for word in unknown if fold(word) not in _FILLERS]


def _ask_again(query: str, texts: list[str]) -> str:
    """Return the advice to ask in other words or, if the facts are in another language, in that."""
    asked = language_of(query)
    told = Counter(language_of(text) for text in texts)
    if asked and told[asked]:
        language = asked
    else:  # short texts do not tell their language, so two that do are enough
        language = max([name for name in told if told[name] > 1], key=bool, default="")
    words = "other words"
    if asked and not texts:
        words += " and in English"
    elif language != asked:
        words = f"a translation into {language.title() or 'English'}"
    return f"ask once more with {words} in also, then say it is not stored."


def _search_notes(results: list[tuple[Place, RecallResult]]) -> list[str]:
    """Return sentences about former names, and about why semantic search was skipped."""
    corrections: dict[str, str] = {}
    notes = []
    for place, result in results:
        corrections |= result.corrections
        if result.note and place.memory.meaning:
            notes.append(f"{result.note[:1].upper()}{result.note[1:]}.")
    renamed = [f"Searched for {name!r} instead of {old!r}." for old, name in corrections.items()]
    # What is missing in one workspace says enough.
    return [one_line(sentence) for sentence in dict.fromkeys(renamed + notes[:1])]


def search_places(call: Call, query: str, *, limit: int) -> list[PlacedHit]:
    """Return the best hits in all of the client's workspaces."""
    results = []
    for place in places(call):
        results.append((place, find_passages(place.memory, query, limit=limit)))
    return _rank(results)[:limit]


def _within(read: list[Place], arguments: Recall) -> Within | None:
    types = dict.fromkeys(arguments.types)
    if types:
        for place in read:
            with place.memory.reading() as reader:
                types |= dict.fromkeys(stored_types(reader, arguments.types))
    within = Within(
        types=tuple(types) or None,
        tags=tuple(arguments.tags) or None,
        since=parse_optional_moment(arguments.since, "since"),
        until=parse_optional_moment(arguments.until, "until"),
    )
    if within == Within():
        return None
    return within


def _with_status(place: Place, within: Within | None, status: str) -> Within | None:
    """Return the filters with the names of the entities that have the status."""
    if not status:
        return within
    with place.memory.reading() as reader:
        names = names_with_status(reader, status)
    return replace(within or Within(), names=tuple(names))


def _rank(results: list[tuple[Place, RecallResult]]) -> list[PlacedHit]:
    """Return the hits of all workspaces in one ranking: exact matches first, then by score."""
    ranked = [(place, hit) for place, result in results for hit in result.hits]
    if len(results) > 1:  # the hits of one workspace are in order
        ranked.sort(key=lambda placed: (_exact_rank(placed[1]), -placed[1].score))
    return ranked


def _exact_rank(hit: Hit) -> int:
    if hit.match_kind in EXACT_KINDS:
        return EXACT_KINDS.index(hit.match_kind)
    return len(EXACT_KINDS)


def _newest_of_asked_types(place: Place, query: str, within: Within | None) -> list[Passage]:
    """Return the newest facts of the entities that the question asks a list of: what is due first.

    It has a type in the plural ("which decisions …", "my open to-dos", "what did we decide"), or
    asks what is overdue. Without what is done, if it asks for what is open.
    """
    words = fold(query.replace("-", ""))  # to-dos are of the type todo
    with place.memory.reading() as reader:
        listed: list[Entity] = []
        for kind in reader.types():
            if _asks_for_type(words, fold(kind)):
                listed += reader.newest_of_type(kind, MAX_LISTED)
        names = []
        if _OVERDUE_WORDS.search(words):
            names = names_with_status(reader, OVERDUE) or names_with_status(reader, OPEN)
        elif _DUE_WORDS.search(words):
            names = names_with_status(reader, OPEN)
        # If nothing is overdue, the open ones show it.
        listed = reader.entities(names[:MAX_LISTED]) if names else listed
    listed = drop_expired_facts(listed)
    if _OPEN_WORDS.search(words):
        listed = [entity for entity in listed if entity.status in ("", OPEN)]
    return _newest_facts(listed[::-1], within)


def _newest_facts(entities: list[Entity], within: Within | None) -> list[Passage]:
    entities = sorted(entities, key=lambda entity: entity.due or 2**62)
    facts_each = max(1, MAX_FACTS_OF_TYPE // max(1, len(entities)))
    passages = []
    for entity in entities:
        passages += newest_passages(entity, facts_each, within)
    return passages


def _asks_for_type(words: str, kind: str) -> bool:
    stem = kind[:-1] + "ie" if kind.endswith("y") else kind
    asked = _ASKED_TYPES.get(kind, rf"{re.escape(stem)}e?s\b")
    return bool(kind) and re.search(rf"\b(?:{asked})", words) is not None


def _with_answers(lines: list[Line]) -> list[Line]:
    """Return the turns; one of the first ten that ends with a question is followed by the next."""
    asking = [line for line in lines[:10] if "?" in line.text[-QUESTION_TAIL:]]
    present = {(line.place.name, line.passage.key) for line in lines}
    answers: dict[tuple[str, tuple[str, int]], Line] = {}
    for place in {line.place.name: line.place for line in asking}.values():
        here = [line.passage for line in asking if line.place.name == place.name]
        with place.memory.reading() as reader:
            neighbours = reader.neighbours(here)
        for key, near in neighbours.items():
            if near.after is None or (place.name, near.after.key) in present:
                continue
            text = prose(near.after.text)[:MAX_ANSWER_CHARACTERS]
            answers[place.name, key] = Line(place, near.after, text, None)
    followed = []
    for line in lines:
        followed.append(line)
        answer = answers.get((line.place.name, line.passage.key))
        if answer is not None:
            followed.append(answer)
    return followed
