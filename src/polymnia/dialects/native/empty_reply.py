"""What `recall` says when it has no hits: what was searched, and what may be meant."""

from msgspec.structs import replace

from polymnia.dialects.base import Call
from polymnia.dialects.native.scope import Place, join_names, other_places
from polymnia.dialects.native.shapes import Recall
from polymnia.engine.recall.names import similar_names
from polymnia.engine.recall.passages import recall as find_passages
from polymnia.model import Within
from polymnia.search.terms import count_noun, one_line, terms_of

# Other workspaces that are searched when the client's own have nothing.
_MAX_OTHERS = 10
_MAX_SIMILAR_NAMES = 5


def explain_nothing(call: Call, arguments: Recall, read: list[Place], within: Within | None) -> str:
    """Return what was searched, which filter hides hits, similar names, and where hits are."""
    count = sum(count_passages(place) for place in read)
    searched = count_noun(count, "passage")
    sentences = [f"No hits in {searched} of {join_names(read)}."]
    if not count:
        sentences = ["Nothing is stored yet."]
    elif within is not None:
        sentences = [f"Nothing with these filters in {searched} of {join_names(read)}."]
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


def count_passages(place: Place) -> int:
    with place.memory.reading() as reader:
        counts = reader.counts()
    return counts.entities + counts.facts


def _has_hits(place: Place, query: str, within: Within | None) -> bool:
    return bool(find_passages(place.memory, query, limit=1, within=within).hits)
