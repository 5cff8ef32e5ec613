"""Requests as bytes, and what the server's metrics and process say, for tests of hostile and slow clients."""

from collections.abc import Callable
from pathlib import Path

from tests.transports.running import Web

MEGABYTE = 1 << 20
_HEAD = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n"


def head(path: str = "/mcp", *lines: str) -> bytes:
    """The head of a POST request with further header lines."""
    return (_HEAD.format(path=path) + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode()


def status_of(answer: bytes) -> int:
    """The status in the first line of a response."""
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer.split(b" ", 2)[1])


def resident(process: int) -> int:
    """The memory of a process in bytes."""
    (line,) = [each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def wait_until(port: int, holds: Callable[[str], bool]) -> None:
    """Ask for the metrics until the condition holds; fail if it never does."""
    with Web(port) as web:
        for _ in range(20_000):
            if holds(web.send("GET", "/metrics").body.decode()):
                return
    raise AssertionError("the condition never held")
