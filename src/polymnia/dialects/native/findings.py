"""What in a memory needs attention, one finder for each kind."""

from collections.abc import Callable

from polymnia.dialects.base import Call
from polymnia.dialects.native.budget import Item
from polymnia.dialects.native.lines import line_item, short_time
from polymnia.dialects.native.scope import Place
from polymnia.engine.curation.duplicates import duplicate_names
from polymnia.engine.curation.gaps import relation_gaps
from polymnia.engine.curation.orphans import orphans
from polymnia.engine.curation.pending import pending
from polymnia.engine.curation.similar import similar_pairs
from polymnia.search.text import count_noun

Find = Callable[[Call, Place, int], list[Item]]


def _duplicates(call: Call, place: Place, limit: int) -> list[Item]:
    found = duplicate_names(place.memory, limit=limit, progress=call.progress, check=call.check)
    return [
        line_item(
            f"- duplicate? {each.a} ({each.a_type}) and {each.b} ({each.b_type}): revise with merge",
            {"kind": "duplicate", "names": [each.a, each.b], "workspace": place.name},
        )
        for each in found
    ]


def _gaps(call: Call, place: Place, limit: int) -> list[Item]:
    found = relation_gaps(place.memory, limit=limit, progress=call.progress, check=call.check)
    return [
        line_item(
            f"- gap: facts of {each.entity} mention {each.referenced} {count_noun(each.count, 'time')}, "
            "but no relation joins them",
            {"kind": "gap", "names": [each.entity, each.referenced], "workspace": place.name},
        )
        for each in found
    ]


def _orphans(call: Call, place: Place, limit: int) -> list[Item]:
    return [
        line_item(
            f"- orphan: {each.name} ({each.type}) has no relations",
            {"kind": "orphan", "names": [each.name], "workspace": place.name},
        )
        for each in orphans(place.memory, limit=limit)
    ]


def _summaries(call: Call, place: Place, limit: int) -> list[Item]:
    found = pending(place.memory, limit=limit, progress=call.progress, check=call.check)
    return [
        line_item(
            f"- summary: {each.name} has {count_noun(each.observations, 'fact')}, "
            f"last of {short_time(each.last_observation_at)}, "
            f"and {f'a summary of {short_time(each.summary_at)}' if each.summary_at else 'no summary'}",
            {"kind": "summary", "names": [each.name], "workspace": place.name},
        )
        for each in found
    ]


def _similar(call: Call, place: Place, limit: int) -> list[Item]:
    found = similar_pairs(place.memory, limit=limit, progress=call.progress, check=call.check)
    return [
        line_item(
            f"- similar: {each.a} and {each.b} ({each.similarity:.2f}) have no relation",
            {"kind": "similar", "names": [each.a, each.b], "workspace": place.name},
        )
        for each in found
    ]


FINDERS: dict[str, Find] = {
    "duplicates": _duplicates,
    "gaps": _gaps,
    "orphans": _orphans,
    "summaries": _summaries,
    "similar": _similar,
}
