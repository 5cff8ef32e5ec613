"""Vectors that lie as those of texts do: around things that are talked about, and on one side of the space."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_THINGS = 40


def crowd(count: int, size: int, *, seed: int = 1, spread: float = 0.7, offset: float = 0.0) -> tuple[Floats, Floats]:
    """So many unit vectors around a few things, and twenty questions about them.

    The offset is how far all of them are moved to one side, as many models do.
    """
    chance = np.random.default_rng(seed)
    things = _units(chance.normal(size=(_THINGS, size)))
    aside = offset * _units(chance.normal(size=(1, size)))
    about = things[chance.integers(0, _THINGS, count + 20)]
    found = _units(about + spread * _units(chance.normal(size=about.shape)) + aside)
    return found[:count], found[count:]


def _units(vectors: NDArray[np.floating]) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
