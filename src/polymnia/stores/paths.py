"""A shortest path between two entities, from the steps of a search that starts at both ends."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from polymnia.errors import BadInput
from polymnia.stores.contract import GraphReader, check_cancelled

# A search that has seen this many names gives up.
MAX_PATH_NAMES = 200_000


class PathStep(NamedTuple):
    """The entities one relation further from the source, or from the target."""

    is_forward: bool
    names: Sequence[str]
    via: Sequence[str]  # the neighbour from which each name was reached


def join_steps(source: str, target: str, steps: Iterable[PathStep]) -> list[str]:
    """Return the names on a shortest path; none if the last step does not meet the other end.

    Raise BadInput after MAX_PATH_NAMES.
    """
    came_from: dict[str, str | None] = {source: None}
    goes_to: dict[str, str | None] = {target: None}
    has_ended = False
    for step in steps:
        mine, other = (came_from, goes_to) if step.is_forward else (goes_to, came_from)
        mine.update(zip(step.names, step.via, strict=True))
        for name in step.names:
            if name in other:
                return _chain(came_from, name)[::-1] + _chain(goes_to, name)[1:]
        has_ended = not step.names
    if not has_ended:
        raise BadInput(
            f"there is no path between {source} and {target} among the nearest "
            f"{MAX_PATH_NAMES:,} entities; there may be a longer one"
        )
    return []


def walk_path(read: GraphReader, source: str, target: str) -> Iterator[PathStep]:
    """Yield steps from both ends, the smaller front first, until one leads nowhere.

    Each is two queries, which costs little in a store of this process.
    """
    seen = {True: {source}, False: {target}}
    fronts = {True: [source], False: [target]}
    while fronts[True] and fronts[False] and len(seen[True]) + len(seen[False]) < MAX_PATH_NAMES:
        check_cancelled()
        is_forward = len(fronts[True]) <= len(fronts[False])
        via = _neighbours(read, fronts[is_forward], seen[is_forward])
        known = read.existing_names(via)
        names = [name for name in via if name in known]
        seen[is_forward].update(names)
        fronts[is_forward] = names
        yield PathStep(is_forward, names, [via[name] for name in names])


def _neighbours(read: GraphReader, front: list[str], seen: set[str]) -> dict[str, str]:
    """Return the names one relation further, each with where the oldest relation leads from."""
    here = set(front)
    via: dict[str, str] = {}
    for relation in read.relations(here):
        source, target = relation.ends
        if source in here and target not in seen:
            via.setdefault(target, source)
        if target in here and source not in seen:
            via.setdefault(source, target)
    return via


def _chain(links: dict[str, str | None], name: str) -> list[str]:
    chain = [name]
    while (following := links[chain[-1]]) is not None:
        chain.append(following)
    return chain
