"""What an embedder is: texts become vectors of length one, all of the same dimension."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy comes with an extra and is loaded only when there is a model
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """A model, loaded. Safe to use from several threads."""

    @property
    def identity(self) -> str:
        """Which model, dimension and prompts: vectors with another identity cannot be compared with its own."""

    @property
    def dimension(self) -> int:
        """How long its vectors are."""

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        """A row for each text; `asking` where they are questions, which some models embed in another way.

        Raises EmbedderError.
        """
