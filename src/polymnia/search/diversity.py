"""Diversity: of passages that say the same of one entity only the best is shown."""

from collections.abc import Hashable, Iterable, Sequence

# Two passages say the same when they share this much of their terms.
_ALIKE = 0.9


def distinct(ranked: Iterable[tuple[Hashable, Sequence[str]]], limit: int) -> list[tuple[int, int]]:
    """The places of the first so many that say something new, and how many later ones say the same.

    Each is given as whom it is about and its terms. What is passed over is left out, not moved, so the order stays.
    """
    shown: list[int] = []
    alike: dict[int, int] = {}
    seen: dict[Hashable, list[tuple[int, frozenset[str]]]] = {}
    for place, (about, terms) in enumerate(ranked):
        own = frozenset(terms)
        twin = next((at for at, other in seen.get(about, ()) if _same(own, other)), None)
        if twin is not None:
            alike[twin] = alike.get(twin, 0) + 1
        elif len(shown) == limit:
            break
        else:
            shown.append(place)
            seen.setdefault(about, []).append((place, own))
    return [(place, alike.get(place, 0)) for place in shown]


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < _ALIKE * max(len(one), len(other)):
        return False
    return len(one & other) >= _ALIKE * len(one | other)
