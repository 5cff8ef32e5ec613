"""Compare a question with passages by vector: each alone, and mixed with the vectors of its neighbours."""

from collections.abc import Collection, Mapping

import numpy as np

from polymnia.model import Neighbours, Passage, PassageKey
from polymnia.search.scoring import context_share

# The weights of the passage before, the one before that and the one after in the mixture for an empty text.
BEFORE, EARLIER, AFTER = 1.5, 1.0, 0.6
_ALONE = Neighbours()


def context_cosines(
    question: bytes,
    vectors: Mapping[int, bytes],
    passages: Collection[Passage],
    neighbours: Mapping[PassageKey, Neighbours],
) -> dict[int, float]:
    """Return the larger cosine of the question with each passage, by id: with its own vector or with the mixture.

    All vectors are little-endian float32 of length one. A passage without one is left out.
    """
    own = [each for each in passages if each.id in vectors]
    if not own:
        return {}
    asked = np.frombuffer(question, "<f4")
    rows = {passage_id: row for row, passage_id in enumerate(vectors, 1)}
    # The first row stands for a neighbour that is missing.
    table = np.frombuffer(bytes(len(question)) + b"".join(vectors.values()), "<f4").reshape(
        -1, len(asked)
    )

    def select(found: list[Passage | None]) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        return table[[rows.get(each.id, 0) if each else 0 for each in found]]

    near = [neighbours.get(each.key, _ALONE) for each in own]
    plain = select([*own])
    share = np.array([[context_share(len(each.text.split()))] for each in own], np.float32)
    around = BEFORE * select([each.before for each in near])
    around += EARLIER * select([each.earlier for each in near])
    around += AFTER * select([each.after for each in near])
    mixed = plain + share * around
    cosines = np.maximum(
        plain @ asked, mixed @ asked / np.maximum(np.linalg.norm(mixed, axis=1), 1e-6)
    )
    return {each.id: float(cosine) for each, cosine in zip(own, cosines, strict=True)}
