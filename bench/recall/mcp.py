"""One case written with the tools of the native dialect, turn by turn, and read with `recall`, over
the protocol.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode

from bench.errors import BenchError
from bench.recall.measures import DEPTHS
from bench.recall.questions import Asked, Case, Place, Told
from bench.recall.stage import Ranking
from polymnia.dialects import open_dialect
from polymnia.dialects.base import Client
from polymnia.embedders.base import Embedder
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import Meaning, PendingQuestion, SharedEmbedder
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import OWNER
from polymnia.stores import open_store

_TIMEOUT_S = 60.0
_MAX_TOKENS = 20_000
_DEEPEST = DEPTHS[-1]


class Shown(Struct, frozen=True):
    """What a reply shows: the share of the evidence, how many facts, and in how many tokens."""

    evidence: float
    facts: int
    tokens: float


class PatientMeaning(Meaning):
    """Waits for the embedder as long as it takes: a busy machine must not change the ranking."""

    def ask(self, questions: Sequence[str], *, timeout: float = _TIMEOUT_S) -> PendingQuestion:
        return super().ask(questions, timeout=timeout)


class McpStage:
    """A case in a store, as an agent writes and reads it."""

    def __init__(self, case: Case, folder: Path, embedder: Embedder | None) -> None:
        self._cleanup = ExitStack()
        self._store = open_store(str(folder / f"{case.name}.db"))
        self._cleanup.callback(self._store.close)
        self._labels = self._write(case)
        self.embedding_seconds = 0.0
        self._meaning: Meaning | None = None
        if embedder is not None:
            url = getattr(embedder, "url", "local")  # other models are calibrated
            self._meaning = PatientMeaning(SharedEmbedder(url, lambda url: embedder))
            self._cleanup.callback(self._meaning.close)
            began = perf_counter()
            self._meaning.index(self._store)
            self.embedding_seconds = perf_counter() - began

    def rankings(self) -> dict[str, Ranking]:
        """Every ranking by name, as a function from a question to labels."""
        words = Conversation(Memory(self._store))
        found: dict[str, Ranking] = {
            "through MCP, words alone": lambda question: self._recall(words, question)
        }
        if self._meaning is not None:
            both = Conversation(Memory(self._store, self._meaning))
            found["through MCP, words and meaning"] = lambda question: self._recall(both, question)
        return found

    def close(self) -> None:
        """Stop everything and close the store."""
        self._cleanup.close()

    def replies(self, asked: Sequence[Asked], budget: int) -> Iterator[Shown]:
        """Ask with a budget, as an agent does, and yield what each reply shows."""
        client = Conversation(Memory(self._store, self._meaning))
        for question in asked:
            if not question.answers:
                continue
            reply = client.call("recall", {"query": question.text, "max_tokens": budget})
            labels = self._labels_of(reply)
            evidence = len(question.answers.keys() & labels) / len(question.answers)
            text = "".join(part["text"] for part in reply["content"])
            yield Shown(evidence, len(labels), len(text) / 4)

    def _write(self, case: Case) -> dict[Place, str]:
        """Remember each turn by itself; return the labels of the facts.

        A fact that is known already is not written.
        """
        client = Conversation(Memory(self._store))
        for told in case.told:
            client.call("remember", {"entities": [_entity(told, case.kind)]})
        texts = {(told.entity, told.text): told.label for told in reversed(case.told)}
        with self._store.reading() as read:
            return {
                (entity.name, fact.ordinal): texts.get((entity.name, fact.text), "")
                for entity in read.entities()
                for fact in entity.facts
            }

    def _recall(self, client: "Conversation", question: str) -> list[str]:
        found = client.call(
            "recall", {"query": question, "limit": _DEEPEST, "max_tokens": _MAX_TOKENS}
        )
        return self._labels_of(found)

    def _labels_of(self, reply: Any) -> list[str]:
        items = reply["structuredContent"]["items"]
        return [self._labels.get((item["name"], item.get("fact", 0)), "") for item in items]


class Conversation:
    """A client of the native dialect in this process."""

    def __init__(self, memory: Memory) -> None:
        server = Server(open_dialect("native"), one_workspace(memory))
        self._session = Session(server, client=Client(principal=OWNER, workspace=server.workspace))
        self._asked = 0
        self._request(
            "initialize",
            {"protocolVersion": "2025-11-25", "clientInfo": {"name": "bench", "version": "1"}},
        )

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Return the result of a tool. Raise BenchError if it failed."""
        result = self._call(tool, arguments)
        if result.get("isError"):
            raise BenchError(f"{tool} failed: {result['content']}")
        return result

    def try_call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Return the error of a tool, or nothing if it succeeded."""
        result = self._call(tool, arguments)
        return str(result["content"]) if result.get("isError") else ""

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        meta = {"polymnia/json": True}  # which facts a reply shows
        return self._request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})

    def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        reply = decode(self._session.handle(encode(message)).body or b"null")
        if "error" in reply:
            raise BenchError(f"{method} failed: {reply['error']}")
        return reply["result"]


def _entity(told: Told, kind: str) -> dict[str, Any]:
    when = (
        datetime.fromtimestamp(told.valid_at / 1_000_000, UTC).isoformat() if told.valid_at else ""
    )
    return {"name": told.entity, "type": kind, "facts": [told.text], "when": when}
