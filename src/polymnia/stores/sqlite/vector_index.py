"""The vectors of one model in memory, with numpy.

A few are compared by an exact product, many by their sign bits first.
"""

from collections.abc import Collection, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Up to this many vectors every one is compared exactly.
EXACT_LIMIT = 50_000
# Beyond it, this many are chosen by their sign bits and then compared exactly.
MAX_RESCORED = 1_000


class VectorIndex:
    """Vectors of length one by passage id. Hold `lock` while using it.

    The fraction of differing sign bits approximates the angle between two vectors divided by pi.
    """

    def __init__(self, dimension: int) -> None:
        self.lock = Lock()
        self._dimension = dimension
        self.clear()

    def clear(self) -> None:
        """Remove all vectors."""
        self.vector = 0  # the last vector that was added
        self.change = 0  # the last change whose ended passages were removed
        self.embeddable = 0  # how many passages should have a vector, as of that change
        self._count = 0
        self._ids = np.zeros(0, np.int64)
        self._living = np.zeros(0, np.bool_)
        self._rows: NDArray[np.float32 | np.float16] = np.zeros((0, self._dimension), np.float32)
        # The sign bits, 64 of each vector in a row: whole rows are compared at once.
        self._bits = np.zeros(((self._dimension + 63) // 64, 0), np.uint64)
        self._at: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._at)

    def add(self, passages: Sequence[int], vectors: Sequence[bytes]) -> None:
        """Add stored vectors, which replace those of the same passages.

        They are float16 of length one, or float32 of any length.
        """
        self.remove(passages)
        first, self._count = self._count, self._count + len(passages)
        self._grow(self._count)
        rows = _read(vectors, self._dimension)
        self._ids[first : self._count] = passages
        self._living[first : self._count] = True
        self._rows[first : self._count] = rows
        self._bits[:, first : self._count] = _sign_bits(rows)
        self._at.update(zip(passages, range(first, self._count), strict=True))

    def remove(self, passages: Collection[int]) -> None:
        """Remove the vectors of these passages."""
        gone = [self._at.pop(passage) for passage in passages if passage in self._at]
        self._living[gone] = False

    def nearest(self, vector: bytes, k: int, allowed: Collection[int] | None) -> dict[int, float]:
        """Return the k nearest passages with their cosines, best first; None allows all."""
        question = _read([vector], self._dimension)[0]
        chosen = self._choose(question, max(k, MAX_RESCORED), allowed)
        scores = self._cosines(question, chosen)
        best = np.argsort(-scores, kind="stable")[:k]
        return dict(zip(self._ids[chosen[best]].tolist(), scores[best].tolist(), strict=True))

    def vectors(self, passages: Collection[int]) -> dict[int, bytes]:
        """Return the vectors of those of the passages that have one, as float32 of length one."""
        known = [passage for passage in passages if passage in self._at]
        rows = self._rows[[self._at[passage] for passage in known]].astype("<f4")
        return dict(zip(known, [row.tobytes() for row in rows], strict=True))

    def means(self, owners: Sequence[tuple[int, str]]) -> dict[str, bytes]:
        """Return the mean vector of the passages of each owner as float32.

        Passages of an owner come together.
        """
        rows_of: dict[str, list[int]] = {}
        for passage, name in owners:
            if passage in self._at:
                rows_of.setdefault(name, []).append(self._at[passage])
        means = {}
        for name, rows in rows_of.items():
            means[name] = self._rows[rows].mean(axis=0, dtype="<f4").tobytes()
        return means

    def _choose(
        self, question: NDArray[np.float32], count: int, allowed: Collection[int] | None
    ) -> NDArray[Any]:
        """Return the rows to compare exactly."""
        if allowed is None:
            rows = np.flatnonzero(self._living[: self._count])
        else:
            rows = np.array(
                sorted([self._at[item] for item in allowed if item in self._at]), np.int64
            )
        if len(rows) <= max(EXACT_LIMIT, count):
            return rows
        bits = self._bits[:, : self._count] if len(rows) == self._count else self._bits[:, rows]
        differing = np.zeros(len(rows), np.int32)
        for part, asked in zip(bits, _sign_bits(question[None, :])[:, 0], strict=True):
            differing += np.bitwise_count(part ^ asked)
        return rows[np.argpartition(differing, count)[:count]]

    def _cosines(self, question: NDArray[np.float32], chosen: NDArray[Any]) -> NDArray[np.float32]:
        if self._rows.dtype == np.float32 and 2 * len(chosen) > self._count:
            # Without a copy of nearly everything.
            return np.asarray((self._rows[: self._count] @ question)[chosen], np.float32)
        return np.asarray(self._rows[chosen].astype(np.float32, copy=False) @ question, np.float32)

    def _grow(self, size: int) -> None:
        room = len(self._ids)
        if size > EXACT_LIMIT and self._rows.dtype == np.float32:
            self._rows = self._rows.astype(
                np.float16
            )  # only a few are compared exactly from now on
        if size <= room:
            return
        more = size + size // 4 - room
        self._ids = np.pad(self._ids, (0, more))
        self._living = np.pad(self._living, (0, more))
        self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._bits = np.pad(self._bits, ((0, 0), (0, more)))


def _sign_bits(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the sign bits of vectors, one column for each vector."""
    packed = np.packbits(rows > 0, axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64).T


def _read(vectors: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Return stored vectors as rows of length one."""
    halves = [len(vector) == 2 * dimension for vector in vectors]
    rows = np.empty((len(vectors), dimension), np.float32)
    for kind, size in (("<f2", True), ("<f4", False)):
        chosen = [row for row, half in enumerate(halves) if half is size]
        if chosen:
            joined = b"".join([vectors[row] for row in chosen])
            rows[chosen] = np.frombuffer(joined, kind).reshape(len(chosen), dimension)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1), np.float32)
