"""`recall`: search the client's workspaces together, label each hit, and explain an empty answer."""

from msgspec.structs import replace

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.native.budget import bounded_reply, offset_of
from polymnia.dialects.native.lines import hit_item, one_line
from polymnia.dialects.native.scope import Place, others, places
from polymnia.dialects.native.shapes import Items, Recall
from polymnia.dialects.times import parse_moment
from polymnia.engine import history
from polymnia.engine.recall import RecallResult
from polymnia.engine.recall import recall as find_passages
from polymnia.engine.suggest import similar_names
from polymnia.model import Author, Counts, Hit, Within
from polymnia.search.hits import EXACT_KINDS
from polymnia.search.terms import terms_of
from polymnia.search.text import count_noun

# Hits are ranked up to here, so that those left out can be counted.
MAX_RANKED = 200
# Other workspaces that are searched when the client's own have nothing.
_MAX_OTHERS = 10
_MAX_NEAR = 5
_NO_WORKSPACE = "Nothing found: nothing was remembered yet."


@tool(Recall, needs="read", returns=Items, always_load=True, brief=True)
def recall(call: Call, arguments: Recall) -> Reply:
    """Search the memory before you answer or act, with other phrasings and guessed answers in also; open shows all."""
    read = places(call, arguments.workspace)
    offset = offset_of(arguments.cursor)
    within = _within(arguments)
    also, context = arguments.also, arguments.context
    results = [
        (
            each,
            find_passages(
                each.memory,
                arguments.query,
                also=also,
                limit=MAX_RANKED,
                within=within,
                context=context,
            ),
        )
        for each in read
    ]
    ranked = _merge(results)
    page = ranked[offset : offset + arguments.limit]
    if not ranked:
        return bounded_reply(
            [],
            max_tokens=arguments.max_tokens,
            note=_explain_nothing(call, arguments, read, within),
        )
    items = [
        hit_item(hit, place.name, author, arguments.detail)
        for place, hit, author in _with_authors(page)
    ]
    note = _note([result for _, result in results], read)
    return bounded_reply(
        items, max_tokens=arguments.max_tokens, offset=offset, total=len(ranked), note=note
    )


def search_places(call: Call, query: str, *, limit: int) -> list[tuple[Place, Hit]]:
    """Return the best hits in all of the client's workspaces."""
    results = [(each, find_passages(each.memory, query, limit=limit)) for each in places(call)]
    return _merge(results)[:limit]


def _within(arguments: Recall) -> Within | None:
    within = Within(
        types=tuple(arguments.types) or None,
        tags=tuple(arguments.tags) or None,
        since=parse_moment(arguments.since, "since") if arguments.since else None,
        until=parse_moment(arguments.until, "until") if arguments.until else None,
    )
    return None if within == Within() else within


def _merge(results: list[tuple[Place, RecallResult]]) -> list[tuple[Place, Hit]]:
    """Return the hits of all workspaces in one ranking: exact matches first, then by score."""
    if len(results) == 1:
        return [(place, hit) for place, result in results for hit in result.hits]
    both = [(place, hit) for place, result in results for hit in result.hits]
    return sorted(both, key=lambda pair: (_exact_rank(pair[1]), -pair[1].score))


def _exact_rank(hit: Hit) -> int:
    return EXACT_KINDS.index(hit.match_kind) if hit.match_kind in EXACT_KINDS else len(EXACT_KINDS)


def _with_authors(page: list[tuple[Place, Hit]]) -> list[tuple[Place, Hit, Author | None]]:
    memories = {place.name: place.memory for place, _ in page}
    authors = {
        name: history.authors(
            memory, [hit.passage.key for place, hit in page if place.name == name]
        )
        for name, memory in memories.items()
    }
    return [(place, hit, authors[place.name].get(hit.passage.key)) for place, hit in page]


def _note(results: list[RecallResult], read: list[Place]) -> str:
    """Return what qualifies the answer: corrected words, and a memory that is not wholly embedded."""
    corrected = {word: meant for each in results for word, meant in each.corrections.items()}
    told = [f"took {word!r} for {meant!r}" for word, meant in corrected.items()]
    embedded = [
        each.note
        for each, place in zip(results, read, strict=True)
        if each.note and place.memory.meaning
    ]
    return "; ".join(dict.fromkeys([*told, *embedded]))


def _explain_nothing(
    call: Call, arguments: Recall, read: list[Place], within: Within | None
) -> str:
    """Say how much was searched and where, which filter removed hits, what has a similar name, and who has hits."""
    counts = [_counts(each) for each in read]
    searched = sum(each.entities + each.observations for each in counts)
    where = " and ".join(each.name for each in read)
    told = [
        f"Nothing found: searched {count_noun(searched, 'passage')} in {where}."
        if read
        else _NO_WORKSPACE
    ]
    told += _blame_filters(arguments.query, read, within)
    near = list(
        dict.fromkeys([name for each in read for name in _near_names(each, arguments.query)])
    )
    if near:
        told.append(f"Near it: {', '.join(near[:_MAX_NEAR])}; open shows what is known of them.")
    if not arguments.workspace or arguments.workspace in ("project", "personal"):
        found = [
            each.name
            for each in others(call, read)[:_MAX_OTHERS]
            if _has_hits(each, arguments.query, within)
        ]
        told += (
            [f"Other workspaces have hits: {', '.join(found)}; pass one as workspace."]
            if found
            else []
        )
    return one_line(" ".join(told))


def _blame_filters(query: str, read: list[Place], within: Within | None) -> list[str]:
    """Return which of the filters alone hides hits; all of them together if no single one does."""
    if within is None or not any(_has_hits(each, query, None) for each in read):
        return []
    guilty = []
    for name in ("types", "tags", "since", "until"):
        fewer = replace(within, **{name: None})
        if fewer != within and any(_has_hits(each, query, fewer) for each in read):
            guilty.append(name)
    return [
        f"There are hits without the filter {' or '.join(guilty)}."
        if guilty
        else "There are hits without filters."
    ]


def _near_names(place: Place, query: str) -> list[str]:
    """Return names that the question contains a word of, or that are spelled like it."""
    with place.memory.reading() as reader:
        named = reader.names_with(terms_of(query), _MAX_NEAR)
    return named or similar_names(place.memory, query)


def _counts(place: Place) -> Counts:
    with place.memory.reading() as reader:
        return reader.counts()


def _has_hits(place: Place, query: str, within: Within | None) -> bool:
    return bool(find_passages(place.memory, query, limit=1, within=within).hits)
