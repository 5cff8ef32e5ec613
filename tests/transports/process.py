"""A real server process whose pipes the test reads and writes."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from typing import IO, Any

from tests.processes import TIMEOUT_S, Log, end_with_parent, polymnia_command

JSON = dict[str, Any]

POLYMNIA = polymnia_command("serve", "--dialect", "reference", "--store")


class Process:
    """A running server.

    `directory` is its working directory; a watchdog kills it after `lifetime_s`.
    """

    lifetime_s: float = TIMEOUT_S

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        **settings: str,
    ) -> None:
        environment = {**os.environ, "POLYMNIA_CONFIG": str(directory / "no.toml"), **settings}
        environment.pop(
            "PYTHONUNBUFFERED", None
        )  # clients do not set it, and it would hide what stays in buffers
        self.popen = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=environment,
            preexec_fn=end_with_parent,
        )
        self.log = Log(self.popen.stderr)
        self._watchdog = Timer(self.lifetime_s, self.popen.kill)
        self._watchdog.start()

    @property
    def stderr(self) -> str:
        """Return what the server has written to standard error so far."""
        return self.log.text

    def send(self, *messages: JSON | bytes) -> None:
        """Write the messages at once, one a line; bytes are written as they are."""
        lines = [
            message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            for message in messages
        ]
        stdin = _open(self.popen.stdin)
        stdin.write(b"".join(lines))
        stdin.flush()

    def receive(self) -> JSON:
        """Return the next message; fail when the process ends instead."""
        line = _open(self.popen.stdout).readline()
        assert line.endswith(b"\n"), f"no message but {line!r}; standard error: {self.stderr}"
        message: JSON = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def ask(self, message: JSON) -> JSON:
        """Send a message and return the next message, which must be its reply."""
        self.send(message)
        return self.receive()

    def rest(self) -> list[JSON]:
        """Return all messages until the server closes its output."""
        lines = _open(self.popen.stdout).read().splitlines(keepends=True)
        assert all(line.endswith(b"\n") for line in lines)
        return [json.loads(line) for line in lines]

    def end_input(self) -> None:
        _open(self.popen.stdin).close()

    def stop_listening(self) -> None:
        _open(self.popen.stdout).close()

    def wait(self) -> int:
        """Wait until the process has ended and return its exit status, which is negative when it
        was killed.
        """
        status = self.popen.wait()
        self.log.join()
        return status

    def end(self) -> None:
        """Kill the process and close its pipes, in any state that the test left it in."""
        self.popen.kill()
        self.wait()
        self._watchdog.cancel()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                _close(pipe)


def request(identifier: Any, method: str = "ping", **params: Any) -> JSON:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def call(identifier: Any, name: str, **arguments: Any) -> JSON:
    return request(identifier, "tools/call", name=name, arguments=arguments)


def creation(identifier: Any, name: str) -> JSON:
    """Return a call that creates an entity of that name."""
    entity = {"name": name, "entityType": "thing", "observations": []}
    return call(identifier, "create_entities", entities=[entity])


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        pass  # the rest of the buffer is not read
