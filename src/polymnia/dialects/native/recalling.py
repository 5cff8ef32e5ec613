"""`recall`: which of the hits a question gets, and what is said when there are none."""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.grouping import (
    BEST_EXCERPT,
    EXCERPT,
    MAX_WHOLE_CHARACTERS,
    Line,
    entity_groups,
    excerpt,
    fit_lines,
    fit_turns,
    head_of,
    line_data,
    relation_texts,
    turn_groups,
    usual,
)
from polymnia.dialects.native.listing import (
    list_entities,
    names_with_status,
    stored_types,
)
from polymnia.dialects.native.marks import mark_files, mark_outdated, mark_replaced, successors_of
from polymnia.dialects.native.replies import clean_reply, offset_of, prose
from polymnia.dialects.native.scope import Place, join_names, other_places, places
from polymnia.dialects.native.shapes import Found, Recall
from polymnia.engine.facts.remember import OPEN
from polymnia.engine.facts.todos import OVERDUE
from polymnia.engine.graph import entities
from polymnia.engine.history import changes as history
from polymnia.engine.memory import one_snapshot
from polymnia.engine.recall.names import similar_names
from polymnia.engine.recall.passages import RecallResult
from polymnia.engine.recall.passages import recall as find_passages
from polymnia.model import (
    Author,
    Entity,
    Hit,
    Passage,
    Relation,
    Signals,
    Within,
    drop_expired_facts,
)
from polymnia.search.hits import EXACT_KINDS
from polymnia.search.terms import count_noun, fold, one_line, terms_of, words_of
from polymnia.search.times import parse_optional_moment
from polymnia.search.tokens import count_tokens

# Hits are ranked up to here, so that those left out can be counted.
MAX_RANKED = 200
# A fact is shown if its score is this share of the best one's. A list has more and shorter facts.
# With a larger budget than the usual one, proportionally more facts and lower scores are shown.
MIN_SCORE_SHARE = 0.4
MAX_FACTS, MAX_LISTED, MAX_TURNS, USUAL_TOKENS = 8, 24, 120, 1_000
MAX_LISTED_CHARACTERS = 200
# A hit with this share of the question's words probably answers it.
MIN_SURE_SHARE = 0.5
# Room for what follows the facts: relations and remarks.
FACTS_TAIL_TOKENS, TURNS_TAIL_TOKENS = 40, 8
MAX_PASSAGES_PER_ENTITY = 2
# Facts of the entities of a type that is asked for, if they are few: one "open tasks" may hold all.
MAX_FACTS_OF_TYPE = 8
# Hits that follow the entities of a type that is asked for.
MAX_BESIDE_LIST = 4
MAX_RELATIONS = 5
# The entities that are shown whole if they have few facts and a hit with this share of the best
# score.
MAX_WHOLE_ENTITIES, MAX_WHOLE_FACTS, WHOLE_SCORE_SHARE = 3, 8, 0.7
# The hits are turns of a conversation if so many of the first ten are.
MIN_TURNS = 6
# A turn that ends with a question is shown with its answer.
QUESTION_TAIL, MAX_ANSWER_CHARACTERS = 90, 400
# Other workspaces that are searched when the client's own have nothing.
_MAX_OTHERS = 10
_MAX_SIMILAR_NAMES = 5
# What is said of an entity instead of its newest fact.
_EXPIRED = "all its facts expired; open shows them"
_ASK_AGAIN = (
    "If none of these answers, ask once more with other words in also, then say it is not stored."
)

_LIST_WORDS = re.compile(
    r"\b(?:all|every|list|how many|each of)\b"
    r"|\b(?:which|what)\s+(?:are\s+)?(?:the\s+|our\s+|my\s+|all\s+)*"
    r"(?!is\b|was\b|does\b|has\b)(?-i:[a-z-]+)(?<!s)s\b",  # not "which Kubernetes version"
    re.IGNORECASE,
)

_OPEN_WORDS = re.compile(r"\b(?:open|overdue|pending)\b")
# How a question asks for all entities of a type, where that is not the plural.
_ASKED_TYPES = {
    "person": r"(?:people|persons)\b",
    "decision": r"decisions\b|decided?\W*$",
    "todo": r"todos\b|to ?do lists?\b",
}

PlacedHit = tuple[Place, Hit]
# By workspace and entity.
Relations = dict[tuple[str, str], list[Relation]]
# By workspace and passage.
Authors = dict[str, dict[tuple[str, int], Author]]


@tool(Recall, needs="read", always_load=True, brief=True)
def recall(call: Call, arguments: Recall) -> Reply:
    """Search the memory before you answer or act. Ask one whole question per call; put other \
wordings, synonyms and guessed answers into also. Without query it lists: \
{"types":["todo"],"status":"open"} or {"types":["decision"],"since":"last week"}. Facts come \
grouped by entity; [Fri 13 Nov] is the day a fact became true. If none answers, ask once more with \
other words, then say it is not stored. open shows all."""
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
    listed: list[PlacedHit] = []
    if not shows_turns and not arguments.types:
        # The entities of a type that the question asks a list of, the latest first.
        for place, (_, passages) in zip(read, searched, strict=True):
            listed += [(place, Hit(passage, 0.0, "type", Signals())) for passage in passages]
    if not ranked and not listed:
        sentences = [_explain_nothing(call, arguments, read, within), *_search_notes(results)]
        return clean_reply(" ".join(sentences), Found(items=[]))

    # Which hits: those that come close to the best one, and the best of each named entity. For a
    # conversation, or of a number that was asked for, all.
    room = max(1.0, arguments.max_tokens / USUAL_TOKENS)
    is_list = bool(
        arguments.types or arguments.tags or listed or _LIST_WORDS.search(arguments.query)
    )
    hits = ranked
    if not shows_turns and not arguments.limit:
        hits = _relevant_hits(ranked, MIN_SCORE_SHARE / room)
    if listed:
        # The list is the answer, or else the best hits are: "how many customers joined".
        hits = hits[:MAX_BESIDE_LIST]
    hits = _without_repeats([*listed, *hits])[offset:]

    # How much of them fits. The first entities are shown whole, unless facts were asked for.
    shown: list[Line]
    if shows_turns:
        head = head_of("", "")  # turns have no notes
        hits = _with_newest_facts(hits)
        turns_shown = _lines(hits, MAX_WHOLE_CHARACTERS, _authors(hits), shows_turns=True)
        lines = _with_answers(turns_shown)
        budget = arguments.max_tokens - count_tokens(head) - TURNS_TAIL_TOKENS
        shown = fit_turns(lines[: arguments.limit or MAX_TURNS], budget)
        texts = turn_groups(shown)
    else:
        limit = arguments.limit or int(room * (MAX_LISTED if is_list else MAX_FACTS))
        hits = _with_newest_facts(hits)
        chosen = [] if arguments.limit else hits[:limit]
        begin = partial(_look_beside, chosen, together, is_list=is_list)
        owners = [(place, hit.passage.entity) for place, hit in hits]
        authors, successors, (few, relations) = together(
            partial(_authors, hits), partial(successors_of, owners), begin
        )
        whole = [] if is_list else _facts_of(few, within)
        hits = _without_repeats([*hits[:limit], *whole, *hits[limit:]])
        max_characters = MAX_LISTED_CHARACTERS if is_list else MAX_WHOLE_CHARACTERS
        lines = _lines(hits, max_characters, authors, shows_turns=False)
        common = usual(lines)
        head = head_of(*common)
        budget = arguments.max_tokens - count_tokens(head) - FACTS_TAIL_TOKENS
        shown = fit_lines(lines, budget, limit + len(whole))
        shown, outlines, authors = together(
            partial(mark_replaced, shown), partial(_outlines_of, shown), partial(_authors, whole)
        )
        shown = mark_files(mark_outdated(_with_authors(shown, authors), successors))
        best = _related_subject(ranked, shown)
        related = {}
        for subject, own in relations.items():
            # A list gets the relations of its to-dos, which say who has which.
            if not is_list or subject == best or (subject in outlines and outlines[subject].status):
                related[subject] = relation_texts(subject[1], own, arguments.query, MAX_RELATIONS)
        texts = entity_groups(shown, common, outlines, related)

    # What is missing matters if the best hits have little of the question, and name nothing in it.
    # It cannot be told before the model is loaded.
    unknown = _unknown_everywhere([result for _, result in results])
    notes = _search_notes(results)
    first_hits = [hit for _, hit in ranked[:3]]
    is_unsure = not listed and not offset and not notes
    is_unsure &= not any(hit.signals.entity or hit.share >= MIN_SURE_SHARE for hit in first_hits)
    if unknown and is_unsure:
        head += "\n" + one_line(f"No fact has: {', '.join(unknown[:5])}. Nearest:")
    more = len(lines) - len(shown)
    if arguments.limit and not shows_turns and hits:
        least = MIN_SCORE_SHARE * max(hit.score for _, hit in hits)
        more = min(more, sum(hit.score >= least for _, hit in hits) - len(shown))
    remarks = []
    if is_unsure and (unknown or all(hit.is_weak for hit in first_hits)):
        remarks.append(_ASK_AGAIN)
    elif more > 0 and not shows_turns:  # turns are ranked to the last, so there are always more
        bound = "limit" if arguments.limit else "max_tokens"
        remarks.append(f"{more} more match: raise {bound} or ask more narrowly.")
    found = Found(
        items=[line_data(line) for line in shown],
        cursor=str(offset + len(shown)) if more > 0 else "",
        unknown=unknown,
    )
    return clean_reply("\n".join([head, *texts, *remarks, *notes]), found)


def _look_beside(
    hits: list[PlacedHit], together: Callable[..., list[Any]], *, is_list: bool
) -> tuple[list[tuple[Place, list[str]]], Relations]:
    """Return the first entities, those with few facts, and the relations of all of these.

    The fact that decides often stands beside the one that has the words of the question.
    """
    best_score = max((hit.score for _, hit in hits), default=0.0)
    first: dict[tuple[str, str], Place] = {}
    for place, hit in hits:
        is_near = hit.score >= WHOLE_SCORE_SHARE * best_score
        if hit.passage.kind != "note" and (is_near or is_list):
            first.setdefault((place.name, hit.passage.entity), place)
    subjects = list(first)[: MAX_LISTED if is_list else MAX_WHOLE_ENTITIES]
    few = []
    relations: Relations = {}
    for place in {name: first[name, entity] for name, entity in subjects}.values():
        names = [entity for name, entity in subjects if name == place.name]
        with place.memory.reading() as reader:
            counts, touching = together(
                partial(reader.fact_counts, names), partial(reader.relations, names)
            )
        few.append((place, [name for name in names if counts.get(name, 0) <= MAX_WHOLE_FACTS]))
        for relation in touching:
            for end in set(relation.ends).intersection(names):
                relations.setdefault((place.name, end), []).append(relation)
    return few, relations


def _facts_of(few: list[tuple[Place, list[str]]], within: Within | None) -> list[PlacedHit]:
    """Return the facts of entities that are shown whole, as far as a filter allows."""
    facts = []
    for place, names in few:
        with place.memory.reading() as reader:
            entities = drop_expired_facts(reader.entities(names)) if names else []
        for entity in entities:
            for fact in entity.facts:
                passage = Passage.of(entity, fact)
                if within is None or within.has(passage):
                    facts.append((place, Hit(passage, 0.0, "entity", Signals())))
    return facts


def _with_authors(lines: list[Line], authors: Authors) -> list[Line]:
    """Return the lines, those without an author with one of these."""
    signed = []
    for line in lines:
        if line.author is None:
            line = replace(line, author=authors.get(line.place.name, {}).get(line.passage.key))
        signed.append(line)
    return signed


def _related_subject(ranked: list[PlacedHit], shown: list[Line]) -> tuple[str, str] | None:
    """Return the entity that the question names, or the best one."""
    naming: dict[tuple[str, str], float] = {}
    for place, hit in ranked:
        subject = (place.name, hit.passage.entity)
        naming[subject] = max(hit.signals.entity, naming.get(subject, 0.0))
    subjects = [line.subject for line in shown]
    return max(subjects, key=lambda subject: naming.get(subject, 0.0), default=None)


def _outlines_of(shown: list[Line]) -> dict[tuple[str, str], Entity]:
    """Return the entities without their facts, by workspace and name."""
    outlines = {}
    for place in {line.place.name: line.place for line in shown}.values():
        names = {line.passage.entity for line in shown if line.place.name == place.name}
        with place.memory.reading() as reader:
            for entity in reader.outlines(names):
                outlines[place.name, entity.name] = entity
    return outlines


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
    result, of_types = together(
        search, partial(_newest_of_asked_types, place, arguments.query, own_filter)
    )
    return result, of_types


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


def _lines(
    hits: list[PlacedHit], max_characters: int, authors: Authors, *, shows_turns: bool
) -> list[Line]:
    """Return what may be shown, best first: texts and authors."""
    passages_shown: Counter[tuple[str, str]] = Counter()
    lines = []
    for number, (place, hit) in enumerate(hits):
        passage = hit.passage
        text = prose(passage.text)
        if len(text) > MAX_WHOLE_CHARACTERS and not shows_turns:
            text = excerpt(text, hit.excerpt, BEST_EXCERPT if number == 0 else EXCERPT)
        elif len(text) > max_characters:
            text = text[: max_characters - 1].rstrip() + "…"
        if len(passage.text) > MAX_WHOLE_CHARACTERS:
            passages_shown[place.name, passage.entity] += 1
            if passages_shown[place.name, passage.entity] > MAX_PASSAGES_PER_ENTITY:
                continue  # passages of one document would crowd out other facts
        author = authors.get(place.name, {}).get(passage.key)
        lines.append(Line(place, passage, text, author))
    return lines


def _unknown_everywhere(results: list[RecallResult]) -> list[str]:
    """Return the words of the question that no fact of any workspace has."""
    unknown = list(results[0].unknown)
    for result in results[1:]:
        unknown = [word for word in unknown if word in result.unknown]
    return unknown


def _search_notes(results: list[tuple[Place, RecallResult]]) -> list[str]:
    """Return sentences on names of before, and on why meaning was left out."""
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
        if OVERDUE in words_of(words):
            names = names_with_status(reader, OVERDUE)
            # If nothing is overdue, the open ones of a type that is asked for show it.
            listed = reader.entities(names[:MAX_LISTED]) if names else listed
    listed = drop_expired_facts(listed)
    if _OPEN_WORDS.search(words):
        listed = [entity for entity in listed if entity.status in ("", OPEN)]
    listed.reverse()
    listed.sort(key=lambda entity: entity.due or 2**62)
    facts_each = max(1, MAX_FACTS_OF_TYPE // max(1, len(listed)))
    passages = []
    for entity in listed:
        passages += _newest_passages(entity, facts_each, within)
    return passages


def _asks_for_type(words: str, kind: str) -> bool:
    stem = kind[:-1] + "ie" if kind.endswith("y") else kind
    asked = _ASKED_TYPES.get(kind, rf"{re.escape(stem)}e?s\b")
    return bool(kind) and re.search(rf"\b(?:{asked})", words) is not None


def _newest_passages(entity: Entity, count: int, within: Within | None = None) -> list[Passage]:
    """Return the newest facts of an entity that a filter allows.

    Without a filter, return its card if it has none.
    """
    if not entity.facts and within is None:
        return [Passage(entity.name, entity.type, 0, entity.summary or "", tags=entity.tags)]
    passages = [Passage.of(entity, fact) for fact in entity.facts]
    if within is not None:
        passages = [passage for passage in passages if within.has(passage)]
    return passages[-count:]


def _without_repeats(hits: list[PlacedHit]) -> list[PlacedHit]:
    """Return the hits, each passage once, at its first place."""
    first: dict[tuple[str, tuple[str, int]], PlacedHit] = {}
    for place, hit in hits:
        first.setdefault((place.name, hit.passage.key), (place, hit))
    return list(first.values())


def _with_newest_facts(hits: list[PlacedHit]) -> list[PlacedHit]:
    """Return the hits; one on a bare name stands for the entity's newest fact.

    It is left out if the entity has a hit of its own, or if all its facts expired; if that is the
    only hit, it says so.
    """
    found = {
        (place.name, hit.passage.entity) for place, hit in hits if hit.passage.kind != "entity"
    }
    shown, expired = [], []
    for place, hit in hits:
        card = hit.passage
        if card.kind != "entity" or card.text:
            shown.append((place, hit))
        elif (place.name, card.entity) not in found:
            graph = entities.open_named(place.memory, {card.entity})
            living = drop_expired_facts(graph.entities)
            if living:
                card = _newest_passages(living[0], 1)[0]
            elif graph.entities:
                card = replace(card, text=_EXPIRED)
                expired.append((place, replace(hit, passage=card)))
                continue
            shown.append((place, replace(hit, passage=card)))
    return shown or expired[:1]


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


def _authors(hits: list[PlacedHit]) -> dict[str, dict[tuple[str, int], Author]]:
    """Return the authors of the passages, by workspace and key."""
    authors = {}
    for place in {place.name: place for place, _ in hits}.values():
        keys = [hit.passage.key for owner, hit in hits if owner.name == place.name]
        authors[place.name] = history.authors(place.memory, keys)
    return authors


def _explain_nothing(
    call: Call, arguments: Recall, read: list[Place], within: Within | None
) -> str:
    """Return what was searched, which filter hides hits, similar names, and where hits are."""
    sentences = ["Nothing found: nothing was remembered yet."]
    if read:
        searched = count_noun(sum(_count_passages(place) for place in read), "passage")
        sentences = [f"Nothing found: searched {searched} in {join_names(read)}."]
    sentences += _blame_filters(arguments.query, read, within)
    similar: dict[str, None] = {}
    for place in read:
        similar |= dict.fromkeys(_names_near(place, arguments.query))
    if similar:
        names = ", ".join(list(similar)[:_MAX_SIMILAR_NAMES])
        sentences.append(f"Near it: {names}; open shows what is known of them.")
    # A client that names another workspace knows where to look.
    if arguments.workspace in ("", "project", "personal"):
        others = other_places(call, read, limit=_MAX_OTHERS)
        names = ", ".join(
            place.name for place in others if _has_hits(place, arguments.query, within)
        )
        if names:
            sentences.append(f"Other workspaces have hits: {names}; pass one as workspace.")
    return one_line(" ".join(sentences))


def _blame_filters(query: str, read: list[Place], within: Within | None) -> list[str]:
    """Return which of the filters alone hides hits; all of them together if no single one does."""
    if within is None or not any(_has_hits(place, query, None) for place in read):
        return []
    hiding = []
    for name in ("types", "tags", "since", "until"):
        fewer = replace(within, **{name: None})
        if fewer != within and any(_has_hits(place, query, fewer) for place in read):
            hiding.append(name)
    if not hiding:
        return ["There are hits without filters."]
    return [f"There are hits without the filter {' or '.join(hiding)}."]


def _names_near(place: Place, query: str) -> list[str]:
    """Return names that contain a word of the question, or else names that are spelled like it."""
    with place.memory.reading() as reader:
        names = reader.names_with(terms_of(query), _MAX_SIMILAR_NAMES)
    return names or similar_names(place.memory, query)


def _count_passages(place: Place) -> int:
    with place.memory.reading() as reader:
        counts = reader.counts()
    return counts.entities + counts.facts


def _has_hits(place: Place, query: str, within: Within | None) -> bool:
    return bool(find_passages(place.memory, query, limit=1, within=within).hits)
