"""The command `python -m bench.recall.vectors`: what a search among many vectors costs, and what it
misses.

The vectors lie in groups, as those of texts about the same thing do, or come from a file. The index
is compared with an exact comparison of all vectors.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from polymnia.stores.sqlite.vector_index import VectorIndex

Floats = NDArray[np.float32]

DIMENSION = 384
# How many vectors are about one thing, and how far they are from it.
_GROUP_SIZE, _SPREAD = 200, 1.2
_BATCH = 100_000
_WANTED = (10, 20, 100)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    batches = (
        _read(options.file) if options.file else make_vectors(options.count + options.questions)
    )
    first = next(batches)
    questions, first = first[: options.questions], first[options.questions :]
    index = VectorIndex(first.shape[1])
    best = _Best(questions, max(_WANTED))
    for vectors in chain([first], batches):
        best.look_at(vectors, len(index))
        _add(index, vectors)
    _report(index, questions, best)
    return 0


def make_vectors(count: int) -> Iterator[Floats]:
    """Yield batches of vectors of length one that lie in groups."""
    chance = np.random.default_rng(7)
    things = _units(chance.standard_normal((max(1, count // _GROUP_SIZE), DIMENSION), np.float32))
    for start in range(0, count, _BATCH):
        about = things[chance.integers(0, len(things), min(_BATCH, count - start))]
        yield _units(about + _SPREAD * _units(chance.standard_normal(about.shape, np.float32)))


class _Best:
    """The nearest vectors of every question, by comparing all."""

    def __init__(self, questions: Floats, count: int) -> None:
        self._questions = questions
        self._count = count
        self._cosines: Floats = np.full((len(questions), count), -2, np.float32)
        self._places = np.zeros((len(questions), count), np.int64)

    def look_at(self, vectors: Floats, start: int) -> None:
        """Compare vectors whose numbers begin after `start`."""
        cosines = np.hstack((self._cosines, self._questions @ vectors.T))
        new = np.broadcast_to(
            np.arange(start + 1, start + len(vectors) + 1), (len(cosines), len(vectors))
        )
        some = np.argpartition(-cosines, self._count, axis=1)[:, : self._count]
        order = np.take_along_axis(
            some, np.argsort(-np.take_along_axis(cosines, some, 1), axis=1), 1
        )
        self._cosines = np.take_along_axis(cosines, order, 1)
        self._places = np.take_along_axis(np.hstack((self._places, new)), order, 1)

    def found(self, question: int, places: Sequence[int], wanted: int) -> float:
        """Return which share of the nearest `wanted` is among the places."""
        return len(set(self._places[question, :wanted].tolist()) & set(places)) / wanted

    @property
    def likeness(self) -> float:
        """The average cosine of the tenth nearest."""
        return float(self._cosines[:, 9].mean())


def _read(file: Path) -> Iterator[Floats]:
    yield _units(np.random.default_rng(7).permutation(np.load(file)))


def _units(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _add(index: VectorIndex, vectors: Floats) -> None:
    start = len(index) + 1
    rows = [row.tobytes() for row in vectors.astype("<f2")]
    index.add(range(start, start + len(rows)), rows)


def _report(index: VectorIndex, questions: Floats, best: _Best) -> None:
    print(f"{len(index)} vectors of {questions.shape[1]} numbers, {len(questions)} questions")
    print(f"cosine of the tenth nearest: {best.likeness:.2f}")
    for wanted in _WANTED:
        spent, shares = [], []
        for number, question in enumerate(questions):
            began = perf_counter()
            near = index.nearest(question.astype("<f4").tobytes(), wanted, None)
            spent.append(perf_counter() - began)
            shares.append(best.found(number, list(near), wanted))
        took = sorted(spent)[len(spent) // 2] * 1000
        print(
            f"the nearest {wanted}: {took:.2f} ms, "
            f"{100 * sum(shares) / len(shares):.2f} % of them found"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.vectors", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--count", type=int, default=100_000, metavar="N", help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--questions", type=int, default=200, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE.npy",
        help="vectors of your own, a row each, some of which ask",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
