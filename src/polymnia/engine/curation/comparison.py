"""Compare entities by the mean of their facts' vectors, without comparing every pair."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from polymnia.engine.curation.findings import Check, Progress
from polymnia.engine.memory import Memory
from polymnia.stores.contract import Reader

# Up to this many entities every pair is compared.
EXACT_LIMIT = 4_096
# Beyond it, entities are put into groups, each into those that it is nearest to. About this many
# entities have the same nearest group, and more of them if there would be too many groups.
GROUP_SIZE = 20
NEAREST_GROUPS = 32
MAX_GROUPS = 4_096
# The cells of a block of scores, 4 bytes each.
_BLOCK_CELLS = 2_000_000
_ASSIGN_BATCH = 2_000
# More pairs than a person reads. This bounds the memory that a request can take.
MAX_PAIRS = 10_000

Indexes = NDArray[np.int64]
Rows = NDArray[np.float32]
# The places of two entities, and their cosine.
Pair = tuple[int, int, float]


class Points(Struct, frozen=True):
    """Entities by name, and their vectors of length one as the rows of a matrix."""

    names: list[str]
    rows: Rows


class ScoreBlock(Struct, frozen=True):
    """The cosines of some entities (rows) with all that may be near them (columns)."""

    left: Indexes
    right: Indexes
    scores: Rows


def load_points(memory: Memory, read: Reader, perspective: str) -> Points:
    """Return the entities that have vectors; none if nothing is embedded.

    Raise BadInput for an unknown perspective.
    """
    model = _choose_model(memory, read)
    means = read.vectors.means(model, perspective=perspective) if model is not None else {}
    if not means:
        return Points([], np.zeros((0, 1), np.float32))
    joined = np.frombuffer(b"".join(means.values()), "<f4").reshape(len(means), -1)
    norms = np.linalg.norm(joined, axis=1, keepdims=True)
    return Points(list(means), np.asarray(joined / np.where(norms > 0, norms, 1), np.float32))


def compare(rows: Rows, *, progress: Progress, check: Check) -> Iterator[ScoreBlock]:
    """Yield blocks of scores. Each entity is on the left of one block, and on the right of several.

    Beyond EXACT_LIMIT entities some distant pairs are in no block.
    """
    count = len(rows)
    if count <= EXACT_LIMIT:
        everyone = np.arange(count)
        yield from _blocks(rows, [(everyone, everyone)] if count else [], progress, check)
    else:
        yield from _blocks(rows, _group(rows, check), progress, check)


class BestPairs:
    """Collects the most similar pairs of entities that are not related."""

    def __init__(
        self,
        names: Sequence[str],
        related: Iterable[tuple[str, str]],
        *,
        limit: int,
        min_score: float,
    ) -> None:
        self._count = len(names)
        self._limit = max(0, min(limit, MAX_PAIRS))
        self._min_score = min_score
        self._related = _related_keys(names, related)
        self._keys, self._scores = np.zeros(0, np.int64), np.zeros(0, np.float32)

    def add(self, block: ScoreBlock) -> None:
        """Take the pairs of a block that are among the best so far."""
        # The threshold rises as the list fills, so that thousands of equal entities do not fill the
        # memory.
        is_full = self._limit > 0 and len(self._scores) == self._limit
        keys, scores = _pairs_above(
            block, float(self._scores[-1]) if is_full else self._min_score, self._count
        )
        kept = ~_contains(self._related, keys)
        if not kept.any():
            return
        self._keys, first = np.unique(np.concatenate([self._keys, keys[kept]]), return_index=True)
        self._scores = np.concatenate([self._scores, scores[kept]])[first]
        best = np.argsort(-self._scores, kind="stable")[: self._limit]
        self._keys, self._scores = self._keys[best], self._scores[best]

    def pairs(self) -> list[Pair]:
        """Return the pairs, best first."""
        return _unpack(self._keys, self._scores, self._count)


class NearestPairs:
    """Collects the pairs in which one entity is among the nearest of the other."""

    def __init__(self, count: int, *, nearest: int, min_score: float) -> None:
        self._count = count
        self._nearest = nearest
        self._min_score = min_score
        self._found: list[tuple[Indexes, Rows]] = []

    def add(self, block: ScoreBlock) -> None:
        """Take the nearest entities of each entity on the left of a block."""
        row, column = np.nonzero(
            (block.scores >= self._min_score) & (block.left[:, None] != block.right)
        )
        scores = block.scores[row, column]
        order = np.lexsort((column, -scores, row))
        row, column, scores = row[order], column[order], scores[order]
        near = np.arange(len(row)) - np.searchsorted(row, row) < self._nearest
        self._found.append(
            (_keys(block.left[row[near]], block.right[column[near]], self._count), scores[near])
        )

    def pairs(self) -> list[Pair]:
        """Return the pairs, each once."""
        if not self._found:
            return []
        keys, first = np.unique(
            np.concatenate([keys for keys, _ in self._found]), return_index=True
        )
        return _unpack(
            keys, np.concatenate([scores for _, scores in self._found])[first], self._count
        )


def _related_keys(names: Sequence[str], related: Iterable[tuple[str, str]]) -> Indexes:
    """Return the keys of the related pairs, sorted."""
    place = {name: number for number, name in enumerate(names)}
    ends = [(place[a], place[b]) for a, b in related if a in place and b in place]
    one, other = np.array(ends, np.int64).reshape(-1, 2).T
    return np.unique(_keys(one, other, len(names)))


def _pairs_above(block: ScoreBlock, floor: float, count: int) -> tuple[Indexes, Rows]:
    """Return the keys and scores of the pairs of a block that are similar enough."""
    row, column = np.nonzero((block.scores >= floor) & (block.left[:, None] != block.right))
    return _keys(block.left[row], block.right[column], count), block.scores[row, column]


def _keys(one: Indexes, other: Indexes, count: int) -> Indexes:
    """Return a number for each pair: lower place times number of entities plus higher."""
    return np.asarray(np.minimum(one, other) * count + np.maximum(one, other))


def _unpack(keys: Indexes, scores: Rows, count: int) -> list[Pair]:
    pairs = zip(
        (keys // max(1, count)).tolist(),
        (keys % max(1, count)).tolist(),
        scores.tolist(),
        strict=True,
    )
    return [(a, b, min(1.0, score)) for a, b, score in pairs]


def _contains(ordered: Indexes, keys: Indexes) -> NDArray[np.bool_]:
    """Return for each key whether it is among the ordered ones."""
    if not len(ordered):
        return np.zeros(len(keys), np.bool_)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[place] == keys)


def _choose_model(memory: Memory, read: Reader) -> int | None:
    """Return the number of the memory's own model, or else of the one with most vectors."""
    models = read.vectors.models()
    own = [
        model for model in models if memory.meaning is not None and model.url == memory.meaning.url
    ]
    if len(own or models) == 1:
        return (own or models)[0].number
    return max(
        [item.number for item in own or models],
        key=lambda item: read.vectors.coverage(item)[0],
        default=None,
    )


def _group(rows: Rows, check: Check) -> list[tuple[Indexes, Indexes]]:
    """Return each group: its nearest entities, and all that have it among their nearest groups.

    Centres are entities chosen at random, so that there are more of them where there are more
    entities.
    """
    count = min(len(rows) // GROUP_SIZE, MAX_GROUPS)
    centres = rows[np.random.default_rng(0).choice(len(rows), count, replace=False)].T
    nearest = np.empty((len(rows), min(NEAREST_GROUPS, count)), np.int32)
    for start in range(0, len(rows), _ASSIGN_BATCH):
        check()
        scores = rows[start : start + _ASSIGN_BATCH] @ centres
        nearest[start : start + _ASSIGN_BATCH] = _best_columns(scores, nearest.shape[1])
    own = _members(nearest[:, :1], count)
    near = _members(nearest, count)
    return [(left, right) for left, right in zip(own, near, strict=True) if len(left)]


def _best_columns(scores: Rows, count: int) -> Indexes:
    """Return the columns of the best scores of each row, best first."""
    chosen = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(chosen, order, axis=1), np.int64)


def _members(groups: NDArray[np.int32], count: int) -> list[Indexes]:
    """Return the rows in which each number up to `count` occurs."""
    order = np.argsort(groups, axis=None, kind="stable")
    bounds = np.searchsorted(groups.ravel()[order], np.arange(count + 1))
    found = order // groups.shape[1]
    return [found[bounds[number] : bounds[number + 1]] for number in range(count)]


def _blocks(
    rows: Rows, groups: Sequence[tuple[Indexes, Indexes]], progress: Progress, check: Check
) -> Iterator[ScoreBlock]:
    done = 0
    for left, right in groups:
        columns = rows[right].T
        size = max(1, _BLOCK_CELLS // len(right))
        for start in range(0, len(left), size):
            check()
            part = left[start : start + size]
            yield ScoreBlock(part, right, rows[part] @ columns)
            done += len(part)
            progress(done, len(rows), "comparing entities")
