"""Words and vectors of very many notes blended at once, with numpy; the rules are those of `search.relevance`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from polymnia.search.relevance import CEILING, MEANING, WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Scores = NDArray[np.float64]
    Ids = NDArray[np.int64]

# Notes by id, and what BM25 gives each: below 0, and the less the better.
Words = list[tuple[int, float]]

# The part of every vector that is looked at first: one number in so many.
_PART = 3
# When more than one note in so many has the words, or may be among the best, all of them are looked at.
_MANY = 16
# More than rounding can make of a cosine.
_MARGIN = 1e-5


class Vectors:
    """Unit vectors of one dimension, a row each: whole, and their first parts by column, to be passed over quickly."""

    def __init__(self, room: int, dimension: int) -> None:
        self.used = 0
        self._dimension = dimension
        self._first = max(1, dimension // _PART)
        self._notes: Ids = np.empty(room, dtype=np.int64)
        self._whole: Floats = np.empty((room, dimension), dtype=np.float32)
        self._parts: Floats = np.empty((self._first, room), dtype=np.float32)
        # How long the rest of each vector is beside its first part.
        self._rests: Floats = np.empty(room, dtype=np.float32)

    def add(self, notes: list[int], vectors: list[bytes], norms: list[float]) -> None:
        """Take in the vectors of notes, with their lengths."""
        end = self.used + len(notes)
        if end > len(self._notes):
            self._make_room(end + self.used // 8)  # more than asked for, so that it is not made at every write
        rows = units(vectors, norms)
        self._notes[self.used : end] = notes
        self._whole[self.used : end] = rows
        self._parts[:, self.used : end] = rows[:, : self._first].T
        self._rests[self.used : end] = np.linalg.norm(rows[:, self._first :], axis=1)
        self.used = end

    def remove(self, row: int) -> None:
        """Drop a row; the last one moves into its place."""
        self.used -= 1
        self._notes[row] = self._notes[self.used]
        self._whole[row] = self._whole[self.used]
        self._parts[:, row] = self._parts[:, self.used]
        self._rests[row] = self._rests[self.used]

    def best(self, unit: Floats, matched: Words, allowed: Collection[int] | None, limit: int) -> dict[int, float]:
        """The best so many of all notes that have a vector or were matched, and are allowed."""
        found = None
        if allowed is None and limit < self.used and (len(matched) + limit) * _MANY < self.used:
            found = self._best_of_promising(unit, matched, limit)
        if found is not None:
            return found
        return best(self._notes[: self.used], cosines(self._whole[: self.used], unit), matched, allowed, limit)

    def _best_of_promising(self, unit: Floats, matched: Words, limit: int) -> dict[int, float] | None:
        """The same without looking at every vector whole; None when too many would have to be.

        A vector's first part and the length of its rest bound its cosine, and those that were matched, with those
        whose first parts are the most alike, say what it takes to be among the best.
        """
        ids, shares = _shares(matched)
        rows, has_vector = _rows_of(ids, self._notes[: self.used])
        first = np.einsum("ij,i->j", self._parts[:, : self.used], unit[: self._first])
        scores = np.full(self.used, -np.inf)
        self._look_at(np.argpartition(first, self.used - limit)[-limit:], unit, scores)
        if len(rows):
            likeness = cosines(self._whole[rows], unit)
            scores[rows] = np.maximum(0, WORDS * shares[has_vector] + MEANING * likeness)
        words_alone = shares[~has_vector]
        known = np.concatenate((scores[scores > -np.inf], words_alone))
        least = np.partition(known, len(known) - limit)[len(known) - limit] if len(known) >= limit else 0.0
        most = MEANING * (first + self._rests[: self.used] * np.linalg.norm(unit[self._first :]))
        others = np.flatnonzero((most >= least - _MARGIN) & (scores == -np.inf))
        if len(others) * _MANY > self.used:
            return None
        self._look_at(others, unit, scores)
        return _top(ids[~has_vector], words_alone, limit) | _top(self._notes[: self.used], scores, limit)

    def _look_at(self, rows: Ids, unit: Floats, scores: Scores) -> None:
        likeness = MEANING * cosines(self._whole[rows], unit).astype(np.float64)
        scores[rows] = np.where(likeness > 0, likeness, -np.inf)

    def _make_room(self, room: int) -> None:
        wider = Vectors(room, self._dimension)
        wider._notes[: self.used] = self._notes[: self.used]
        wider._whole[: self.used] = self._whole[: self.used]
        wider._parts[:, : self.used] = self._parts[:, : self.used]
        wider._rests[: self.used] = self._rests[: self.used]
        self._notes, self._whole, self._parts, self._rests = wider._notes, wider._whole, wider._parts, wider._rests


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
    scores = MEANING * likeness.astype(np.float64)
    if allowed is not None:
        scores[~np.isin(notes, np.fromiter(allowed, np.int64, len(allowed)))] = 0
    scores[scores <= 0] = -np.inf
    ids, shares = _shares(matched)
    rows, has_vector = _rows_of(ids, notes)
    scores[rows] = np.maximum(0, WORDS * shares[has_vector] + MEANING * likeness[rows])
    return _top(ids[~has_vector], shares[~has_vector], limit) | _top(notes, scores, limit)


def _shares(matched: Words) -> tuple[Ids, Scores]:
    """The notes and the share of their words, as `relevance.by_words` has it."""
    ids = np.array([note for note, _ in matched], dtype=np.int64)
    against = -np.array([score for _, score in matched])
    most = against.max(initial=0.0)
    return ids, CEILING * (against / most if most > 0 else np.ones(len(against)))


def _rows_of(ids: Ids, notes: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """The rows of those of the ids that have one, and which of them have."""
    row_of = np.full(max(ids.max(initial=0), notes.max(initial=0)) + 1, -1, dtype=np.int64)
    row_of[notes] = np.arange(len(notes))
    rows = row_of[ids]
    return rows[rows >= 0], rows >= 0


def _top(ids: Ids, scores: Scores, limit: int) -> dict[int, float]:
    rows = np.flatnonzero(scores > -np.inf)  # partitioning takes long when very many are equal
    if limit < len(rows):
        rows = rows[np.argpartition(scores[rows], len(rows) - limit)[-limit:]]
    return {int(ids[row]): float(scores[row]) for row in rows}
