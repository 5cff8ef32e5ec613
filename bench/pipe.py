"""A server process and the lines that go to and from it."""

import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SILENCE_MS = 180_000
EXIT_SECONDS = 20
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a server: its command, environment and where its stderr goes."""

    title: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path


class Pipe:
    """A started server. Reads and writes block and are not buffered by Python."""

    def __init__(self, launch: Launch) -> None:
        self._process = spawn(launch)
        self._stdin, self._stdout = streams(self._process)
        self._ready = select.poll()
        self._ready.register(self._stdout, select.POLLIN | select.POLLHUP)
        self._buffer = memoryview(bytearray(CHUNK))
        self._rest = b""

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    def write(self, line: bytes) -> None:
        """Send a whole line. Raise OSError if the server is gone."""
        left = memoryview(line)
        while left:
            left = left[os.write(self._stdin.fileno(), left) :]

    def read_line(self) -> bytes:
        """Return the next line. Raise EOFError at the end, TimeoutError after a long silence."""
        parts: list[bytes] = []
        chunk = self._rest or self._read_chunk()
        while (end := chunk.find(b"\n")) < 0:
            parts.append(chunk)
            chunk = self._read_chunk()
        self._rest = chunk[end + 1 :]
        return b"".join((*parts, chunk[:end]))

    def close(self) -> int:
        """End the server as a client does, by closing its stdin. Kill it if it stays.

        Return its exit status.
        """
        self._stdin.close()
        try:
            self._process.wait(timeout=EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
        return self._process.returncode

    def _read_chunk(self) -> bytes:
        if not self._ready.poll(SILENCE_MS):
            raise TimeoutError(f"it was silent for {SILENCE_MS // 1000} s")
        count = os.readv(self._stdout.fileno(), [self._buffer])
        if count == 0:
            raise EOFError("it ended")
        return bytes(self._buffer[:count])


def spawn(launch: Launch) -> subprocess.Popen[bytes]:
    """Start the process. Its stderr is appended to the log."""
    with launch.log.open("ab") as log:
        return subprocess.Popen(
            launch.command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=launch.environment,
        )


def streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return the client's ends of the pipes."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout
