"""A set of questions: the memories they are asked of, and what answers them."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

# An observation by its entity and the order in which that entity's were written, from 1.
Place = tuple[str, int]


class Told(Struct, frozen=True):
    """One observation: of whom, what, and when it was said (0 where nobody knows)."""

    entity: str
    text: str
    valid_at: int = 0
    label: str = ""


class Asked(Struct, frozen=True):
    """A question, its kind, and the labels of what answers it, each with how well.

    Where sessions are marked too, a label is `session:turn`.
    """

    text: str
    kind: str
    answers: dict[str, int]
    sessions: frozenset[str] = frozenset()


class Case(Struct, frozen=True):
    """One memory and the questions asked of it."""

    name: str
    kind: str
    told: list[Told]
    asked: list[Asked]


def spread_questions(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """Return the cases with `limit` questions, or all; cases without any are left out.

    They are spread evenly: files are sorted by kind, and the first ones would be of one kind. What
    a case tells stays whole, so that a question is as hard as among all.
    """
    total = sum(len(case.asked) for case in cases)
    count = total if limit is None else min(limit, total)
    chosen = {place * total // count for place in range(count)}
    kept = []
    first = 0
    for case in cases:
        asked = [item for place, item in enumerate(case.asked, first) if place in chosen]
        first += len(case.asked)
        if asked:
            kept.append(replace(case, asked=asked))
    return kept
