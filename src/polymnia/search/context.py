"""Compare a question with passages by vector: each alone, and mixed with its neighbours."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from polymnia.model import Neighbours, Passage, PassageKey
from polymnia.search.scoring import context_share, is_turn

if TYPE_CHECKING:
    Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

# The weights of the passage before, the one before that and the one after
# in the mixture for an empty text.
BEFORE, EARLIER, AFTER = 1.5, 1.0, 0.6
_ALONE = Neighbours()


def context_cosines(
    question: bytes,
    vectors: Mapping[int, bytes],
    passages: Collection[Passage],
    neighbours: Mapping[PassageKey, Neighbours],
) -> dict[int, float]:
    """Return the cosine of the question with each passage, by id.

    It is that with the passage's own vector or with the mixture, whichever is larger. All vectors
    are little-endian float32 of length one. A passage without one is left out.
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

    near = [_context(passage, neighbours) for passage in embedded]
    shares = [[context_share(len(passage.text.split()))] for passage in embedded]
    around = BEFORE * select([beside.before for beside in near])
    around += EARLIER * select([beside.earlier for beside in near])
    around += AFTER * select([beside.after for beside in near])
    own = select([*embedded])
    mixed = own + np.array(shares, np.float32) * around
    lengths = np.maximum(np.linalg.norm(mixed, axis=1), 1e-6)  # never divide by zero
    cosines = np.maximum(own @ asked, mixed @ asked / lengths)
    return {passage.id: float(cosine) for passage, cosine in zip(embedded, cosines, strict=True)}


def _context(passage: Passage, neighbours: Mapping[PassageKey, Neighbours]) -> Neighbours:
    if not is_turn(passage):
        return _ALONE
    return neighbours.get(passage.key, _ALONE)
