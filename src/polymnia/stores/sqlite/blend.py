"""Words and vectors of very many notes blended at once, with numpy; the rules are those of `search.relevance`.

To some ten thousand every vector is compared; beyond that those of all notes that have the words, and of the others the
candidates that `search.signs` chooses. A relevance that is given is always of the vector itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from polymnia.search.relevance import CEILING, MEANING, WORDS
from polymnia.search.signs import EXACT, Signs, enough

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Scores = NDArray[np.float64]
    Ids = NDArray[np.int64]

# Notes by id, and what BM25 gives each: below 0, and the less the better.
Words = list[tuple[int, float]]

_NOWHERE = -1
# More than rounding can make of a cosine.
_ROUNDING = 1e-5
# Rows that are fetched at once stay in the processor's cache.
_CHUNK = 512
# Fetching one row in so many takes as long as passing over all of them.
_MANY = 3


class Vectors:
    """Unit vectors of one dimension, a row each."""

    def __init__(self, room: int, dimension: int, *, exact: int = EXACT) -> None:
        self.used = 0
        self._exact = exact
        self._notes: Ids = np.empty(room, dtype=np.int64)
        self._units: Floats = np.empty((room, dimension), dtype=np.float32)
        self._signs: Signs | None = None  # as long as all are compared
        # By id; what has no vector is nowhere.
        self._row_of: Ids = np.full(room + 1, _NOWHERE, dtype=np.int64)

    def add(self, notes: list[int], vectors: list[bytes], norms: list[float]) -> None:
        """Take in the vectors of notes, with their lengths."""
        start, end = self.used, self.used + len(notes)
        self._make_room(end, max(notes, default=0))
        self._notes[start:end] = notes
        self._units[start:end] = units(vectors, norms)
        self._row_of[notes] = range(start, end)
        self.used = end
        if self._signs is not None:
            self._signs.put(slice(start, end), self._units[start:end])
        elif end > self._exact:
            self._signs = Signs(self._units[:end], len(self._units))
            for first in range(0, end, _CHUNK):
                stretch = slice(first, min(first + _CHUNK, end))
                self._signs.put(stretch, self._units[stretch])

    def remove(self, row: int) -> None:
        """Drop a row; the last one moves into its place."""
        self.used -= 1
        self._row_of[self._notes[row]] = _NOWHERE
        if row == self.used:
            return
        self._notes[row] = self._notes[self.used]
        self._units[row] = self._units[self.used]
        self._row_of[self._notes[row]] = row
        if self._signs is not None:
            self._signs.move(self.used, row)

    def best(self, unit: Floats, matched: Words, allowed: Collection[int] | None, limit: int) -> dict[int, float]:
        """The best so many of all notes that have a vector or were matched, and are allowed."""
        if self._signs is None or self.used <= self._exact or len(matched) * _MANY > self.used:
            whole = cosines(self._units[: self.used], unit)
            return best(self._notes[: self.used], whole, matched, allowed, limit)
        ids, scores = _shares(matched)
        rows = _looked_up(self._row_of, ids)
        has_vector = rows != _NOWHERE
        rows = rows[has_vector]
        scores[has_vector] = _blended(scores[has_vector], self._cosines(rows, unit))
        others = self._others(self._signs, unit, allowed, limit, _least(scores, limit) / MEANING)
        others = others[~_marked(rows, self.used)[others]]
        return _top(ids, scores, self._notes[others], self._cosines(others, unit), limit)

    def _others(self, signs: Signs, unit: Floats, allowed: Collection[int] | None, limit: int, cosine: float) -> Ids:
        """The rows that may be among the best without the words, when it takes this cosine.

        Who is not among the nearest is not among the best: those have more for their vectors, and words only add.
        """
        if cosine > 1 + _ROUNDING:
            return np.empty(0, np.int64)
        if allowed is None:
            return signs.candidates(unit, self.used, limit, cosine=cosine)
        rows: Ids = _looked_up(self._row_of, np.fromiter(allowed, np.int64, len(allowed)))
        rows = rows[rows != _NOWHERE]
        if len(rows) <= max(self._exact, enough(limit)):
            return rows
        return signs.candidates(unit, self.used, limit, _marked(rows, self.used), cosine=cosine)

    def _cosines(self, rows: Ids, unit: Floats) -> Floats:
        found: Floats = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _CHUNK):
            stretch = slice(start, start + _CHUNK)
            found[stretch] = cosines(self._units.take(rows[stretch], axis=0), unit)
        return found

    def _make_room(self, end: int, highest: int) -> None:
        """For rows up to the end and ids up to the highest; more than asked for, so that not every write makes some."""
        if end > len(self._notes):
            room = end + self.used // 8
            more = room - len(self._notes)
            self._notes = np.pad(self._notes, (0, more))
            self._units = np.pad(self._units, ((0, more), (0, 0)))
            if self._signs is not None:
                self._signs.make_room(room)
        if highest >= len(self._row_of):
            more = highest + 1 + highest // 8 - len(self._row_of)
            self._row_of = np.pad(self._row_of, (0, more), constant_values=_NOWHERE)


def units(vectors: list[bytes], norms: list[float]) -> Floats:
    """The vectors as rows, each one long."""
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    rows: Floats = (matrix / np.array(norms)[:, np.newaxis]).astype(np.float32)
    return rows


def cosines(matrix: Floats, unit: Floats) -> Floats:
    """How alike each row is; on one core, since sharing it out costs more than it gains on a machine that is busy."""
    found: Floats = np.vecdot(matrix, unit)
    return found


def best(notes: Ids, likeness: Floats, matched: Words, allowed: Collection[int] | None, limit: int) -> dict[int, float]:
    """The best so many of the notes that are alike or were matched, and are allowed."""
    ids, scores = _shares(matched)
    row_of = np.full(notes.max(initial=0) + 1, _NOWHERE, dtype=np.int64)
    row_of[notes] = np.arange(len(notes))
    rows = _looked_up(row_of, ids)
    has_vector = rows != _NOWHERE
    rows = rows[has_vector]
    scores[has_vector] = _blended(scores[has_vector], likeness[rows])
    others = ~_marked(rows, len(notes))
    if allowed is not None:
        others &= np.isin(notes, np.fromiter(allowed, np.int64, len(allowed)))
    return _top(ids, scores, notes[others], likeness[others], limit)


def _shares(matched: Words) -> tuple[Ids, Scores]:
    """The notes and the share of their words, as `relevance.by_words` has it."""
    ids = np.array([note for note, _ in matched], dtype=np.int64)
    against = -np.array([score for _, score in matched], dtype=np.float64)
    most = against.max(initial=0.0)
    return ids, CEILING * (against / most if most > 0 else np.ones(len(against)))


def _looked_up(row_of: Ids, ids: Ids) -> Ids:
    """The rows of the ids; nowhere for those that have none."""
    rows = row_of[np.minimum(ids, len(row_of) - 1)]
    rows[ids >= len(row_of)] = _NOWHERE
    return rows


def _blended(shares: Scores, likeness: Floats) -> Scores:
    return np.maximum(0, WORDS * shares + MEANING * likeness.astype(np.float64))


def _least(scores: Scores, limit: int) -> float:
    """What it takes to be among the best so many; 0 as long as there are fewer."""
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit]) if len(scores) >= limit else 0.0


def _marked(rows: Ids, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, np.bool_)
    mask[rows] = True
    return mask


def _top(ids: Ids, scores: Scores, others: Ids, likeness: Floats, limit: int) -> dict[int, float]:
    """The best so many of notes with scores, and of others that point the same way; among equals the newest."""
    alike = likeness > 0
    notes = np.concatenate((ids, others[alike]))
    scores = np.concatenate((scores, MEANING * likeness[alike].astype(np.float64)))
    if limit < len(notes):
        rows = np.flatnonzero(scores >= _least(scores, limit))
        rows = rows[np.lexsort((-notes[rows], -scores[rows]))[:limit]]
        notes, scores = notes[rows], scores[rows]
    return dict(zip(notes.tolist(), scores.tolist(), strict=True))
