"""Vectors by their signs: a bit for each number, enough to choose which of very many are worth comparing.

Of the signs of two vectors about the share differs that the angle between them has of a half turn. Many models put all
of their vectors on one side, where signs tell little; so they are taken around a centre, the mean of vectors that are
already there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Bits = NDArray[np.uint64]
    Counts = NDArray[np.uint8]

# To so many, comparing all is as quick as choosing first.
EXACT = 20_000
# Candidates for each vector that is wanted, and at least.
_PER_WANTED, _AT_LEAST = 20, 512
# All are looked at by the signs of their first numbers, 64 to a word: as many as a byte can count.
_FIRST_WORDS = 3
# By all of their signs one in so many is looked at, and at least so many for each candidate.
_ONE_IN, _PER_CANDIDATE = 32, 8
# What is worked on at once stays in the processor's cache.
_BLOCK = 1 << 16
# A threshold is taken from so many of the counts, not from all.
_SAMPLE = 2_048
# How far from what is expected a count may be, in standard deviations.
_CHANCE = 4.0


class Signs:
    """The signs of unit vectors, a row each. Not safe to use from several threads at once."""

    def __init__(self, some: Floats, room: int) -> None:
        """`some` of the vectors give the centre."""
        self._centre: Floats = some.mean(0, dtype=np.float32)
        # How far the vectors reach towards the centre: from where to where.
        self._along = (math.inf, -math.inf)
        words = -(-some.shape[1] // 64)
        first = min(words, _FIRST_WORDS)
        # All pass over the first words, word by word; the rest is fetched for some, vector by vector.
        self._first: Bits = np.zeros((first, room), np.uint64)
        self._rest: Bits = np.zeros((room, words - first), np.uint64)
        self._differing: Bits = np.empty(_BLOCK, np.uint64)
        self._counts: Counts = np.empty(_BLOCK, np.uint8)

    def make_room(self, room: int) -> None:
        """Take in rows up to this one."""
        more = room - len(self._rest)
        self._first = np.pad(self._first, ((0, 0), (0, more)))
        self._rest = np.pad(self._rest, ((0, more), (0, 0)))

    def put(self, rows: slice | Ints, vectors: Floats) -> None:
        """The vectors of these rows, from now on."""
        along = vectors @ self._centre
        least, most = self._along
        self._along = (min(least, float(along.min(initial=least))), max(most, float(along.max(initial=most))))
        words = self._of(vectors)
        self._first[:, rows] = words[:, : len(self._first)].T
        self._rest[rows] = words[:, len(self._first) :]

    def move(self, source: int, target: int) -> None:
        """The row is what the other one was."""
        self._first[:, target] = self._first[:, source]
        self._rest[target] = self._rest[source]

    def candidates(
        self, question: Floats, size: int, wanted: int, among: Mask | None = None, *, cosine: float = -1.0
    ) -> Ints:
        """Of the first so many rows, those that nearly always hold the nearest; all that there are when they are few.

        Only those that are `among` count, as if there were no others, and only what has the cosine at least is wanted.
        """
        living = size if among is None else int(np.count_nonzero(among))
        most = enough(wanted)
        unit = question / max(float(np.linalg.norm(question)), 1e-6)
        asked = self._of(unit[None, :])[0]
        counts = self._first_counts(asked, size)
        if among is not None:
            counts[~among] = np.iinfo(np.uint8).max  # more than any other has
        rows = _least(counts, max(living // _ONE_IN, _PER_CANDIDATE * most), self._differing_at_most(unit, cosine))
        if len(rows) <= most:
            return rows
        return rows[np.argpartition(counts.take(rows) + self._rest_counts(asked, rows), most)[:most]]

    def _of(self, vectors: Floats) -> Bits:
        """A row of words for each vector; what is left of the last word is the same for all."""
        bits = np.packbits(vectors > self._centre, axis=1)
        padded = np.zeros((len(vectors), 8 * (len(self._first) + self._rest.shape[1])), np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)

    def _first_counts(self, asked: Bits, size: int) -> Counts:
        """In how many of their first signs all rows differ from the question."""
        totals: Counts = np.empty(size, np.uint8)
        for start in range(0, size, _BLOCK):
            total = totals[start : start + _BLOCK]
            differing, counts = self._differing[: len(total)], self._counts[: len(total)]
            stretch = slice(start, start + len(total))
            np.bitwise_count(np.bitwise_xor(self._first[0, stretch], asked[0], out=differing), out=total)
            for word, ours in zip(self._first[1:], asked[1:], strict=False):
                np.bitwise_count(np.bitwise_xor(word[stretch], ours, out=differing), out=counts)
                np.add(total, counts, out=total)
        return totals

    def _differing_at_most(self, unit: Floats, cosine: float) -> int:
        """How many of the first signs may differ where the cosine is at least this; nearly always, not always."""
        signs = min(len(unit), 64 * len(self._first))
        share = math.acos(max(-1.0, min(1.0, self._around_centre(unit, cosine)))) / math.pi
        return min(signs, 1 + math.ceil(signs * share + _CHANCE * math.sqrt(signs * share * (1 - share))))

    def _around_centre(self, unit: Floats, cosine: float) -> float:
        """The least that a cosine becomes when both vectors are seen from the centre."""
        far = float(self._centre @ self._centre)
        shared = cosine - float(unit @ self._centre) + far
        length = max(float(np.linalg.norm(unit - self._centre)), 1e-6)
        least, most = self._along
        turning = min(max(1 + far - shared, least), most)  # where it is least, if that is in between
        return min(
            (shared - along) / (length * math.sqrt(max(1 - 2 * along + far, 1e-12))) for along in (least, turning, most)
        )

    def _rest_counts(self, asked: Bits, rows: Ints) -> NDArray[np.uint16]:
        """In how many of their other signs some rows differ from the question."""
        counts = np.zeros(len(rows), np.uint16)
        for word, ours in zip(self._rest.take(rows, axis=0).T, asked[len(self._first) :], strict=True):
            counts += np.bitwise_count(word ^ ours)
        return counts


def enough(wanted: int) -> int:
    """How many candidates hold the nearest so many."""
    return max(_AT_LEAST, _PER_WANTED * wanted)


def _least(counts: Counts, wanted: int, most: int) -> Ints:
    """The rows of about so many of the least, or more, and none above `most`; equals are in it or not together."""
    step = max(1, len(counts) // _SAMPLE)
    threshold = min(most, _quantile(counts[::step], wanted // step))
    rows = np.flatnonzero(counts <= threshold)
    if 2 * len(rows) < wanted and threshold < most:  # the sample was not like the others
        rows = np.flatnonzero(counts <= min(most, _quantile(counts, wanted)))
    return rows


def _quantile(counts: Counts, place: int) -> int:
    return int(np.partition(counts, place)[place]) if place < len(counts) else np.iinfo(np.uint8).max
