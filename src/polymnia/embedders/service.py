"""Embedders behind HTTP: Ollama, and every server with OpenAI's embeddings API."""

from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
from msgspec import DecodeError, Struct, ValidationError, json

from polymnia.errors import EmbedderError

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

_OLLAMA, _OPENAI = "http://127.0.0.1:11434", "https://api.openai.com/v1"
_TIMEOUT_S = 30.0
_BATCH_SIZE = 64


class _OllamaReply(Struct):
    embeddings: list[list[float]]


class _OpenAiRow(Struct):
    embedding: list[float]
    index: int


class _OpenAiReply(Struct):
    data: list[_OpenAiRow]


def open_service(kind: str, model: str, *, key: str = "") -> "ServiceEmbedder":
    """Open the embedder for `MODEL` or `MODEL@http://server`. Raise EmbedderError if the server does not answer."""
    name, _, server = model.partition("@")
    if kind == "ollama":
        return ServiceEmbedder(f"{server or _OLLAMA}/api/embed", name, _ollama_rows, key)
    return ServiceEmbedder(f"{(server or _OPENAI).rstrip('/')}/embeddings", name, _openai_rows, key)


class ServiceEmbedder:
    """A model that another process runs."""

    def __init__(self, url: str, model: str, rows: Callable[[bytes], list[list[float]]], key: str) -> None:
        self._url = url
        self._model = model
        self._rows = rows
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self.dimension = 0
        self.dimension = int(self.embed(["dimension"]).shape[1])
        self.identity = f"{model}/{self.dimension}"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        batches = [self._embed_batch(texts[start : start + _BATCH_SIZE]) for start in range(0, len(texts), _BATCH_SIZE)]
        return np.concatenate(batches) if batches else np.zeros((0, self.dimension), np.float32)

    def _embed_batch(self, texts: Sequence[str]) -> "Vectors":
        reply = self._post({"model": self._model, "input": [text or " " for text in texts]})
        try:
            rows = np.asarray(self._rows(reply), np.float32)
        except (DecodeError, ValidationError, ValueError) as exc:
            raise EmbedderError(f"{self._url} did not return vectors ({exc}); check the URL and the model") from exc
        if rows.ndim != 2 or len(rows) != len(texts):
            raise EmbedderError(f"{self._url} returned {len(rows)} vectors for {len(texts)} texts")
        if self.dimension and rows.shape[1] != self.dimension:
            change = f"from {self.dimension} to {rows.shape[1]} numbers"
            raise EmbedderError(f"{self._url} changed its vectors {change}; start the server again")
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)

    def _post(self, body: dict[str, Any]) -> bytes:
        request = Request(self._url, json.encode(body), self._headers)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as reply:
                return bytes(reply.read())
        except HTTPError as exc:
            text = exc.read(300).decode(errors="replace")
            raise EmbedderError(f"{self._url} refused the request ({exc.code}): {text}") from exc
        except (URLError, OSError, HTTPException, ValueError) as exc:
            raise EmbedderError(f"{self._url} cannot be reached ({exc}); is the server running?") from exc


def _ollama_rows(reply: bytes) -> list[list[float]]:
    return json.decode(reply, type=_OllamaReply).embeddings


def _openai_rows(reply: bytes) -> list[list[float]]:
    rows = json.decode(reply, type=_OpenAiReply).data
    return [row.embedding for row in sorted(rows, key=lambda row: row.index)]
