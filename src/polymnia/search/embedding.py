"""Vectors as bytes and their likeness: little-endian float32, compared by the cosine of the angle between them."""

import math
import sys
from array import array
from collections.abc import Callable, Sequence
from operator import mul

from polymnia.errors import BadInput


def packed(numbers: Sequence[float], dimension: int, name: str) -> bytes:
    """The numbers as bytes. Raises BadInput when there are too few or many, or one of them or all are no direction."""
    if len(numbers) != dimension:
        raise BadInput(f"{name}: expected {dimension} numbers, got {len(numbers)}")
    try:
        values = array("f", numbers)
    except OverflowError as exc:
        raise BadInput(f"{name}: a number is too large for a 32-bit float") from exc
    if not all(map(math.isfinite, values)):
        raise BadInput(f"{name}: every number must be finite and fit into a 32-bit float")
    if not any(values):
        raise BadInput(f"{name}: all numbers are zero, so it points nowhere; leave it out")
    return _little_endian(values).tobytes()


def unpacked(vector: bytes) -> "array[float]":
    """The numbers behind the bytes."""
    return _little_endian(array("f", vector))


def length(vector: bytes) -> float:
    """The vector's Euclidean length."""
    return math.hypot(*unpacked(vector))


def cosine(vector: Sequence[float], norm: float, other: bytes, other_norm: float) -> float:
    """The likeness of two vectors whose lengths are known: 1 for the same direction, -1 for the opposite one."""
    return _dot(vector, unpacked(other)) / (norm * other_norm)


def _product(left: Sequence[float], right: Sequence[float]) -> float:
    total: float = sum(map(mul, left, right))
    return total


# Quicker, from Python 3.12 on.
_dot: Callable[[Sequence[float], Sequence[float]], float] = getattr(math, "sumprod", _product)


def _little_endian(values: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        values.byteswap()
    return values
