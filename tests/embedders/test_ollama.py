"""Ollama over HTTP.

Batches at once, retries, and a memory that survives whatever the server does.
"""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import numpy as np
import pytest

from polymnia.embedders import open_embedder, service
from polymnia.embedders.base import Embedder
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search as searches
from polymnia.engine.semantic import indexer, meaning, perspectives
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.errors import EmbedderError
from polymnia.model import EntityDraft, Perspective
from polymnia.stores import open_store
from tests.embedders.ollama import Fault, Ollama, serve_ollama
from tests.processes import TIMEOUT_S

PAIR = (
    Perspective("general", "{text}", "{query}"),
    Perspective("named", "{name}: {text}", "{query}"),
)


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "RETRY_DELAYS_S", (0.0, 0.0))
    monkeypatch.setattr(indexer, "INDEX_DELAY_S", 0.0)
    monkeypatch.setattr(meaning, "RETRY_AFTER_S", 0.0)


@pytest.fixture
def ollama() -> Iterator[Ollama]:
    with serve_ollama() as running:
        yield running


@pytest.fixture
def embedder(ollama: Ollama) -> Embedder:
    opened = open_embedder(f"ollama:bag@{ollama.url}")
    assert opened is not None
    return opened


def test_a_large_batch_is_sent_in_several_requests_at_once(
    ollama: Ollama, embedder: Embedder
) -> None:
    texts = [f"text {number}" for number in range(embedder.batch_size)]
    ollama.together = threading.Barrier(
        service.MAX_REQUESTS
    )  # no request is answered before all are there
    found = embedder.embed(texts)
    ollama.together = None
    assert ollama.most_at_once == service.MAX_REQUESTS
    assert [len(request) for request in ollama.requests[1:]] == [
        service.TEXTS_PER_REQUEST
    ] * service.MAX_REQUESTS
    assert np.allclose(found[-1], embedder.embed(texts[-1:])[0], atol=1e-6)


def fail_twice(status: int) -> Fault:
    failures = iter([status, status])

    def fault(vectors: list[list[float]]) -> tuple[int, bytes]:
        code = next(failures, 200)
        return code, b'{"error":"busy"}' if code != 200 else msgspec.json.encode(
            {"embeddings": vectors}
        )

    return fault


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(ollama: Ollama, embedder: Embedder, status: int) -> None:
    ollama.fault = fail_twice(status)
    assert embedder.embed(["dog"]).shape == (1, 64)
    assert len(ollama.requests) == 4  # the first one asked for the dimension


def test_a_refused_request_is_not_sent_again(ollama: Ollama, embedder: Embedder) -> None:
    ollama.fault = lambda vectors: (400, b'{"error":"invalid input type"}')
    with pytest.raises(EmbedderError, match=r"refused the request \(400\).*invalid input type"):
        embedder.embed(["dog"])
    assert len(ollama.requests) == 2


def test_a_model_that_is_not_there_is_named(ollama: Ollama) -> None:
    with pytest.raises(EmbedderError, match="not found, try pulling it first"):
        open_embedder(f"ollama:other@{ollama.url}")


def test_a_server_that_is_no_url_is_refused() -> None:
    with pytest.raises(EmbedderError, match="use ollama:bag@http://HOST:PORT"):
        open_embedder("ollama:bag@localhost:11434")


def test_a_password_in_the_url_of_a_server_is_refused_and_not_repeated() -> None:
    with pytest.raises(EmbedderError, match="POLYMNIA_EMBEDDER_KEY") as refused:
        open_embedder("ollama:bag@http://ada:secret@127.0.0.1:1")
    assert "secret" not in str(refused.value)


def repeated(vectors: list[list[float]], value: float) -> bytes:
    return msgspec.json.encode({"embeddings": [[value for _ in row] for row in vectors]})


GARBAGE: dict[str, Fault] = {
    "no JSON": lambda vectors: (200, b"<html>"),
    "no vectors": lambda vectors: (200, b'{"embeddings":[]}'),
    "too few": lambda vectors: (200, msgspec.json.encode({"embeddings": vectors[1:]})),
    "ragged": lambda vectors: (
        200,
        msgspec.json.encode({"embeddings": [vectors[0], *[row[1:] for row in vectors]]}),
    ),
    "not numbers": lambda vectors: (200, repeated(vectors, 1.0).replace(b"1.0", b"null")),
    "too large": lambda vectors: (200, repeated(vectors, 1.0).replace(b"1.0", b"1e39")),
    "without direction": lambda vectors: (200, repeated(vectors, 0.0)),
    "empty": lambda vectors: (200, msgspec.json.encode({"embeddings": [[] for _ in vectors]})),
    "refused": lambda vectors: (400, b'{"error":"bad"}'),
    "failing": lambda vectors: (500, b'{"error":"llama runner process has terminated"}'),
}


@pytest.fixture
def memory(ollama: Ollama, tmp_path: Path) -> Iterator[Memory]:
    store = open_store(str(tmp_path / "memory.db"))
    found = Memory(store, Meaning(SharedEmbedder(f"ollama:bag@{ollama.url}", open_embedder)))
    perspectives.ensure(found, PAIR)
    yield found
    ollama.may_answer.set()
    of(found).close()
    store.close()


def of(memory: Memory) -> Meaning:
    assert memory.meaning is not None
    return memory.meaning


def write(memory: Memory, name: str) -> None:
    entities.create(
        memory, [EntityDraft(name, "person", (f"{name} has a puppy", f"{name} works"))], by="test"
    )


search = partial(searches.entities_by_meaning, query="dog", limit=5, defaults=PAIR)


@pytest.mark.parametrize("kind", GARBAGE)
def test_whatever_the_server_returns_writes_succeed_and_are_embedded_later(
    memory: Memory, ollama: Ollama, kind: str
) -> None:
    write(memory, "Ann")
    assert of(memory).settle(TIMEOUT_S)
    ollama.fault = GARBAGE[kind]
    write(memory, "Ben")
    assert of(memory).settle(TIMEOUT_S)
    assert perspectives.coverage(memory) == 0.5
    assert [word.passage.entity for word in searches.entities_by_words(memory, "ben", limit=5)] == [
        "Ben"
    ]
    with pytest.raises(EmbedderError, match='search by words instead, with the mode "text"'):
        search(memory)
    ollama.fault = None
    of(memory).request_indexing(memory)
    assert of(memory).settle(TIMEOUT_S)
    assert perspectives.coverage(memory) == 1.0
    assert {item.passage.entity for item in search(memory)} == {"Ann", "Ben"}


def test_a_failed_run_is_repeated_by_itself(
    memory: Memory, ollama: Ollama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "RETRY_INDEXING_S", 0.0)
    assert of(memory).settle(TIMEOUT_S)
    done = threading.Event()
    failures = iter(range(8))

    def fault(vectors: list[list[float]]) -> tuple[int, bytes]:
        if next(failures, None) is None:
            ollama.fault = None
        return 500, b"{}"

    def remove_unused(limit: int) -> bool:
        done.set()
        return True

    monkeypatch.setattr(
        memory.store.vectors, "remove_vectors", remove_unused
    )  # the last step of a run
    ollama.fault = fault
    write(memory, "Ann")
    assert done.wait(TIMEOUT_S)
    assert perspectives.coverage(memory) == 1.0


def test_a_slow_server_delays_no_write_and_no_search_by_words(
    memory: Memory, ollama: Ollama
) -> None:
    write(memory, "Ann")
    assert of(memory).settle(TIMEOUT_S)
    ollama.may_answer.clear()
    write(memory, "Ben")
    assert perspectives.coverage(memory) == 0.5
    assert [word.passage.entity for word in searches.entities_by_words(memory, "ben", limit=5)] == [
        "Ben"
    ]
    ollama.may_answer.set()
    assert of(memory).settle(TIMEOUT_S)
    assert perspectives.coverage(memory) == 1.0


def test_a_slow_server_is_not_waited_for_longer_than_allowed(
    memory: Memory, ollama: Ollama, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(memory, "Ann")
    assert of(memory).settle(TIMEOUT_S)
    ollama.may_answer.clear()
    monkeypatch.setattr(searches, "EMBED_TIMEOUT_S", 0.01)
    with pytest.raises(EmbedderError, match="did not answer in time"):
        search(memory)


def test_a_model_that_changed_behind_its_name_is_embedded_with_anew(
    memory: Memory, ollama: Ollama
) -> None:
    write(memory, "Ann")
    assert of(memory).settle(TIMEOUT_S)
    ollama.use_model(32)
    for name in (
        "Ben",
        "Cem",
    ):  # the first run fails and forgets the model, the next one takes the new
        write(memory, name)
        assert of(memory).settle(TIMEOUT_S)
    assert perspectives.coverage(memory) == 1.0
    with memory.reading() as read:
        assert [model.identity for model in read.vectors.models()] == ["bag/32/short-named"]
    assert {item.passage.entity for item in search(memory)} == {"Ann", "Ben", "Cem"}


def test_a_stopped_server_is_caught_up_with_after_it_returns(
    memory: Memory, tmp_path: Path
) -> None:
    with serve_ollama() as stopped:
        port = int(stopped.url.rpartition(":")[2])
    store = open_store(str(tmp_path / "other.db"))
    found = Memory(store, Meaning(SharedEmbedder(f"ollama:bag@{stopped.url}", open_embedder)))
    perspectives.ensure(found, PAIR)
    write(found, "Ann")
    assert of(found).settle(TIMEOUT_S)
    assert perspectives.coverage(found) == 0.0
    with pytest.raises(EmbedderError, match="cannot be reached"):
        search(found)
    with serve_ollama(port):
        of(found).request_indexing(found)
        assert of(found).settle(TIMEOUT_S)
        assert perspectives.coverage(found) == 1.0
        assert [item.passage.entity for item in search(found)] == ["Ann"]
    of(found).close()
    store.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_the_key_stays_with_the_server(
    ollama: Ollama, status: int
) -> None:
    heard: list[str | None] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("Authorization"))
            self.send_error(404)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    class Redirecting(Elsewhere):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Location", f"http://127.0.0.1:{elsewhere.server_port}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere,
        ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as first,
    ):
        for server in (elsewhere, first):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(EmbedderError, match=f"refused the request \\({status}\\)"):
            open_embedder(f"ollama:bag@http://127.0.0.1:{first.server_port}", key="secret")
        for server in (elsewhere, first):
            server.shutdown()
    assert heard == []
