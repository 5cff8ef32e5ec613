"""A server in its own process, the calls to send over its pipes, and what its replies contain."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.json import decode, encode

from tests.processes import polymnia_command


class ServerProcess:
    """`polymnia serve` with the reference dialect and the store at that path."""

    def __init__(self, store: Path) -> None:
        command = polymnia_command("serve", "--dialect", "reference", "--store", str(store))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, calls: Iterable[bytes]) -> None:
        """Write the calls without waiting for replies.

        Calls and replies must each fit into a pipe (64 KiB).
        """
        self._input.write(b"".join(calls))
        self._input.flush()

    def replies(self, count: int) -> list[dict[str, Any]]:
        """Return the next replies; fewer if the server ends first."""
        lines = [self._output.readline() for _ in range(count)]
        return _decode_complete(lines)

    def ask(self, call: bytes) -> dict[str, Any]:
        """Send one call and return its result."""
        self.send([call])
        result: dict[str, Any] = self.replies(1)[0]["result"]
        return result

    def kill(self) -> list[dict[str, Any]]:
        """Kill the server and return the replies that were not read yet."""
        self._process.kill()
        self._process.wait()
        return _decode_complete(self._output.read().splitlines(keepends=True))

    def close(self) -> int:
        """Close the server's input, wait until it has ended and return its exit status."""
        self._input.close()
        self._output.read()
        self._output.close()
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self.close()


def tool_call(tool: str, arguments: dict[str, Any], identifier: int = 1) -> bytes:
    """Return the line that calls a tool."""
    params = {"name": tool, "arguments": arguments}
    return (
        encode({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params})
        + b"\n"
    )


def creation(name: str, facts: Sequence[str] = (), identifier: int = 1) -> bytes:
    """Return the line that creates one entity."""
    entity = {"name": name, "entityType": "thing", "observations": facts}
    return tool_call("create_entities", {"entities": [entity]}, identifier)


def is_error(reply: dict[str, Any]) -> bool:
    """Tell whether the reply is anything but a tool's success."""
    return "result" not in reply or bool(reply["result"].get("isError"))


def text_of(result: dict[str, Any]) -> str:
    """Return the text of a result, which the model reads."""
    return str(result["content"][0]["text"])


def names_in(result: dict[str, Any]) -> list[str]:
    """Return the names of the entities in a result."""
    return [entity["name"] for entity in result["structuredContent"]["entities"]]


def _decode_complete(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Decode the complete lines; a killed server may have written half of one."""
    return [decode(line, type=dict[str, Any]) for line in lines if line.endswith(b"\n")]
