"""A server that speaks the chat protocols of Ollama and OpenAI, for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class ChatServer(ThreadingHTTPServer):
    """Answers with the facts it was given, once it is released. It keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.released = threading.Event()
        self.released.set()
        self.garbage: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        self.server.keys.append(self.headers["Authorization"])
        self.server.released.wait()
        status, reply = 200, self._reply(body)
        if body["model"] == "missing":
            status, reply = 404, b"no such model"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(reply)

    def _reply(self, body: dict[str, Any]) -> bytes:
        if self.server.garbage is not None:
            return self.server.garbage
        message = {
            "role": "assistant",
            "content": f"<think>hm</think>\nDraft: {body['messages'][-1]['content']}",
        }
        paths = {
            "/api/chat": {"message": message},
            "/v1/chat/completions": {"choices": [{"message": message}]},
        }
        return msgspec.json.encode(paths.get(self.path, {}))

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def serve_chat() -> Iterator[ChatServer]:
    """Serve until the block ends."""
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
