"""A server that speaks the protocols of Anthropic, OpenAI and Gemini models and answers from a
script, for tests.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_USAGE = {"input_tokens": 10, "output_tokens": 5}


class ToolCall(NamedTuple):
    """A call of one of the program's tools, as a step of a script."""

    name: str
    arguments: dict[str, Any]


Step = str | ToolCall


class ModelServer(ThreadingHTTPServer):
    """Answers each request with the next step of its script, the last one for ever.

    It keeps what it was asked.
    """

    daemon_threads = True

    def __init__(self, script: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self._script = list(script)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def prompts(self) -> list[str]:
        """Return what the model was given with each request, as JSON text."""
        return [json.dumps(item, ensure_ascii=False) for item in self.asked]

    def next_step(self, body: dict[str, Any]) -> Step:
        """Return the answer to a request.

        Those without tools are the program's own, such as one for a title.
        """
        with self._lock:
            if not body.get("tools"):
                return "A title"
            self.asked.append(body)
            return self._script.pop(0) if len(self._script) > 1 else self._script[0]


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    do_HEAD = do_GET  # noqa: N815  # the name that the base class calls

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._send("application/json", b'{"input_tokens":10}')
        elif path.endswith("/messages"):
            self._send_events(_anthropic_events(self.server.next_step(body)))
        elif path.endswith("/responses"):
            self._send_events(_openai_events(self.server.next_step(body)))
        elif path.endswith(":streamGenerateContent"):
            answer = json.dumps(_gemini_answer(self.server.next_step(body)))
            self._send("text/event-stream", f"data: {answer}\n\n".encode())
        elif path.endswith(":generateContent"):
            self._send("application/json", json.dumps(_gemini_answer("{}")).encode())
        else:
            self._send("application/json", b"{}")

    def _send_events(self, events: list[dict[str, Any]]) -> None:
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def _anthropic_events(step: Step) -> list[dict[str, Any]]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
    }
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": _USAGE}
    if isinstance(step, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta, reason = {"type": "text_delta", "text": step}, "end_turn"
    else:
        block = {"type": "tool_use", "id": "toolu_1", "name": step.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        reason = "tool_use"
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": _USAGE,
        },
        {"type": "message_stop"},
    ]


def _openai_events(step: Step) -> list[dict[str, Any]]:
    if isinstance(step, str):
        content = [{"type": "output_text", "text": step}]
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "id": "item_1",
            "content": content,
        }
    else:
        item = {"type": "function_call", "id": "item_2", "call_id": "call_1", "name": step.name}
        item["arguments"] = json.dumps(step.arguments)
    usage = {
        **_USAGE,
        "total_tokens": 15,
        "input_tokens_details": None,
        "output_tokens_details": None,
    }
    return [
        {"type": "response.created", "response": {"id": "response_1"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "response_1", "usage": usage}},
    ]


def _gemini_answer(step: Step) -> dict[str, Any]:
    part: dict[str, Any] = {"text": step}
    if isinstance(step, ToolCall):
        part = {"functionCall": {"name": step.name, "args": step.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": usage}


@contextmanager
def serve_model(*script: Step) -> Iterator[ModelServer]:
    """Serve until the block ends."""
    server = ModelServer(script)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
