"""A fault at every step of a store: fail, crash or cut the power at the Nth call, for every N.

`python -m tests.durability.faults` tries all of them and prints the counts; `--store`, `--fault`
and `--sample` choose some. A test tries a sample.
"""

import argparse
import errno
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple
from unittest.mock import patch

from polymnia.errors import PolymniaError, StoreStopped
from polymnia.stores.files import binlog
from tests.durability.power import MODELS, Disk, Event, read_events
from tests.durability.shim import CRASHED, Shim, restart_with_shim
from tests.durability.subjects import NAMES, Subject, find_problems, open_subject

# What a call fails with. A crash is the end of the process; a power cut is a crash of the machine.
ERRORS = {"disk full": errno.ENOSPC, "disk error": errno.EIO, "crash": 0}
FAULTS = (*ERRORS, "no memory", "power cut")


class Case(NamedTuple):
    """Which store, what happens to it, and at which call, allocation or event."""

    kind: str
    fault: str
    number: int


class Broken(AssertionError):
    """A store has broken a promise."""


class Report(NamedTuple):
    """What a process said before it ended: the acknowledged steps, and a problem if it had one."""

    acknowledged: int
    problem: str
    was_stopped: bool
    calls: int
    allocations: int


class Trial:
    """A store of one kind, and the states its script leads through."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._shim = Shim()
        self._verified_images: set[tuple[str, int]] = set()
        self.states = self._read_states()

    def _read_states(self) -> list[str]:
        with TemporaryDirectory() as home:
            subject = open_subject(self.kind, Path(home))
            states = [_state_text(subject)]
            for step in subject.steps:
                step()
                states.append(_state_text(subject))
            subject.close()
        return states

    def count(self, fault: str) -> int:
        """Return how many calls, allocations or events can be chosen for the fault."""
        if fault == "power cut":
            return len(self._recording[1]) * len(MODELS)
        with TemporaryDirectory() as home:
            report = self._run(Path(home), "no memory" if fault == "no memory" else "crash", 0)
        _require(not report.problem, f"{self.kind} without a fault: {report.problem}")
        return report.allocations if fault == "no memory" else report.calls

    def try_case(self, fault: str, number: int) -> None:
        """Run the script with one fault. Raise Broken if the store breaks a promise."""
        with TemporaryDirectory() as home:
            report = self._run(Path(home), fault, number)
            _require(not report.problem, report.problem)
            allowed = {report.acknowledged, min(report.acknowledged + 1, len(self.states) - 1)}
            if report.acknowledged == len(self.states) - 1 or not report.was_stopped:
                allowed = {report.acknowledged}
            self.verify(Path(home), allowed, was_killed=fault == "crash")

    @cached_property
    def _recording(self) -> tuple[Path, list[Event]]:
        """Where the script ran once, and what it wrote there, in order."""
        with TemporaryDirectory() as home, TemporaryFile() as record:
            report = self._run(Path(home), "crash", 0, record=record.fileno())
            _require(not report.problem, report.problem)
            record.seek(0)
            return Path(home).resolve(), list(read_events(record.read()))

    def cut_power(self, numbers: set[int]) -> Iterator[tuple[int, str]]:
        """Cut the power after the chosen events. Yield the number of each and what went wrong."""
        home, events = self._recording
        disk = Disk(home)
        acknowledged = 0
        for index, event in enumerate(events):
            disk.apply(event)
            if event.kind == "A":
                acknowledged = event.file
            for model_number, model in enumerate(MODELS):
                number = index * len(MODELS) + model_number
                if number in numbers:
                    yield number, self._cut(disk, model, number, acknowledged)

    def _cut(self, disk: Disk, model: str, number: int, acknowledged: int) -> str:
        with TemporaryDirectory() as home:
            allowed = {acknowledged, min(acknowledged + 1, len(self.states) - 1)}
            image = disk.write_image(Path(home), model, Random(number))
            if (image, acknowledged) in self._verified_images:
                return ""
            self._verified_images.add((image, acknowledged))
            try:
                self.verify(Path(home), allowed, was_killed=True)
            except Broken as exc:
                return f"{model} kept, {acknowledged} acknowledged: {exc}"
        return ""

    def verify(self, home: Path, allowed: set[int], *, was_killed: bool) -> None:
        """Check the store and write to it. Raise Broken."""
        try:
            self._verify(home, allowed, was_killed=was_killed)
        except PolymniaError as exc:
            raise Broken(f"it cannot be used: {exc!r}") from exc

    def _verify(self, home: Path, allowed: set[int], *, was_killed: bool) -> None:
        self._shim.watch(home)  # so that nothing waits for the disk
        # Before the first reply a store may be unfinished. In a binary log doctor reports half a
        # record until the next write.
        if 0 not in allowed and self.kind != "mcpmem":
            self._require_sound(home)
        subject = open_subject(self.kind, home)
        state = _state_text(subject)
        if state not in [self.states[number] for number in allowed]:
            where = [number for number, text in enumerate(self.states) if text == state]
            raise Broken(f"the state is {where or state}, not one of {sorted(allowed)}")
        # After every fault the rest of the script runs as if nothing had happened.
        steps_left = subject.steps[self.states.index(state) :]
        for step in steps_left:
            step()
        subject.close()
        subject = open_subject(self.kind, home)
        _require(_state_text(subject) == self.states[-1], "a write after the fault was lost")
        subject.close()
        self._require_sound(home)
        if steps_left:  # the next writer removes them
            _require_no_leftovers(home, was_killed=was_killed)

    def _require_sound(self, home: Path) -> None:
        problems = find_problems(self.kind, home)
        _require(not problems, f"doctor finds problems: {problems}")

    def _run(self, home: Path, fault: str, number: int, record: int | None = None) -> Report:
        """Run the script in a process of its own, and return what it reported."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _Script(self, home.resolve(), fault, number, writer, record).run_and_exit()
        os.close(writer)
        with open(reader, "rb") as pipe:  # noqa: PTH123  # a descriptor has no path
            lines = [json.loads(line) for line in pipe.read().splitlines()]
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        report = Report(0, "", code == CRASHED, 0, 0)
        for line in lines:
            report = report._replace(**line)
        if code not in (0, CRASHED):
            report = report._replace(problem=report.problem or f"the process ended with {code}")
        return report


class _Script:
    """One run of the script in a forked process."""

    def __init__(
        self, trial: Trial, home: Path, fault: str, number: int, pipe: int, record: int | None
    ) -> None:
        self._trial = trial
        self._home = home
        self._fault = fault
        self._number = number
        self._pipe = pipe
        self._record = record
        self._shim = Shim()

    def run_and_exit(self) -> None:
        try:
            self._run()
        except BaseException:  # noqa: BLE001  # whatever it is, the other process reports it
            self._say(problem=traceback.format_exc())
        os._exit(0)

    def _run(self) -> None:
        self._shim.watch(self._home)
        if self._record is not None:
            self._shim.record(self._record)
        if self._fault == "no memory":
            self._shim.fail_allocation(self._number)
        else:
            self._shim.fail(self._number, ERRORS[self._fault])
        subject = self._open()
        for number, _ in enumerate(subject.steps):
            if not self._take(subject, number):
                self._say(was_stopped=True)
                return
            self._shim.acknowledge(number + 1)
            self._say(acknowledged=number + 1)
        subject.close()
        self._say(calls=self._shim.calls, allocations=self._shim.allocations)

    def _open(self) -> Subject:
        try:
            return open_subject(self._trial.kind, self._home)
        except PolymniaError:
            self._shim.heal()
            return open_subject(self._trial.kind, self._home)

    def _take(self, subject: Subject, number: int) -> bool:
        """Take a step. Return False if the store says that it does not know what the disk has."""
        had_failed = self._has_failed
        try:
            subject.steps[number]()
        except StoreStopped:
            return False
        except PolymniaError as exc:
            self._shim.heal()
            state = _state_text(subject)
            if number in subject.long_steps and state == self._trial.states[number + 1]:
                return True
            _require(
                state == self._trial.states[number] or number in subject.long_steps,
                f"step {number} failed and left a trace: {exc!r}",
            )
            subject.steps[number]()
        if self._has_failed and not had_failed:
            self._shim.heal()
            self._require_state(subject, number + 1, "was acknowledged and is not there")
        return True

    @property
    def _has_failed(self) -> bool:
        reached = self._shim.calls
        if self._fault == "no memory":
            reached = self._shim.allocations
        return 0 < self._number <= reached

    def _require_state(self, subject: Subject, number: int, problem: str) -> None:
        state = _state_text(subject)
        _require(state == self._trial.states[number], f"step {number}: it {problem}")

    def _say(self, **values: object) -> None:
        os.write(self._pipe, json.dumps(values).encode() + b"\n")


def _state_text(subject: Subject) -> str:
    return repr(subject.state())


def _require_no_leftovers(home: Path, *, was_killed: bool) -> None:
    """Raise Broken for a temporary file. A killed backup leaves one beside the copy it was for."""
    for path in home.rglob("*"):
        is_of_backup = ".new" in path.suffixes
        is_temporary = path.suffix in (".tmp", ".part") or is_of_backup
        _require(not is_temporary or (is_of_backup and was_killed), f"{path.name} stays")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise Broken(problem)


def try_all(kind: str, fault: str, sample: int, seed: int) -> tuple[int, list[str]]:
    """Try a fault at every call of a store, or at some. Return how many, and what is broken."""
    trial = Trial(kind)
    numbers = list(range(1, trial.count(fault) + 1))
    if fault == "power cut":
        numbers = list(range(trial.count(fault)))
    if sample:
        numbers = Random(f"{seed} {kind} {fault}").sample(numbers, min(sample, len(numbers)))
    problems = []
    if fault == "power cut":
        for number, problem in trial.cut_power(set(numbers)):
            if problem:
                problems.append(f"{Case(kind, fault, number)}: {problem}")
        return len(numbers), problems
    for number in numbers:
        try:
            trial.try_case(fault, number)
        except Broken as exc:
            problems.append(f"{Case(kind, fault, number)}: {exc}")
    return len(numbers), problems


def main(arguments: list[str] | None = None) -> int:
    """Try every fault at every call, and print what fails. Return 1 if anything does."""
    arguments = sys.argv[1:] if arguments is None else arguments
    restart_with_shim("tests.durability.faults", arguments)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=NAMES, action="append")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--sample", type=int, default=0, help="how many numbers of each to try")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    logging.disable()  # what a fault makes a store log is expected
    broken = 0
    # So that the binary log is compacted during the script.
    with patch.object(binlog, "MIN_BYTES_TO_COMPACT", 1000):
        for kind in options.store or NAMES:
            for fault in options.fault or FAULTS:
                count, problems = try_all(kind, fault, options.sample, options.seed)
                broken += len(problems)
                print(
                    f"{kind}, {fault}: {count} tried, {len(problems)} broken promises", flush=True
                )
                print("".join(f"{problem}\n" for problem in problems), end="", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
