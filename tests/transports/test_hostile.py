"""Hostile and clumsy clients get a clear refusal or cost little, and everyone else is served
meanwhile.
"""

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polymnia.mcp.push import MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS
from tests.processes import TIMEOUT_S
from tests.transports.raw_http import MEGABYTE, head, resident, status_of, wait_until
from tests.transports.running import (
    Legacy,
    Running,
    Talk,
    Web,
    call,
    initialize,
    raw,
    request,
    rest_of,
)

LIMIT = 64 * MEGABYTE
# The addresses of entities in the native dialect begin so.
ENTITY = "polymnia://entity/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with its ordinary bounds."""
    with Running(tmp_path_factory.mktemp("hostile") / "memory.db", "--also", "native") as running:
        yield running
        assert "Traceback" not in running.log
        assert running.stop() == 0


@pytest.fixture
def port(server: Running) -> Iterator[int]:
    """The server's port; after every test it still serves."""
    yield server.port
    with Web(server.port) as web:
        assert web.post(initialize()).status == 200


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Running]:
    """A server with timeouts of a second."""
    with Running(tmp_path / "memory.db", program="tests.transports.impatient_server") as running:
        yield running
        assert running.stop() == 0


@pytest.mark.parametrize("path", ["/mcp", "/sse/messages/?session_id=x"])
def test_a_content_length_of_100_megabytes_is_refused_at_once(port: int, path: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(head(path, f"Content-Length: {100 * MEGABYTE}"))
        answer = connection.recv(1 << 16)
    assert status_of(answer) == (413 if path == "/mcp" else 404)


def test_a_client_that_sends_100_megabytes_still_reads_the_refusal(port: int) -> None:
    with Web(port) as web:
        answer = web.send("POST", "/mcp", b" " * (100 * MEGABYTE))
    assert answer.status == 413
    assert f"at most {LIMIT} bytes" in answer.json["error"]["message"]


def test_a_chunked_body_is_refused_at_the_same_size_and_not_kept(
    server: Running, port: int
) -> None:
    before = resident(server.popen.pid)
    chunk = b"100000\r\n" + b" " * MEGABYTE + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(head("/mcp", "Transfer-Encoding: chunked"))
        sent = 0
        try:
            for _ in range(100):
                connection.sendall(chunk)
                sent += 1
            connection.sendall(b"0\r\n\r\n")
        except ConnectionError:
            pass
        answer = rest_of(connection)
    assert sent > LIMIT // MEGABYTE
    assert status_of(answer) == 413
    assert resident(server.popen.pid) - before < 4 * LIMIT


@pytest.mark.parametrize(
    "length", ["-1", "1e3", "0x10", "+5", "99999999999999999999999", "1, 2", ""]
)
def test_an_invalid_content_length_is_refused(port: int, length: str) -> None:
    assert status_of(
        raw(port, head("/mcp", f"Content-Length: {length}", "Connection: close") + b"{}")
    ) in (400, 413)


def test_two_lengths_are_refused(port: int) -> None:
    assert (
        status_of(raw(port, head("/mcp", "Content-Length: 2", "Content-Length: 40") + b"{}")) == 400
    )


def test_a_content_length_with_chunked_encoding_is_refused(port: int) -> None:
    smuggled = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(port, head("/mcp", "Content-Length: 4", "Transfer-Encoding: chunked") + smuggled)
    assert status_of(answer) == 400


def test_a_request_with_too_large_a_head_is_not_handled(server: Running, port: int) -> None:
    body = json.dumps(initialize()).encode()
    padding = [f"X-Padding-{number}: {'x' * 1000}" for number in range(70)]
    answer = raw(port, head("/mcp", *padding, f"Content-Length: {len(body)}") + body)
    assert status_of(answer) == 431
    assert answer.count(b"HTTP/1.1") == 1
    assert b"mcp-session-id" not in answer


def test_a_head_within_the_bound_is_served_however_it_is_split(port: int) -> None:
    body = json.dumps(initialize()).encode()
    padding = [f"X-Padding-{number}: {'x' * 1000}" for number in range(60)]
    data = head("/mcp", *padding, f"Content-Length: {len(body)}", "Connection: close") + body
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), 5000):
            connection.sendall(data[at : at + 5000])
        assert status_of(rest_of(connection)) == 200


@pytest.mark.parametrize(
    "start", [b"GET /mcp HTTP/1.1\r\nX: ", b"GET /", b"GET /mcp HTTP/1.1\r\n", b""]
)
def test_a_head_that_never_ends_is_cut_off_by_its_size(
    server: Running, port: int, start: bytes
) -> None:
    """A header, an address, a list of headers and blank lines are all bounded."""
    before = resident(server.popen.pid)
    piece = {b"": b"\r\n" * 5000, b"GET /mcp HTTP/1.1\r\n": b"X: y\r\n" * 2000}.get(
        start, b"x" * 10_000
    )
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        try:
            connection.sendall(start)
            for _ in range(3000 if start else 50):
                connection.sendall(piece)
            cut_off = False
        except ConnectionError:
            cut_off = True
    assert cut_off or not start
    assert resident(server.popen.pid) - before < 16 * MEGABYTE


def test_an_unfinished_head_times_out(impatient: Running) -> None:
    starts = (b"", b"POST /mcp HT", head()[:-2], b"\r\n")
    with ThreadPoolExecutor(len(starts)) as pool:
        answers = list(pool.map(lambda start: raw(impatient.port, start), starts))
    assert [status_of(answer) for answer in answers] == [408] * len(starts)


def test_an_unfinished_body_times_out(impatient: Running) -> None:
    starts = (
        head("/mcp", "Content-Length: 100") + b"{",
        head("/mcp", "Transfer-Encoding: chunked") + b"5\r\n{",
    )
    with ThreadPoolExecutor(len(starts)) as pool:
        answers = list(pool.map(lambda start: raw(impatient.port, start), starts))
    assert [status_of(answer) for answer in answers] == [408] * len(starts)


def test_blank_lines_between_requests_do_not_keep_a_connection(impatient: Running) -> None:
    body = json.dumps(initialize()).encode()
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(head("/mcp", f"Content-Length: {len(body)}") + body)
        assert status_of(connection.recv(1 << 16)) == 200
        connection.sendall(b"\r\n")
        assert b"200" not in rest_of(connection)


def test_a_slow_call_does_not_time_out_as_a_slow_client(impatient: Running) -> None:
    """A complete request waits as long as its answer takes, also with another behind it."""
    many = [
        {"name": f"e{number}", "entityType": "t", "observations": ["x" * 100] * 10}
        for number in range(8000)
    ]
    talk = Talk(impatient.port)
    body = json.dumps(call("create_entities", entities=many)).encode()
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=TIMEOUT_S) as connection:
        lines = (f"Mcp-Session-Id: {talk.id}", f"Content-Length: {len(body)}")
        connection.sendall(head("/mcp", *lines) + body + b"POST /mcp HTTP/1.1\r\nHost: loc")
        first = connection.recv(1 << 16)
    assert status_of(first) == 200
    talk.close()


NESTED: dict[str, bytes] = {
    "arrays": b"[" * 10_000 + b"]" * 10_000,
    "objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "open": b"[" * 10_000,
    "in parameters": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":'
    + b'{"a":' * 10_000
    + b"1"
    + b"}" * 10_001,
    "in arguments": b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    + b'"params":{"name":"open_nodes","arguments":{"names":'
    + b"[" * 10_000
    + b"]" * 10_000
    + b"}}}",
    "in an id": b'{"jsonrpc":"2.0","method":"ping","id":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
}


@pytest.mark.parametrize("kind", NESTED)
def test_deep_nesting_is_refused(port: int, kind: str) -> None:
    talk = Talk(port)
    answer = talk.send("POST", "/mcp", NESTED[kind])
    assert answer.status in (200, 400)
    assert "error" in answer.json or answer.json["result"]["isError"]
    talk.close()


GARBAGE: dict[str, bytes] = {
    "zeros": b"\x00" * 100,
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a line": b"hello there\r\n\r\n",
    "bytes beyond ASCII": bytes(range(128, 256)) * 10 + b"\r\n\r\n",
    "no version": b"GET /mcp\r\n\r\n",
    "a strange method": b"FROBNICATE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a broken chunk": head("/mcp", "Transfer-Encoding: chunked") + b"zz\r\n",
    "a header without a colon": b"GET /mcp HTTP/1.1\r\nHost localhost\r\n\r\n",
    "a header with a line break": b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
    "a header with a zero": b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_refused(port: int, kind: str) -> None:
    assert status_of(raw(port, GARBAGE[kind])) == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b"\xff\xfe", b"[]", b"null", b"1", b'"x"', b"{}", b"NaN", b" " * 1000],
)
def test_a_body_without_a_message_is_refused(port: int, body: bytes) -> None:
    talk = Talk(port)
    answer = talk.send("POST", "/mcp", body)
    assert answer.status in (400, 202) or "error" in answer.json
    assert talk.ask("ping")["result"] == {}
    talk.close()


def test_pipelined_http_requests_are_answered_in_order(port: int) -> None:
    talk = Talk(port)
    bodies = [json.dumps(request("ping", number)).encode() for number in range(200)]
    parts = [
        head("/mcp", f"Mcp-Session-Id: {talk.id}", f"Content-Length: {len(body)}") + body
        for body in bodies
    ]
    closing = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = raw(port, b"".join(parts) + closing)
    assert [int(item) for item in re.findall(rb'"id":(\d+),"result"', answer)] == list(range(200))
    assert answer.endswith(b"ok\n")
    talk.close()


def test_a_stream_ends_with_its_connection_also_when_another_request_is_behind_it(
    tmp_path: Path,
) -> None:
    program, settings = "tests.transports.impatient_server", {"POLYMNIA_SESSION_MINUTES": "0"}
    with Running(tmp_path / "memory.db", "--metrics", program=program, settings=settings) as server:
        talk = Talk(server.port)
        listen = (
            f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {talk.id}\r\n"
            "Accept: text/event-stream\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as connection:
            connection.sendall(listen.encode())
            assert status_of(connection.recv(1 << 16)) == 200
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(server.port, lambda metrics: "polymnia_sessions 0" in metrics)
        talk.close()


@pytest.mark.parametrize("path", ["/healthz", "/mcp"])
def test_http_1_0_clients_get_a_whole_response_and_the_connection_closes(
    port: int, path: str
) -> None:
    answer = raw(port, f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    assert status_of(answer) == (200 if path == "/healthz" else 400)
    assert b"transfer-encoding" not in answer


def test_http_1_0_clients_get_no_stream(port: int) -> None:
    assert status_of(raw(port, b"GET /sse HTTP/1.0\r\nHost: localhost\r\n\r\n")) == 505
    talk = Talk(port)
    listen = f"GET /mcp HTTP/1.0\r\nHost: localhost\r\nMcp-Session-Id: {talk.id}\r\n\r\n"
    assert status_of(raw(port, listen.encode())) == 406
    talk.close()


def test_an_upgrade_is_refused(port: int) -> None:
    lines = (
        "Upgrade: websocket",
        "Connection: upgrade",
        "Sec-WebSocket-Key: x",
        "Sec-WebSocket-Version: 13",
    )
    start = "".join(f"{line}\r\n" for line in ("GET /mcp HTTP/1.1", "Host: localhost", *lines, ""))
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(start.encode())
        assert status_of(connection.recv(1 << 16)) == 400


@pytest.mark.parametrize("identifier", ["", "x", "0-x", "1-x", "9" * 5000, "../..", "%00"])
def test_an_unknown_session_is_not_found(port: int, identifier: str) -> None:
    with Web(port, **{"Mcp-Session-Id": identifier}) as web:
        for method in ("POST", "GET", "DELETE"):
            answer = web.send(
                method, "/mcp", json.dumps(request("ping")).encode() if method == "POST" else None
            )
            assert answer.status == 404


def test_an_sse_client_that_reads_nothing_may_post_only_so_much(port: int) -> None:
    """Its answers wait on a stream that it does not read; their number is bounded."""
    with Legacy(port) as legacy:
        legacy.ask(initialize())
        statuses = set()
        for number in range(300):
            statuses.add(legacy.post(call("read_graph", number)).status)
        assert statuses <= {202, 429}


def test_subscriptions_of_one_session_are_bounded_in_number(port: int) -> None:
    talk = Talk(port, path="/native/mcp")
    replies = [
        talk.ask("resources/subscribe", uri=f"{ENTITY}{number}")
        for number in range(MAX_SUBSCRIPTIONS + 1)
    ]
    assert all("result" in reply for reply in replies[:-1])
    assert "too many subscriptions" in replies[-1]["error"]["message"]
    assert "result" in talk.ask("resources/subscribe", uri=f"{ENTITY}1")
    talk.close()


def test_subscriptions_of_one_session_are_bounded_in_bytes(port: int) -> None:
    talk = Talk(port, path="/native/mcp")
    replies = [
        talk.ask("resources/subscribe", uri=f"{ENTITY}{number}{'x' * 8000}") for number in range(10)
    ]
    kept = sum("result" in reply for reply in replies)
    assert kept == MAX_SUBSCRIPTION_BYTES // (len(ENTITY) + 8001)
    assert "unsubscribe" in replies[-1]["error"]["message"]
    talk.close()
