"""Run threads one at a time, in an order that a seed decides, with a clock of its own.

A thread gives up its turn where it takes a lock, waits for an event or for another writer, sleeps,
and before every SQL statement. Nothing else runs meanwhile, so that a seed always gives the same
order.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import apsw

import polymnia.disk.lock
import polymnia.engine.history.trash
import polymnia.engine.history.undo
import polymnia.stores.clock
import polymnia.stores.sqlite.commit
import polymnia.stores.sqlite.connection
import polymnia.stores.sqlite.vector_index
import polymnia.stores.versioned.vectors
from polymnia.disk.lock import _try_lock
from polymnia.errors import StoreBusy

_START_US = 1_800_000_000_000_000
_MAX_STEP_US = 50
_MAX_JUMP_US = 20_000_000
_JUMPS_PER_TURN = 0.001
# A run that takes more turns than this does not end.
_MAX_TURNS = 200_000
# How often SQLite asks for a lock before it gives up.
_MAX_ATTEMPTS = 20_000


class Deadlock(BaseException):
    """All threads wait for one another, or go round in circles. No handler may catch it."""


class _Task:
    def __init__(self, name: str) -> None:
        self.name = name
        self.turn = threading.Semaphore(0)
        self.is_ready: Callable[[], bool] | None = None
        self.deadline: int | None = None


class Scheduler:
    """The order of the turns, and the clock in microseconds."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._switches = self._random.choice((0.1, 0.5, 0.9))
        self._tasks: list[_Task] = []
        self._current: _Task | None = None
        self._end = threading.Event()
        self._elapsed_us = 0
        self._offset_us = 0
        self._turns = 0
        self._is_stuck = False
        self.failures: list[tuple[str, BaseException]] = []

    def run(self, functions: Mapping[str, Callable[[], object]]) -> None:
        """Run the functions to their ends. What they raise is in `failures`."""
        for name, function in functions.items():
            task = _Task(name)
            self._tasks.append(task)
            threading.Thread(target=self._live, args=(task, function), daemon=True).start()
        self._hand_over()
        self._end.wait()

    def pause(self) -> None:
        """Let another thread have its turn, perhaps."""
        self.wait_until(None)

    def wait_until(
        self, is_ready: Callable[[], bool] | None, timeout_us: int | None = None
    ) -> bool:
        """Give up the turn until something is true. Return False if the time is over first."""
        task = self._current
        if task is None or threading.current_thread().name != task.name:
            return is_ready is None or is_ready()  # before or after the threads
        self._tick()
        if is_ready is None and self._random.random() > self._switches:
            return True
        task.is_ready = is_ready
        task.deadline = None if timeout_us is None else self._elapsed_us + timeout_us
        self._hand_over()
        task.turn.acquire()
        if self._is_stuck:
            raise Deadlock(task.name)
        result = is_ready is None or is_ready()
        task.is_ready, task.deadline = None, None
        return result

    def now_us(self) -> int:
        """Return the time of the day, which jumps back and forth."""
        return _START_US + self._elapsed_us + self._offset_us

    def monotonic(self) -> float:
        """Return the time that never goes back, in seconds."""
        return self._elapsed_us / 1e6

    def sleep(self, seconds: float) -> None:
        """Wait, without waiting."""
        self.wait_until(lambda: False, int(seconds * 1e6))

    def _live(self, task: _Task, function: Callable[[], object]) -> None:
        threading.current_thread().name = task.name
        task.turn.acquire()
        try:
            function()
        except BaseException as exc:  # noqa: BLE001  # the run reports it
            self.failures.append((task.name, exc))
        self._tasks.remove(task)
        self._current = None
        self._hand_over()

    def _tick(self) -> None:
        self._turns += 1
        self._elapsed_us += self._random.randint(1, _MAX_STEP_US)
        if self._random.random() < _JUMPS_PER_TURN:
            self._offset_us += self._random.randint(-_MAX_JUMP_US, _MAX_JUMP_US)
        if self._turns > _MAX_TURNS:
            self._is_stuck = True

    def _hand_over(self) -> None:
        if not self._tasks:
            self._end.set()
            return
        ready = [task for task in self._tasks if self._is_ready(task)]
        if not ready:
            ready = self._skip_time()
        self._current = self._random.choice(ready or self._tasks)
        self._current.turn.release()

    def _is_ready(self, task: _Task) -> bool:
        is_over = task.deadline is not None and task.deadline <= self._elapsed_us
        return self._is_stuck or is_over or task.is_ready is None or task.is_ready()

    def _skip_time(self) -> list[_Task]:
        """Go on to the next deadline, as no thread has anything to do before."""
        deadlines = [task.deadline for task in self._tasks if task.deadline is not None]
        if not deadlines:
            self._is_stuck = True
            return self._tasks
        self._elapsed_us = min(deadlines)
        return [task for task in self._tasks if self._is_ready(task)]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace locks, waits, clocks and connections of the stores during the block."""
        sqlite = polymnia.stores.sqlite
        versioned = polymnia.stores.versioned
        lock = partial(_ScheduledLock, self)
        event = partial(_ScheduledEvent, self)

        def time_ns() -> int:
            return self.now_us() * 1000

        replacements: list[tuple[Any, str, object]] = [
            (apsw, "Connection", _connection_class(self)),
            (sqlite.commit, "threading", SimpleNamespace(Lock=lock, Event=event)),
            (sqlite.vector_index, "Lock", lock),
            (sqlite.connection, "sleep", self.sleep),
            (sqlite.connection, "monotonic", self.monotonic),
            (polymnia.disk.lock, "_wait_for_lock", self._wait_for_file_lock),
            (polymnia.stores.clock, "time_ns", time_ns),
            (versioned.vectors, "time_ns", time_ns),
            (polymnia.engine.history.trash, "time", lambda: self.now_us() / 1e6),
        ]
        with ExitStack() as stack:
            for home, name, value in replacements:
                stack.enter_context(patch.object(home, name, value))
            yield

    def _wait_for_file_lock(self, descriptor: int, timeout: float) -> None:
        if not self.wait_until(lambda: _try_lock(descriptor), int(timeout * 1e6)):
            raise StoreBusy("another thread has the lock")


class _ScheduledLock:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._scheduler.pause()
        if self._is_held and blocking:
            limit = int(timeout * 1e6) if timeout >= 0 else None
            self._scheduler.wait_until(lambda: not self._is_held, limit)
        if self._is_held:
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        assert self._is_held
        self._is_held = False
        self._scheduler.pause()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


class _ScheduledEvent:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._scheduler.pause()

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        limit = None if timeout is None else int(timeout * 1e6)
        return self._scheduler.wait_until(lambda: self._is_set, limit)


def _connection_class(scheduler: Scheduler) -> type[apsw.Connection]:
    """Return a class of connections that give up their turn before each statement."""

    class ScheduledConnection(apsw.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_exec_trace(self._trace)

        def set_busy_timeout(self, milliseconds: int) -> None:
            self.set_busy_handler(self._wait)

        def _trace(self, cursor: object, sql: str, bindings: object) -> bool:
            scheduler.pause()
            return True

        def _wait(self, attempts: int) -> bool:
            scheduler.pause()
            return attempts < _MAX_ATTEMPTS

    return ScheduledConnection
