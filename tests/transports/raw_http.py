"""HTTP requests as bytes, and what the tests of hostile clients read of a server.

Its memory and its metrics.
"""

import time
from collections.abc import Callable
from pathlib import Path

from tests.processes import TIMEOUT_S
from tests.transports.running import Web

# Seconds between two looks at the metrics: a server does not announce their changes.
METRICS_INTERVAL_S = 0.05
MEGABYTE = 1 << 20

HEAD = (
    "POST {path} HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nAccept: application/json\r\n"
)


def head(path: str = "/mcp", *lines: str) -> bytes:
    """Return the head of a POST with these further header lines."""
    return (HEAD.format(path=path) + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode()


def status_of(answer: bytes) -> int:
    """Return the status code of a response."""
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer.split(b" ", 2)[1])


def resident(process: int) -> int:
    """Return the resident memory of a process in bytes."""
    (line,) = [
        line
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(line.split()[1]) * 1024


def wait_until(port: int, holds: Callable[[str], bool]) -> None:
    """Wait until `holds` is true of the server's metrics; fail after TIMEOUT_S."""
    with Web(port) as web:
        for _ in range(round(TIMEOUT_S / METRICS_INTERVAL_S)):
            metrics = web.send("GET", "/metrics").body.decode()
            if holds(metrics):
                return
            time.sleep(METRICS_INTERVAL_S)
    raise AssertionError(f"the metrics did not come to that: {metrics}")
