"""A set of questions: the memories they are asked of, and what answers them."""

from msgspec import Struct

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
