"""A real server process, with both ends of its pipes in the test's hands."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from typing import IO, Any

JSON = dict[str, Any]

# A process that takes longer than this to answer or end, in seconds, is killed and the test fails.
PATIENCE = 30
POLYMNIA = (sys.executable, "-m", "polymnia", "serve", "--store")


class Process:
    """A running server. `directory` is where it keeps what it writes, standard error included."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        **settings: str,
    ) -> None:
        self._stderr = directory / "stderr"
        environment = {**os.environ, "POLYMNIA_CONFIG": str(directory / "no.toml"), **settings}
        environment.pop("PYTHONUNBUFFERED", None)  # clients do not set it, and it would hide what stays in buffers
        with self._stderr.open("wb") as stderr:
            self.popen = subprocess.Popen(
                command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=directory, env=environment
            )
        self._watchdog = Timer(PATIENCE, self.popen.kill)
        self._watchdog.start()

    @property
    def stderr(self) -> str:
        """What it has written to standard error so far."""
        return self._stderr.read_text("utf-8", "replace")

    def send(self, *messages: JSON | bytes) -> None:
        """Write the messages, one a line, all at once; bytes go as they are."""
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in messages]
        stdin = _open(self.popen.stdin)
        stdin.write(b"".join(lines))
        stdin.flush()

    def receive(self) -> JSON:
        """The next message; fails when the process ends instead."""
        line = _open(self.popen.stdout).readline()
        assert line.endswith(b"\n"), f"no message but {line!r}; standard error: {self.stderr}"
        message: JSON = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def ask(self, message: JSON) -> JSON:
        """The reply to a message that nothing else is told before."""
        self.send(message)
        return self.receive()

    def rest(self) -> list[JSON]:
        """Everything it says until it closes its output."""
        lines = _open(self.popen.stdout).read().splitlines(keepends=True)
        assert all(line.endswith(b"\n") for line in lines)
        return [json.loads(line) for line in lines]

    def end_input(self) -> None:
        _open(self.popen.stdin).close()

    def stop_listening(self) -> None:
        _open(self.popen.stdout).close()

    def wait(self) -> int:
        """Its exit status; a process that had to be killed has a negative one."""
        return self.popen.wait()

    def end(self) -> None:
        """Kill the process and close its pipes."""
        self.popen.kill()
        self.popen.wait()
        self._watchdog.cancel()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                _close(pipe)


def request(identifier: Any, method: str = "ping", **params: Any) -> JSON:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def call(identifier: Any, name: str, **arguments: Any) -> JSON:
    return request(identifier, "tools/call", name=name, arguments=arguments)


def creation(identifier: Any, name: str) -> JSON:
    """A call that creates an entity of that name."""
    entity = {"name": name, "entityType": "thing", "observations": []}
    return call(identifier, "create_entities", entities=[entity])


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        pass  # what was still to be written has nobody to read it
