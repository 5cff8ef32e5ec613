"""The load: clients that remember, recall, open, revise, forget and undo in several workspaces."""

from collections.abc import Sequence
from random import Random
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any

from tests.transports.running import Talk

WORKSPACES = ("one", "two", "three")
# So that the memory does not grow: names are used again, and every fact is forgotten.
_NAMES_PER_CLIENT = 50
_CALLS_PER_SESSION = 500


class Load:
    """Threads of clients, and what they have seen so far."""

    def __init__(self, port: int, clients: int) -> None:
        self._port = port
        self._stop = Event()
        self._lock = Lock()
        self._latencies: list[float] = []
        self.calls = 0
        self.problems: list[str] = []
        self._threads = [Thread(target=self._run, args=(number,)) for number in range(clients)]

    def start(self) -> None:
        """Start all clients."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every client finish its call."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def take_latencies(self) -> list[float]:
        """Return the durations of the calls since the last time, in seconds."""
        with self._lock:
            latencies, self._latencies = self._latencies, []
        return latencies

    def _run(self, number: int) -> None:
        try:
            client = _Client(self, number, self._port)
            while not self._stop.is_set():
                client.use_memory()
        except Exception as exc:  # noqa: BLE001  # a client that dies is a problem of the run
            self.problems.append(f"client {number}: {exc!r}")

    def note_call(self, seconds: float) -> None:
        """Count a call."""
        with self._lock:
            self.calls += 1
            self._latencies.append(seconds)


class _Client:
    def __init__(self, load: Load, number: int, port: int) -> None:
        self._load = load
        self._number = number
        self._port = port
        self._random = Random(number)
        self._rounds = 0
        self._calls_left = 0
        self._talk: Talk | None = None

    def use_memory(self) -> None:
        """Remember a fact, use it and forget it again; each reply is checked."""
        self._rounds += 1
        workspace = self._random.choice(WORKSPACES)
        name = f"thing {self._number} {self._random.randrange(_NAMES_PER_CLIENT)}"
        fact = f"fact {self._number}-{self._rounds}: tea and coffee, in that order"
        entity = {"name": name, "type": "thing", "facts": [fact]}
        self._call("remember", workspace, (), entities=[entity])
        self._call("recall", workspace, (), query=f"{name} tea")
        self._call("open", workspace, (fact,), names=[name])
        self._call("revise", workspace, (), name=name, summary=f"round {self._rounds}")
        self._call("history", workspace, (), limit=5)
        self._call("forget", workspace, (), name=name, facts=[fact])
        self._rest(workspace)

    def _rest(self, workspace: str) -> None:
        """Do what happens more rarely."""
        if self._rounds % 10 == 0:
            self._call("review", workspace, ())
        if self._rounds % 25 == 0:
            self._call("briefing", workspace, ())
        if self._talk is not None and self._calls_left <= 0:
            self._talk.send("DELETE", "/mcp")
            self._talk.close()
            self._talk = None

    def _call(self, tool: str, workspace: str, expected: Sequence[str], **arguments: Any) -> None:
        talk = self._session()
        self._calls_left -= 1
        start = perf_counter()
        result = talk.call(tool, workspace=workspace, **arguments)
        self._load.note_call(perf_counter() - start)
        text = str(result["content"])
        if result.get("isError"):
            self._load.problems.append(f"{tool}: {text[:300]}")
        for part in expected:
            if part not in text:
                self._load.problems.append(f"{tool} lacks {part!r}: {text[:300]}")

    def _session(self) -> Talk:
        """Return the session; end it and open another one after some calls."""
        if self._talk is None:
            self._talk = Talk(self._port)
            self._calls_left = _CALLS_PER_SESSION
        return self._talk
