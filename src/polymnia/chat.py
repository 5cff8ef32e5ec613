"""Chat models behind HTTP: Ollama, and every server with OpenAI's chat API."""

import re
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from msgspec import DecodeError, Struct, ValidationError, json

from polymnia.errors import ChatModelError, SettingsError

_OLLAMA, _OPENAI = "http://127.0.0.1:11434", "https://api.openai.com/v1"
_KINDS = (
    "`ollama:MODEL`, `openai:MODEL` or either with a server: `ollama:MODEL@http://127.0.0.1:11434`"
)
# A local model may have to be loaded first. No client waits: drafts are written in the background.
CHAT_TIMEOUT_S = 60.0
MAX_REPLY_BYTES = 1 << 20
# What reasoning models write before their answer.
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)


class _Message(Struct):
    content: str


class _OllamaReply(Struct):
    message: _Message


class _Choice(Struct):
    message: _Message


class _OpenAiReply(Struct):
    choices: list[_Choice]


def check_chat_model(url: str) -> None:
    """Raise SettingsError for a URL that names no kind of chat model."""
    scheme, _, model = url.partition(":")
    if url and (scheme not in ("ollama", "openai") or not model.partition("@")[0]):
        raise SettingsError(f"{url!r} is not a chat model; use {_KINDS}")


def open_chat_model(url: str, *, key: str = "") -> "ChatModel":
    """Return the chat model that a URL names. Nothing is sent yet. Raise SettingsError."""
    check_chat_model(url)
    scheme, _, rest = url.partition(":")
    model, _, server = rest.partition("@")
    if scheme == "ollama":
        return ChatModel(f"{(server or _OLLAMA).rstrip('/')}/api/chat", model, _read_ollama, key)
    return ChatModel(
        f"{(server or _OPENAI).rstrip('/')}/chat/completions", model, _read_openai, key
    )


class ChatModel:
    """A language model that another process runs. Safe for several threads."""

    def __init__(self, url: str, model: str, read: Callable[[bytes], str], key: str) -> None:
        self._url = url
        self._model = model
        self._read = read
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )

    def complete(self, instructions: str, text: str) -> str:
        """Return the model's answer, without its reasoning. Raise ChatModelError."""
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        reply = self._post(
            json.encode({"model": self._model, "messages": messages, "stream": False})
        )
        try:
            return _THOUGHTS.sub("", self._read(reply)).strip()
        except (DecodeError, ValidationError, IndexError) as exc:
            raise ChatModelError(
                f"{self._url} did not return an answer ({exc}); check the URL and the model"
            ) from exc

    def _post(self, body: bytes) -> bytes:
        try:
            with urlopen(Request(self._url, body, self._headers), timeout=CHAT_TIMEOUT_S) as reply:
                return bytes(reply.read(MAX_REPLY_BYTES))
        except HTTPError as exc:
            text = exc.read(300).decode(errors="replace")
            raise ChatModelError(f"{self._url} refused the request ({exc.code}): {text}") from exc
        except (URLError, OSError, HTTPException, ValueError) as exc:
            raise ChatModelError(
                f"{self._url} cannot be reached ({exc}); is the server running?"
            ) from exc


def _read_ollama(reply: bytes) -> str:
    return json.decode(reply, type=_OllamaReply).message.content


def _read_openai(reply: bytes) -> str:
    return json.decode(reply, type=_OpenAiReply).choices[0].message.content
