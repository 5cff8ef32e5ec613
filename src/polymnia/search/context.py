"""Compare a question with passages by vector: each alone, and mixed with what precedes it."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from polymnia.model import Neighbours, Passage, PassageKey
from polymnia.search.scoring import context_share

if TYPE_CHECKING:
    Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

_ALONE = Neighbours()


def mean_direction(vectors: Sequence[bytes]) -> bytes:
    """Return the vector of length one between vectors of length one."""
    total = np.sum([np.frombuffer(vector, "<f4") for vector in vectors], axis=0)
    mean: bytes = (total / max(float(np.linalg.norm(total)), 1e-6)).astype("<f4").tobytes()
    return mean


def context_cosines(
    question: bytes,
    fact_question: bytes,
    vectors: Mapping[int, bytes],
    passages: Collection[Passage],
    neighbours: Mapping[PassageKey, Neighbours],
) -> dict[int, float]:
    """Return the cosine of the question with each passage, by id.

    A fact is compared with `fact_question`. For a turn it is the cosine with its own vector or with
    the mixture, whichever is larger. All vectors are little-endian float32 of length one. A passage
    without one is left out.
    """
    embedded = [passage for passage in passages if passage.id in vectors]
    if not embedded:
        return {}
    asked = np.frombuffer(question, "<f4")
    rows = {passage_id: row for row, passage_id in enumerate(vectors, 1)}
    # The first row stands for a neighbour that is missing.
    packed = bytes(len(question)) + b"".join(vectors.values())
    table = np.frombuffer(packed, "<f4").reshape(-1, len(asked))

    def select(chosen: list[Passage | None]) -> "Matrix":
        return table[[rows.get(passage.id, 0) if passage else 0 for passage in chosen]]

    own = select([*embedded])
    cosines = own @ np.frombuffer(fact_question, "<f4")
    turns = [row for row, passage in enumerate(embedded) if passage.is_turn]
    if turns:
        near = [_context(embedded[row], neighbours) for row in turns]
        shares = [[context_share(len(embedded[row].text.split()))] for row in turns]
        around = select([beside.before for beside in near])
        around = around + select([beside.earlier for beside in near])
        mixed = own[turns] + np.array(shares, np.float32) * around
        lengths = np.maximum(np.linalg.norm(mixed, axis=1), 1e-6)  # never divide by zero
        cosines[turns] = np.maximum(own[turns] @ asked, mixed @ asked / lengths)
    return dict(zip([passage.id for passage in embedded], cosines.tolist(), strict=True))


def _context(passage: Passage, neighbours: Mapping[PassageKey, Neighbours]) -> Neighbours:
    """Return the neighbours of a turn that follows another speaker; none for other passages."""
    near = neighbours.get(passage.key, _ALONE)
    if near.before is None or near.before.entity == passage.entity:
        return _ALONE
    return near
