"""Traces for OpenTelemetry, as a collector gets them."""

import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.processes import polymnia_command
from tests.transports.running import Running, Talk, call

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "00f067aa0ba902b7"
SECRET = "whispered"


class Collector:
    """An OTLP endpoint that keeps what it gets."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def spans(self) -> list[Any]:
        spans = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans += scope.spans
        return spans


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.server.shutdown()
    started.server.server_close()


def test_a_call_is_a_trace_that_belongs_to_its_caller(tmp_path: Path, collector: Collector) -> None:
    store = str(tmp_path / "memory.db")
    for command in (("remember", "Bob", "likes tea"), ("index", "--embedder", "local")):
        subprocess.run(polymnia_command(*command, "--store", store), check=True)
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    running = Running(
        store,
        "--traces",
        "--embedder",
        "local",
        dialect="native",
        settings=settings,
    )
    with running as server, Talk(server.port) as talk:
        entity = {"name": "Ada", "facts": [f"{SECRET} a name"]}
        message = call("remember", entities=[entity])
        talk.post(message, traceparent=f"00-{TRACE}-{SPAN}-01")
        message = call("recall", query=f"who {SECRET} a name")
        message["params"]["_meta"] = {"traceparent": f"00-{OTHER_TRACE}-{SPAN}-01"}
        talk.post(message)
        talk.call("open", names=[SECRET, 7])
        assert server.stop() == 0

    spans = collector.spans
    by_id = {span.span_id: span for span in spans}

    def path(span: Any) -> list[str]:
        """Return the names of a span and those around it, innermost first."""
        names = [span.name]
        while span.parent_span_id in by_id:
            span = by_id[span.parent_span_id]
            names.append(span.name)
        return names

    of_caller = [span for span in spans if span.trace_id.hex() == TRACE]
    written = [path(span) for span in of_caller if span.name == "remember"]
    assert written == [["remember", "tools/call remember", "POST /mcp"]]
    (request,) = [span for span in of_caller if span.name == "POST /mcp"]
    assert request.parent_span_id.hex() == SPAN

    asked = [path(span) for span in spans if span.trace_id.hex() == OTHER_TRACE]
    assert {names[-1] for names in asked} == {"tools/call recall"}
    assert {names[0] for names in asked} == {"tools/call recall", "store read", "embed"}
    # Neither texts nor queries leave the server.
    assert not [body for body in collector.bodies if SECRET.encode() in body]
