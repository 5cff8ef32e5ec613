"""Vectors in memory: which are nearest to a question, each seen together with its neighbours in the conversation.

Up to some ten thousand every vector is compared exactly; beyond that their signs choose the candidates and the vectors
themselves decide.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from polymnia.search.signs import EXACT, Signs, enough

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

# How much of the one before, the one before that and the one after is seen in each vector.
BEFORE, EARLIER, AFTER = 0.0, 0.0, 0.0
# New ones at once that are linked one by one; more are linked anew with all others.
_FEW = 64
# Rows that are worked on at once stay in the processor's cache.
_CHUNK = 512
# How many vectors are enough to find their centre.
_SOME = 8_192
_NOWHERE = -1


class Row(Struct, frozen=True, gc=False):
    """A vector and what is known of it: where it is, whose it is, and when it was said and written."""

    place: int
    group: int
    valid_at: int
    created_at: int
    vector: bytes  # half-precision floats, little endian


class VectorIndex:
    """The vectors of one model. Not safe to use from several threads at once."""

    def __init__(self, dimension: int, *, exact: int = EXACT) -> None:
        self.dimension = dimension
        self._exact = exact
        self._size = 0
        self._numbers = np.zeros((4, 0), np.int64)  # place, group, valid_at, created_at
        self._living = np.zeros(0, np.bool_)
        self._links = np.full((3, 0), _NOWHERE, np.int64)  # before, earlier, after
        self._lengths = np.ones(0, np.float32)
        self._vectors: NDArray[np.float32 | np.int16] = np.zeros((0, dimension), np.float32)
        self._scales = np.ones(0, np.float32)
        self._signs: Signs | None = None  # as long as all are compared
        self._at: dict[int, int] = {}
        self._last: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._at)

    @property
    def places(self) -> set[int]:
        """Every place that has a vector here."""
        return set(self._at)

    def add(self, rows: Sequence[Row]) -> None:
        """Take vectors in; one for a place that has one already takes its place."""
        if not rows:
            return
        replaced = self._forget(row.place for row in rows)
        start = self._size
        self._grow(start + len(rows))
        self._size = start + len(rows)
        known = [(row.place, row.group, row.valid_at, row.created_at) for row in rows]
        self._numbers[:, start : self._size] = np.array(known, np.int64).T
        self._living[start : self._size] = True
        self._at |= {row.place: at for at, row in enumerate(rows, start)}
        halves = np.frombuffer(b"".join([row.vector for row in rows]), np.dtype("<f2"))
        self._keep(start, halves.reshape(len(rows), self.dimension).astype(np.float32))
        new = range(start, self._size)
        if replaced or len(rows) > _FEW or not all(self._link(at) for at in new):
            self._link_all(new)
        if self._signs is None and self._size > self._exact:
            self._begin_signs()

    def remove(self, places: Iterable[int]) -> None:
        """Forget the vectors of these places."""
        if self._forget(places):
            self._link_all(())

    def nearest(self, question: Floats, count: int, groups: Collection[int] | None = None) -> dict[int, float]:
        """The places of the nearest so many, with their cosines; of these groups only, if any are given."""
        if not self._at:
            return {}
        chosen = self._candidates(question, count, self._among(groups))
        cosines = self._cosines(question, chosen)
        best = np.argsort(-cosines, kind="stable")[:count]
        return dict(zip(self._numbers[0, chosen[best]].tolist(), cosines[best].tolist(), strict=True))

    def cosines(self, question: Floats, places: Collection[int]) -> dict[int, float]:
        """The cosines of these places, as far as they have vectors."""
        known = [place for place in places if place in self._at]
        found = self._cosines(question, np.array([self._at[place] for place in known], np.int64))
        return dict(zip(known, found.tolist(), strict=True))

    def vectors(self, places: Collection[int]) -> dict[int, bytes]:
        """Return the vectors of those of the places that have one, as little-endian float32."""
        known = [place for place in places if place in self._at]
        rows = self._floats(np.array([self._at[place] for place in known], np.int64)).astype("<f4")
        return {place: row.tobytes() for place, row in zip(known, rows, strict=True)}

    def _among(self, groups: Collection[int] | None) -> Mask | None:
        """Which rows count; None when all do."""
        if groups is not None:
            return self._living[: self._size] & _in_groups(self._numbers[1, : self._size], groups)
        return None if len(self._at) == self._size else self._living[: self._size]

    def _candidates(self, question: Floats, count: int, among: Mask | None) -> Ints:
        left = self._size if among is None else int(np.count_nonzero(among))
        if self._signs is None or left <= max(self._exact, enough(count)):
            return np.arange(self._size) if among is None else np.flatnonzero(among)
        return self._signs.candidates(question, self._size, count, among)

    def _cosines(self, question: Floats, chosen: Ints) -> Floats:
        """Of the mixtures, without making them: what is mixed can as well be the products."""
        question = question.astype(np.float32)
        links = self._links[:, chosen]
        if 2 * len(chosen) > self._size:
            products = np.append(self._all_products(question), np.float32(0))
            own, near = products[chosen], products[links]
        else:
            own, near = self._products(question, chosen), np.zeros(links.shape, np.float32)
            near[links != _NOWHERE] = self._products(question, links[links != _NOWHERE])
        mixed = own + BEFORE * near[0] + EARLIER * near[1] + AFTER * near[2]
        return np.asarray(mixed / self._lengths[chosen])

    def _all_products(self, question: Floats) -> Floats:
        stretches = [slice(start, start + _CHUNK) for start in range(0, self._size, _CHUNK)]
        parts = [_dots(self._vectors[: self._size][stretch], question) for stretch in stretches]
        return np.concatenate(parts) * self._scales[: self._size]

    def _products(self, question: Floats, chosen: Ints) -> Floats:
        parts = [
            _dots(self._vectors.take(chosen[start : start + _CHUNK], axis=0), question)
            for start in range(0, len(chosen), _CHUNK)
        ]
        return np.concatenate(parts) * self._scales[chosen] if parts else np.zeros(0, np.float32)

    def _forget(self, places: Iterable[int]) -> bool:
        gone = [self._at.pop(place) for place in places if place in self._at]
        self._living[gone] = False
        return bool(gone)

    def _grow(self, size: int) -> None:
        if size > self._exact and self._vectors.dtype != np.int16:
            self._shrink()
        room = len(self._lengths)
        if size <= room:
            return
        more = size + size // 8 - room
        self._numbers = np.pad(self._numbers, ((0, 0), (0, more)))
        self._living = np.pad(self._living, (0, more))
        self._links = np.pad(self._links, ((0, 0), (0, more)), constant_values=_NOWHERE)
        self._lengths = np.pad(self._lengths, (0, more), constant_values=1)
        self._vectors = np.pad(self._vectors, ((0, more), (0, 0)))
        self._scales = np.pad(self._scales, (0, more), constant_values=1)
        if self._signs is not None:
            self._signs.make_room(room + more)

    def _shrink(self) -> None:
        """From floats to whole numbers of two bytes: half of the memory, as precise as what the store has."""
        floats = self._vectors[: self._size]
        self._vectors = np.zeros(self._vectors.shape, np.int16)
        self._keep(0, floats.astype(np.float32))

    def _keep(self, start: int, vectors: Floats) -> None:
        stretch = slice(start, start + len(vectors))
        if self._vectors.dtype == np.int16:
            self._scales[stretch] = np.maximum(np.abs(vectors).max(1, initial=0), 1e-6) / np.iinfo(np.int16).max
            vectors = np.rint(vectors / self._scales[stretch, None])
        self._vectors[stretch] = vectors

    def _floats(self, chosen: Ints) -> Floats:
        return self._vectors[chosen].astype(np.float32, copy=False) * self._scales[chosen, None]

    def _link(self, at: int) -> bool:
        """Put a new one at the end of its conversation; False when it does not belong there."""
        valid_at = int(self._numbers[2, at])
        last = self._last.get(valid_at) if valid_at else None
        changed = [at]
        if last is not None:
            if self._written(last) > self._written(at) or not self._living[last]:
                return False
            self._links[:, at] = (last, self._links[0, last], _NOWHERE)
            self._links[2, last] = at
            changed.append(last)
        if valid_at:
            self._last[valid_at] = at
        self._mix(np.array(changed))
        return True

    def _written(self, at: int) -> tuple[int, int]:
        return int(self._numbers[3, at]), int(self._numbers[0, at])

    def _link_all(self, new: Sequence[int]) -> None:
        """Put all conversations in order."""
        place, _, valid_at, created_at = self._numbers[:, : self._size]
        order = np.lexsort((place, created_at, valid_at))
        order = order[self._living[order]]
        said = valid_at[order]
        old = self._links[:, : self._size].copy()
        self._links[:, : self._size] = _NOWHERE
        for link, away in ((0, 1), (1, 2)):
            same = (said[away:] == said[:-away]) & (said[away:] != 0)
            self._links[link, order[away:][same]] = order[:-away][same]
        follows = self._links[0, order] != _NOWHERE
        self._links[2, self._links[0, order[follows]]] = order[follows]
        ends = np.append(said[1:] != said[:-1], True) if len(said) else np.zeros(0, bool)
        self._last = dict(zip(said[ends].tolist(), order[ends].tolist(), strict=True))
        changed = (self._links[:, : self._size] != old).any(0)
        changed[new[0] if new else self._size :] = True
        self._mix(np.flatnonzero(changed))

    def _mix(self, changed: Ints) -> None:
        """How long the mixtures are, and their signs."""
        for start in range(0, len(changed), _CHUNK):
            some = changed[start : start + _CHUNK]
            mixed = self._mixtures(some)
            self._lengths[some] = np.maximum(np.linalg.norm(mixed, axis=1), 1e-6)
            if self._signs is not None:
                self._signs.put(some, mixed / self._lengths[some, None])

    def _mixtures(self, some: Ints) -> Floats:
        mixed = self._floats(some)
        for link, share in enumerate((BEFORE, EARLIER, AFTER)):
            near = self._links[link, some]
            has = near != _NOWHERE
            mixed[has] += share * self._floats(near[has])
        return mixed

    def _begin_signs(self) -> None:
        living = np.flatnonzero(self._living[: self._size])
        some = living[:: 1 + len(living) // _SOME]
        self._signs = Signs(self._mixtures(some) / self._lengths[some, None], len(self._lengths))
        self._mix(living)


def as_bytes(vectors: Floats) -> list[bytes]:
    """The vectors as they are kept."""
    return [row.tobytes() for row in vectors.astype(np.dtype("<f2"))]


def _dots(vectors: NDArray[np.float32 | np.int16], question: Floats) -> Floats:
    """On one core: sharing it out costs more than it gains on a machine that is busy."""
    return np.asarray(np.vecdot(vectors.astype(np.float32, copy=False), question))


def _in_groups(numbers: Ints, wanted: Collection[int]) -> Mask:
    if len(wanted) > _FEW:
        return np.isin(numbers, np.fromiter(wanted, np.int64, len(wanted)))
    mask = np.zeros(len(numbers), np.bool_)
    for each in wanted:
        mask |= numbers == each
    return mask
