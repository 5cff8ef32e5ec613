"""A fault at every step of a file store: fail or stop at the Nth system call, for every N.

`python -m tests.durability.faults` tries all of them and prints the counts; a test tries a sample.
"""

import builtins
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import PolymniaError, StoreStopped
from polymnia.stores import open_store
from polymnia.stores.files.binlog import store as binlog
from tests.behaviour.steps import Step, take

FILES = ("memory.jsonl", "memory.mcpmem")
# What a call fails with. "crash" is the end of the process: no later call has an effect.
FAULTS = {"disk full": errno.ENOSPC, "disk error": errno.EIO, "crash": 0}
_CALLS = ("open", "write", "fsync", "ftruncate", "replace", "rename", "unlink")
_open = open
_LONG = "long " * 30_000
_ME = "a test"
SCRIPT: tuple[Step, ...] = (
    ("create", "a", "b", "tea", _ME),
    ("link", "a", "b", "", _ME),
    ("add", "a", "", _LONG, _ME),
    ("add", "b", "", "coffee", _ME),
    ("rename", "b", "c", "", _ME),
    ("remove", "a", "", _LONG, _ME),
    ("remember", "d", "a", "two words", _ME),
    ("merge", "c", "d", "", _ME),
    ("unlink", "a", "b", "", _ME),
    ("delete", "a", "", "", _ME),
)


class Case(NamedTuple):
    """Which store, what fails, and at which call."""

    file: str
    fault: str
    call: int


class Crash(BaseException):
    """The end of the process, which nothing may catch and survive."""


class FaultyDisk:
    """Counts the calls that reach the disk, and fails one of them; 0 fails none."""

    def __init__(self, fault: str = "", call: int = 0) -> None:
        self._fault = fault
        self._call = call
        self.count = 0

    @property
    def has_failed(self) -> bool:
        return 0 < self._call <= self.count

    def reach(self) -> None:
        """Count a call. Raise OSError if it is the one to fail, Crash if the process is dead."""
        self.count += 1
        if self._fault == "crash" and self.has_failed:
            raise Crash
        if self.count == self._call:
            number = FAULTS[self._fault]
            raise OSError(number, os.strerror(number))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the calls of the operating system during the block."""
        calls = {name: self._wrap(name) for name in _CALLS}
        with patch.multiple(os, **calls), patch.object(builtins, "open", self._open_file):
            yield

    def _wrap(self, name: str) -> Any:
        original = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            try:
                self.reach()
            except BaseException:
                # A full disk or a crash may leave half of the data.
                if name == "write" and self.count == self._call:
                    descriptor, data = arguments
                    original(descriptor, bytes(data)[: len(data) // 2])
                raise
            if name == "fsync":
                return None  # the machine keeps running, so nothing depends on it
            return original(*arguments, **options)

        return call

    def _open_file(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if isinstance(file, int) or not set(mode) & set("xwa+"):
            return _open(file, mode, *arguments, **options)
        raw = _FaultyFile(file, mode.replace("b", ""), opener=options.get("opener"))
        raw.disk = self
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)


class _FaultyFile(io.FileIO):
    disk: FaultyDisk

    def write(self, data: Any) -> int:
        try:
            self.disk.reach()
        except BaseException:
            with suppress(ValueError):
                super().write(bytes(data)[: len(data) // 2])
            raise
        return super().write(data)


def count_calls(file: str) -> int:
    """Return how many calls the script makes when nothing fails."""
    disk = FaultyDisk()
    with TemporaryDirectory() as directory:
        _run(Path(directory) / file, disk)
    return disk.count


def all_cases() -> list[Case]:
    """Return every fault at every call of every store."""
    cases = []
    for file in FILES:
        for call in range(1, count_calls(file) + 1):
            cases += [Case(file, fault, call) for fault in FAULTS]
    return cases


def try_case(case: Case) -> None:
    """Run the script with one fault. Raise AssertionError if the store breaks a promise."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / case.file
        allowed = _run(path, FaultyDisk(case.fault, case.call))
        with _opened(str(path)) as memory:
            assert _graph_of(memory) in allowed, f"{case}: the state is neither old nor new"
            take(memory, ("create", "last", "", "after the fault", _ME))
            after = _graph_of(memory)
        with _opened(str(path)) as memory:
            assert _graph_of(memory) == after, f"{case}: a write after the fault was lost"
            assert memory.store.check() == [], f"{case}: the check finds problems"
        leftovers = [file.name for file in path.parent.iterdir() if file.name.endswith(".tmp")]
        assert leftovers == [], f"{case}: temporary files stay"


def _run(path: Path, disk: FaultyDisk) -> list[object]:
    """Run the script until a fault. Return the states that the store may have afterwards."""
    with patch.object(binlog, "MIN_BYTES_TO_COMPACT", 1000):
        states = _expected_states()
        reached = 0
        with suppress(Crash), disk.installed():
            store = open_store(str(path))
            memory = Memory(store)
            for number, step in enumerate(SCRIPT):
                reached = number
                try:
                    take(memory, step)
                except StoreStopped:  # the disk did not confirm it: it may be there or not
                    return [states[number], states[number + 1]]
                except PolymniaError:
                    # Nothing was changed, for this process and for the next; a retry works.
                    assert _graph_of(memory) == states[number], f"{step} failed and left a trace"
                    take(memory, step)
                assert _graph_of(memory) == states[number + 1], f"{step} was acknowledged"
            store.close()
            return [states[-1]]
        return [states[reached], states[reached + 1]]


def _expected_states() -> list[object]:
    """Return the graphs before, between and after the steps, in a store that cannot fail."""
    with _opened("memory:") as memory:
        states = [_graph_of(memory)]
        for step in SCRIPT:
            take(memory, step)
            states.append(_graph_of(memory))
    return states


@contextmanager
def _opened(url: str) -> Iterator[Memory]:
    with closing(open_store(url)) as store:
        yield Memory(store)


def _graph_of(memory: Memory) -> object:
    """Return what a file holds: the entities with their texts, and the relations."""
    graph = entities.read_all(memory)
    facts = sorted((entity.name, entity.type, entity.texts) for entity in graph.entities)
    return facts, sorted(relation.key for relation in graph.relations)


def main() -> int:
    """Try every fault at every call, and print what fails. Return 1 if anything does."""
    failures = 0
    cases = all_cases()
    for case in cases:
        try:
            try_case(case)
        except AssertionError as exc:
            failures += 1
            print(exc)
    print(f"{len(cases)} faults, {failures} broken promises")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
