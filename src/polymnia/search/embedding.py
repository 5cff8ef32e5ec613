"""Vectors as bytes: little-endian float32, compared by the cosine of the angle between them."""

import math
import sys
from array import array
from collections.abc import Callable, Sequence
from operator import mul
from struct import pack, unpack

from polymnia.errors import BadInput


def pack_vector(numbers: Sequence[float], dimension: int, name: str) -> bytes:
    """Return the numbers as bytes. `name` is the argument that an error names.

    Raise BadInput if there are too few or too many, if one is not finite, or if all are 0.
    """
    if len(numbers) != dimension:
        raise BadInput(f"{name}: expected {dimension} numbers, got {len(numbers)}")
    try:
        values = array("f", numbers)
    except OverflowError as exc:
        raise BadInput(f"{name}: a number is too large for a 32-bit float") from exc
    if not all(map(math.isfinite, values)):
        raise BadInput(f"{name}: every number must be finite and fit into a 32-bit float")
    if not any(values):
        raise BadInput(
            f"{name}: all numbers are zero, so the vector has no direction; leave it out"
        )
    return _little_endian(values).tobytes()


def unpack_vector(vector: bytes) -> "array[float]":
    """Return the numbers of a vector."""
    return _little_endian(array("f", vector))


def length(vector: bytes) -> float:
    """Return the Euclidean length of a vector."""
    return math.hypot(*unpack_vector(vector))


def cosine(vector: Sequence[float], norm: float, other: bytes, other_norm: float) -> float:
    """Return the cosine of two vectors whose lengths are given.

    It is 1 for the same direction and -1 for the opposite one.
    """
    return _dot(vector, unpack_vector(other)) / (norm * other_norm)


def shorten(vector: bytes) -> bytes:
    """Return a float32 vector as float16 with length one."""
    numbers = unpack_vector(vector)
    norm = math.hypot(*numbers) or 1.0
    return pack(f"<{len(numbers)}e", *[number / norm for number in numbers])


def widen(vector: bytes, dimension: int) -> bytes:
    """Return a stored vector as float32: float16 is widened, a client's float32 stays as it is."""
    if len(vector) != 2 * dimension:
        return vector
    return pack(f"<{dimension}f", *unpack(f"<{dimension}e", vector))


def _product(left: Sequence[float], right: Sequence[float]) -> float:
    total: float = sum(map(mul, left, right))
    return total


# `math.sumprod` is faster. It exists from Python 3.12 on.
_dot: Callable[[Sequence[float], Sequence[float]], float] = getattr(math, "sumprod", _product)


def _little_endian(values: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        values.byteswap()
    return values
