"""A small HTTP server that speaks Ollama's embedding protocol, and that tests can stop, slow down
or confuse.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

# Takes the vectors that would be right; returns the status and the body to send instead.
Fault = Callable[[list[list[float]]], tuple[int, bytes]]


class Ollama:
    """The server's state: what it was asked, and what is wrong with it."""

    def __init__(self, dimension: int = 64) -> None:
        self.requests: list[list[str]] = []
        self.most_at_once = 0
        # Set to make the server fail; None makes it work.
        self.fault: Fault | None = None
        self.may_answer = threading.Event()
        self.may_answer.set()
        # If set, requests wait for each other here before they are answered.
        self.together: threading.Barrier | None = None
        self.use_model(dimension)
        self._lock = threading.Lock()
        self._running = 0
        self.url = ""

    def use_model(self, dimension: int) -> None:
        """Answer with vectors of that length from now on."""
        self._model = BagEmbedder(dimension)

    def answer(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        """Return the status and the body for a request."""
        with self._lock:
            self.requests.append(asked["input"])
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            if self.together is not None:
                self.together.wait(TIMEOUT_S)
            self.may_answer.wait(TIMEOUT_S)
            return self._answer(asked)
        finally:
            with self._lock:
                self._running -= 1

    def _answer(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        if asked["model"] != "bag":
            error = {"error": f'model "{asked["model"]}" not found, try pulling it first'}
            return 404, msgspec.json.encode(error)
        # Every text gets a direction, as a real model gives one to an empty text too.
        vectors = [
            [*row[:-1], row[-1] + 0.001] for row in self._model.embed(asked["input"]).tolist()
        ]
        if self.fault is not None:
            return self.fault(vectors)
        reply = {
            "model": "bag",
            "embeddings": vectors,
            "total_duration": 1,
            "load_duration": 1,
            "prompt_eval_count": 1,
        }
        return 200, msgspec.json.encode(reply)


@contextmanager
def serve_ollama(port: int = 0, ollama: Ollama | None = None) -> Iterator[Ollama]:
    """Run the server for the block."""
    state = ollama or Ollama()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = (
                state.answer(asked) if self.path == "/api/embed" else (404, b"404 page not found")
            )
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        state.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
