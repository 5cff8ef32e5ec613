"""The inputs that are kept: one file for each target, one input in each line, in base64."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path

_FOLDER = Path(__file__).with_name("corpus")
# So that the corpus stays small: longer inputs and more of them are not kept.
MAX_INPUT_BYTES = 2_000
MAX_INPUTS = 150


def read_corpus(target: str) -> list[bytes]:
    """Return the inputs of a target."""
    lines = (_FOLDER / f"{target}.txt").read_text("ascii").splitlines()
    return [b64decode(line) for line in lines]


def write_corpus(target: str, inputs: Iterable[bytes]) -> int:
    """Keep these inputs, the shortest first. Return how many there are."""
    kept = sorted({data for data in inputs if len(data) <= MAX_INPUT_BYTES}, key=_length)
    lines = [b64encode(data).decode() for data in kept[:MAX_INPUTS]]
    (_FOLDER / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines), "ascii")
    return len(lines)


def _length(data: bytes) -> tuple[int, bytes]:
    return len(data), data
