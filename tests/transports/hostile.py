"""`python3 -m tests.transports.hostile`: hostile clients at full scale, against a server with its
default limits.

Print what each attack cost and what another client experienced meanwhile; test_hostile.py has short
forms.
"""

import argparse
import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread

from polymnia.auth.tokens import file_tokens
from tests.processes import TIMEOUT_S
from tests.transports.raw_http import MEGABYTE, head, resident, status_of
from tests.transports.running import Running, Talk, Web, call, creation, initialize


class Bystander:
    """A client that reads one entity again and again, and records how long each read took and
    whether it failed.
    """

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._over = Event()
        self.times: list[float] = []
        self.failures = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = Thread(target=self._read)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _read(self) -> None:
        while not self._over.wait(0.01):
            began = time.perf_counter()
            answer = self._talk.post(call("open_nodes", names=["0-1"]))
            self.times.append(time.perf_counter() - began)
            self.failures += answer.status != 200


class Target:
    """A server, the session of a bystander, and the token of the hostile client."""

    def __init__(self, server: Running, directory: Path) -> None:
        tokens = file_tokens(directory / "memory.db.tokens")
        self.server = server
        self.token = tokens.create("greedy", can="write")
        self.talk = Talk(server.port, tokens.create("bystander", can="write"))

    def fill(self, megabytes: int) -> None:
        for part in range(megabytes):
            names = [f"{part}-{number}" for number in range(900)]
            self.talk.call("create_entities", **creation(*names, text="x" * 1000))

    def reader(self, *, window: int = 4096) -> socket.socket:
        """Return a connection that has requested the whole graph and has a small receive buffer."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        connection.settimeout(120)
        connection.connect(("127.0.0.1", self.server.port))
        session = Talk(self.server.port, self.token)
        body = json.dumps(call("read_graph")).encode()
        lines = (
            f"Authorization: Bearer {self.token}",
            f"Mcp-Session-Id: {session.id}",
            f"Content-Length: {len(body)}",
        )
        connection.sendall(head("/mcp", *lines) + body)
        session.close()
        return connection


def many_sessions(target: Target) -> str:
    """15,000 sessions of one client; 10,000 are allowed."""
    counts = {200: 0, 503: 0}
    with Web(target.server.port, target.token) as web:
        for _ in range(15_000):
            counts[web.post(initialize()).status] += 1
    return f"{counts[200]} opened, {counts[503]} refused"


def large_bodies(target: Target) -> str:
    """Twenty bodies of 100 MB."""
    statuses = set()
    for _ in range(20):
        with Web(target.server.port, target.token) as web:
            statuses.add(web.send("POST", "/mcp", b" " * (100 * MEGABYTE)).status)
    assert statuses == {413}
    return "all refused with 413"


def idle_connections(target: Target) -> str:
    """1,500 connections that send nothing."""
    with ExitStack() as idle:
        for _ in range(1500):
            idle.enter_context(
                socket.create_connection(("127.0.0.1", target.server.port), timeout=TIMEOUT_S)
            )
        began = time.monotonic()
        last = socket.create_connection(("127.0.0.1", target.server.port), timeout=TIMEOUT_S)
        answer = last.recv(1000)
        last.close()
    assert status_of(answer) == 408
    return f"each disconnected after {time.monotonic() - began:.0f} s"


def readers_at_once(target: Target) -> str:
    """For comparison: fifty clients that request a large response at once and read it."""
    with ThreadPoolExecutor(50) as pool:
        sizes = list(pool.map(lambda _: whole_answer(target.reader(window=MEGABYTE)), range(50)))
    assert len(set(sizes)) == 1
    return f"{sizes[0] / MEGABYTE:.0f} MB each"


def whole_answer(connection: socket.socket) -> int:
    """Read a response to its end, close the connection and return the length of the body."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = connection.recv(1 << 16)
        assert part, "the server sent no response"
        got += part
    start, _, rest = got.partition(b"\r\n\r\n")
    (length,) = [
        int(line.split(b":")[1])
        for line in start.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    ]
    missing = length - len(rest)
    while missing:
        part = connection.recv(min(missing, 1 << 16))
        assert part, "the response was truncated"
        missing -= len(part)
    connection.close()
    return length


def readers_that_do_not_read(target: Target) -> str:
    """Fifty clients that request a large response and read nothing of it."""
    began = time.monotonic()
    with ExitStack() as stack:
        slow = [stack.enter_context(target.reader()) for _ in range(50)]
        with Web(target.server.port) as web:
            while (
                "polymnia_http_requests_open 0\n" not in web.send("GET", "/metrics").body.decode()
            ):
                if time.monotonic() - began > 150:
                    raise AssertionError("they were not disconnected")
                time.sleep(0.5)
        assert len(slow) == 50
    return f"all disconnected after {time.monotonic() - began:.0f} s"


def one_byte_a_second(target: Target) -> str:
    """A client that reads one byte a second of a large response."""
    began = time.monotonic()
    taken = 0
    with target.reader() as slow, Web(target.server.port) as web:
        while (
            "polymnia_http_requests_open 0\n" not in web.send("GET", "/metrics").body.decode()
            or not taken
        ):
            taken += len(slow.recv(1))
            time.sleep(1)
            if time.monotonic() - began > 150:
                raise AssertionError("it was not disconnected")
    return f"disconnected after {time.monotonic() - began:.0f} s and {taken} bytes"


ATTACKS: list[Callable[[Target], str]] = [
    many_sessions,
    large_bodies,
    idle_connections,
    readers_at_once,
    readers_that_do_not_read,
    one_byte_a_second,
]


def run_attack(target: Target, attack: Callable[[Target], str]) -> bool:
    """Run one attack and print what it cost; return whether all other requests were served."""
    before = resident(target.server.popen.pid)
    bystander = Bystander(target.talk)
    with bystander.watching():
        said = attack(target)
    grown = (resident(target.server.popen.pid) - before) / MEGABYTE
    times = sorted(bystander.times)
    print(f"{attack.__doc__}\n    {said}; memory {grown:+.0f} MB")
    print(
        f"    another client: {len(times)} reads, {bystander.failures} failed, "
        f"median {median(times) * 1000:.1f} ms, "
        f"slowest {times[-1] * 1000:.0f} ms",
        flush=True,
    )
    return not bystander.failures


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "attacks", nargs="*", help=f"which: {', '.join(attack.__name__ for attack in ATTACKS)}"
    )
    chosen = options.parse_args().attacks
    with (
        tempfile.TemporaryDirectory() as place,
        Running(Path(place) / "memory.db", "--metrics") as server,
    ):
        target = Target(server, Path(place))
        target.fill(8)
        served = [
            run_attack(target, attack)
            for attack in ATTACKS
            if not chosen or attack.__name__ in chosen
        ]
        stopped = server.stop()
        print(f"stopped with status {stopped}")
    return 0 if all(served) and stopped == 0 and "Traceback" not in server.log else 1


if __name__ == "__main__":
    sys.exit(main())
