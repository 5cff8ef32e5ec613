"""Embedders behind HTTP: Ollama, and every server with OpenAI's embeddings API."""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
from msgspec import DecodeError, Struct, ValidationError, json

from polymnia.embedders.base import EMBEDDED_FORM
from polymnia.errors import EmbedderError

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

_OLLAMA, _OPENAI = "http://127.0.0.1:11434", "https://api.openai.com/v1"
TIMEOUT_S = 30.0
# Texts of one request, and requests that run at the same time.
TEXTS_PER_REQUEST = 32
MAX_REQUESTS = 4
# Delays before a failed request is retried; each is shortened by up to a half, at random.
RETRY_DELAYS_S = (0.25, 1.0, 4.0)
# A busy or failing server: the same request may work a little later.
_TEMPORARY = frozenset((408, 425, 429, 500, 502, 503, 504))


class _OllamaReply(Struct):
    embeddings: list[list[float]]


class _OpenAiRow(Struct):
    embedding: list[float]
    index: int


class _OpenAiReply(Struct):
    data: list[_OpenAiRow]


def open_service(kind: str, model: str, *, key: str = "") -> "ServiceEmbedder":
    """Open the embedder for `MODEL` or `MODEL@http://server`.

    Raise EmbedderError if the server does not answer.
    """
    name, _, server = model.partition("@")
    if server and not server.startswith(("http://", "https://")):
        raise EmbedderError(
            f"{server!r} is not the URL of a server; use {kind}:{name}@http://HOST:PORT"
        )
    if "@" in urlsplit(server).netloc:
        # It would be in every message about this server, and urllib does not send it.
        raise EmbedderError(
            "the URL of the embedder contains a password, which is not sent; "
            "give a key with POLYMNIA_EMBEDDER_KEY"
        )
    if kind == "ollama":
        base = (server or _OLLAMA).rstrip("/")
        return ServiceEmbedder(f"{base}/api/embed", name, _ollama_rows, key)
    base = (server or _OPENAI).rstrip("/")
    return ServiceEmbedder(f"{base}/embeddings", name, _openai_rows, key)


class ServiceEmbedder:
    """A model that a service runs.

    Several requests run at once, and failed ones are tried again.
    """

    batch_size = TEXTS_PER_REQUEST * MAX_REQUESTS

    def __init__(
        self, url: str, model: str, rows: Callable[[bytes], list[list[float]]], key: str
    ) -> None:
        self._url = url
        self._model = model
        self._rows = rows
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self.dimension = 0  # unknown until the first vector
        self.dimension = int(self.embed(["dimension"], asking=True).shape[1])
        self.identity = f"{model}/{self.dimension}/{EMBEDDED_FORM}"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        starts = range(0, len(texts), TEXTS_PER_REQUEST)
        batches = [texts[start : start + TEXTS_PER_REQUEST] for start in starts]
        if not batches:
            return np.zeros((0, self.dimension), np.float32)
        # A question is not retried: its search does not wait, and answers without the vector.
        embed = partial(self._embed_batch, delays=() if asking else RETRY_DELAYS_S)
        if len(batches) == 1:
            return embed(batches[0])
        with ThreadPoolExecutor(MAX_REQUESTS) as pool:
            return np.concatenate(list(pool.map(embed, batches)))

    def _embed_batch(self, texts: Sequence[str], delays: Sequence[float]) -> "Vectors":
        reply = self._post({"model": self._model, "input": [text or " " for text in texts]}, delays)
        try:
            with np.errstate(over="ignore"):  # a number that is too large becomes infinite
                rows = np.asarray(self._rows(reply), np.float32)
        except (DecodeError, ValidationError, ValueError) as exc:
            raise EmbedderError(
                f"{self._url} did not return vectors ({exc}); check the URL and the model"
            ) from exc
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.size:
            raise EmbedderError(f"{self._url} returned {len(rows)} vectors for {len(texts)} texts")
        if not np.isfinite(rows).all() or not rows.any(axis=1).all():
            raise EmbedderError(
                f"{self._url} returned vectors that are not numbers or have no direction"
            )
        if self.dimension and rows.shape[1] != self.dimension:
            change = f"from {self.dimension} to {rows.shape[1]} numbers"
            raise EmbedderError(
                f"{self._url} changed its vectors {change}; everything will be embedded again"
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-12), np.float32)

    def _post(self, body: dict[str, Any], delays: Sequence[float]) -> bytes:
        """Return the reply. Raise EmbedderError.

        While the server is unavailable, try again after each delay.
        """
        request = Request(self._url, json.encode(body), self._headers)
        for delay in delays:
            try:
                return self._send(request)
            except _Unavailable:
                time.sleep(delay * random.uniform(0.5, 1.0))
        return self._send(request)

    def _send(self, request: Request) -> bytes:
        try:
            with _opener.open(request, timeout=TIMEOUT_S) as reply:
                return bytes(reply.read())
        except HTTPError as exc:
            text = exc.read(300).decode(errors="replace")
            kind = _Unavailable if exc.code in _TEMPORARY else EmbedderError
            raise kind(f"{self._url} refused the request ({exc.code}): {text}") from exc
        except (URLError, OSError, HTTPException) as exc:
            raise _Unavailable(
                f"{self._url} cannot be reached ({getattr(exc, 'reason', exc)}); "
                "is the server running?"
            ) from exc


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: urllib would send the key to the host that the answer names."""

    def redirect_request(self, *args: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


class _Unavailable(EmbedderError):
    """The same request may work a little later."""


def _ollama_rows(reply: bytes) -> list[list[float]]:
    return json.decode(reply, type=_OllamaReply).embeddings


def _openai_rows(reply: bytes) -> list[list[float]]:
    rows = json.decode(reply, type=_OpenAiReply).data
    return [row.embedding for row in sorted(rows, key=lambda row: row.index)]
