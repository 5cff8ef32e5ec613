"""Compare entities by the mean of their observations' vectors, without comparing every pair of them."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from polymnia.engine.curation.scan import Check, Progress
from polymnia.engine.memory import Memory
from polymnia.stores.contract import Reader

# Up to this many entities every pair is compared.
EXACT_LIMIT = 4_096
# Beyond it, entities are put into groups, each into those that it is nearest to. About this many entities have the same
# nearest group, and more of them if there would be too many groups.
GROUP_SIZE = 20
NEAREST_GROUPS = 32
MAX_GROUPS = 4_096
# The cells of a block of scores, 4 bytes each.
_BLOCK_CELLS = 2_000_000
_ASSIGN_BATCH = 2_000
# More pairs than anybody reads: nothing that is asked for fills the memory.
MAX_PAIRS = 10_000

Indexes = NDArray[np.int64]
Rows = NDArray[np.float32]


class Points(Struct, frozen=True):
    """Entities by name, and their vectors of length one as the rows of a matrix."""

    names: list[str]
    rows: Rows


class Block(Struct, frozen=True):
    """The cosines of some entities (rows) with all that may be near them (columns)."""

    left: Indexes
    right: Indexes
    scores: Rows


def load_points(memory: Memory, read: Reader, perspective: str) -> Points:
    """Return the entities that have vectors; none if nothing is embedded. Raise BadInput for an unknown perspective."""
    model = _choose_model(memory, read)
    means = read.vectors.means(model, perspective=perspective) if model is not None else {}
    if not means:
        return Points([], np.zeros((0, 1), np.float32))
    joined = np.frombuffer(b"".join(means.values()), "<f4").reshape(len(means), -1)
    norms = np.linalg.norm(joined, axis=1, keepdims=True)
    return Points(list(means), np.asarray(joined / np.where(norms > 0, norms, 1), np.float32))


def compare(rows: Rows, *, progress: Progress, check: Check) -> Iterator[Block]:
    """Yield blocks of scores. Each entity is on the left of one block, and on the right of several.

    Beyond EXACT_LIMIT entities some distant pairs are in no block.
    """
    count = len(rows)
    if count <= EXACT_LIMIT:
        everyone = np.arange(count)
        yield from _blocks(rows, [(everyone, everyone)] if count else [], progress, check)
    else:
        yield from _blocks(rows, _group(rows, check), progress, check)


def best_pairs(
    points: Points,
    related: Iterable[tuple[str, str]],
    *,
    limit: int,
    min_score: float,
    progress: Progress,
    check: Check,
) -> list[tuple[int, int, float]]:
    """Return the places of the most similar entities that are not related, with their cosines, best first."""
    limit = min(limit, MAX_PAIRS)
    if limit <= 0:
        return []
    count = len(points.names)
    excluded = _related_keys(points.names, related)
    keys, scores = np.zeros(0, np.int64), np.zeros(0, np.float32)
    for block in compare(points.rows, progress=progress, check=check):
        floor = scores[-1] if len(scores) == limit else min_score
        found = _pairs_above(block, floor, count, excluded)
        keys, scores = _merge(keys, scores, *found, limit)
    order = np.lexsort((keys, -scores))
    return [(int(keys[at]) // count, int(keys[at]) % count, min(1.0, float(scores[at]))) for at in order]


def nearest_pairs(
    rows: Rows, *, nearest: int, min_score: float, progress: Progress, check: Check
) -> dict[tuple[int, int], float]:
    """Return the pairs in which one entity is among the nearest of the other, with their cosines."""
    found: dict[tuple[int, int], float] = {}
    for block in compare(rows, progress=progress, check=check):
        scores = np.where(block.left[:, None] == block.right, -1, block.scores)
        columns = _best_columns(scores, min(nearest, scores.shape[1]))
        best = np.take_along_axis(scores, columns, axis=1)
        row, place = np.nonzero(best >= min_score)
        one, other = block.left[row], block.right[columns[row, place]]
        ends = zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist(), strict=True)
        found.update(zip(ends, best[row, place].tolist(), strict=True))
    return found


def _related_keys(names: Sequence[str], related: Iterable[tuple[str, str]]) -> Indexes:
    """Return the keys of the related pairs, sorted: the lower place times the number of entities plus the higher."""
    place = {name: number for number, name in enumerate(names)}
    ends = [sorted((place[a], place[b])) for a, b in related if a in place and b in place]
    return np.unique(np.array([low * len(names) + high for low, high in ends], np.int64))


def _pairs_above(block: Block, floor: float, count: int, excluded: Indexes) -> tuple[Indexes, Rows]:
    """Return the keys and scores of the pairs of a block that are similar enough and not excluded."""
    row, column = np.nonzero(block.scores >= floor)
    one, other = block.left[row], block.right[column]
    keys = np.minimum(one, other) * count + np.maximum(one, other)
    kept = (one != other) & ~_contains(excluded, keys)
    return keys[kept], block.scores[row, column][kept]


def _contains(ordered: Indexes, keys: Indexes) -> NDArray[np.bool_]:
    """Return for each key whether it is among the ordered ones."""
    if not len(ordered):
        return np.zeros(len(keys), np.bool_)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[place] == keys)


def _merge(keys: Indexes, scores: Rows, more: Indexes, more_scores: Rows, limit: int) -> tuple[Indexes, Rows]:
    """Return the best pairs of both, each once, best first."""
    if not len(more):
        return keys, scores
    keys, first = np.unique(np.concatenate([keys, more]), return_index=True)
    scores = np.concatenate([scores, more_scores])[first]
    best = np.argsort(-scores, kind="stable")[:limit]
    return keys[best], scores[best]


def _choose_model(memory: Memory, read: Reader) -> int | None:
    """Return the number of the memory's own model, or else of the one with most vectors."""
    models = read.vectors.models()
    own = [each for each in models if memory.meaning is not None and each.url == memory.meaning.url]
    if len(own or models) == 1:
        return (own or models)[0].number
    return max([each.number for each in own or models], key=lambda each: read.vectors.coverage(each)[0], default=None)


def _group(rows: Rows, check: Check) -> list[tuple[Indexes, Indexes]]:
    """Return the groups: the entities that are nearest to its centre, and all that have it among their nearest.

    Centres are entities chosen at random, so that there are more of them where there are more entities.
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


def _blocks(rows: Rows, groups: Sequence[tuple[Indexes, Indexes]], progress: Progress, check: Check) -> Iterator[Block]:
    done = 0
    for left, right in groups:
        columns = rows[right].T
        size = max(1, _BLOCK_CELLS // len(right))
        for start in range(0, len(left), size):
            check()
            part = left[start : start + size]
            yield Block(part, right, rows[part] @ columns)
            done += len(part)
            progress(done, len(rows), "comparing entities")
