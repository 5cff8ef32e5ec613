"""Threads that run what the event loop must not wait for, and bring the results back to it.

An executor, a future and two wake-ups of the loop for each call cost twice as much processor time
as this queue: results that are ready together share one wake-up.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

from polymnia.telemetry import carry

T = TypeVar("T")


class Job:
    """A function to run, what it returned or raised, and what to call then on the event loop."""

    __slots__ = ("done", "failure", "result", "work")

    def __init__(self, work: Callable[[], Any], done: Callable[["Job"], None]) -> None:
        self.work = work
        self.done = done
        self.result: Any = None
        self.failure: BaseException | None = None

    def __enter__(self) -> None:
        """Keep what the block raises: it belongs to the caller, not to the thread."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self.failure = failure
        return True


class Workers:
    """A queue and its threads. All methods are called on the event loop.

    Threads that compute compete for the interpreter's lock, so there are `usual` of them, and a
    further one when a job has waited for a while: the others may wait for a disk, or for one
    another.
    """

    # How long a job waits for one of the usual threads.
    PATIENCE_S = 0.02

    def __init__(self, name: str, *, usual: int, limit: int) -> None:
        self._name = name
        self._usual = usual
        self._limit = limit
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        # Threads that were started and not told to end.
        self._count = 0
        self._finished: deque[Job] = deque()
        self._is_waking = False
        # Jobs that were submitted, and those of them that have not come back.
        self._submitted = 0
        self._open = 0
        self._growth: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Callable[[], Any], done: Callable[[Job], None]) -> None:
        """Run `work` on a thread, then `done` on the event loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._submitted += 1
        self._open += 1
        self._queue.put(Job(carry(work), done))
        if self._count < min(self._open, self._usual):
            self._start_thread()
        elif self._open > self._count and self._growth is None:
            self._watch()

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Return a future of what `work` returns."""
        future = asyncio.get_running_loop().create_future()
        self.submit(work, partial(_settle, future))
        return future

    def close(self) -> None:
        """End the threads after their jobs. Called when the event loop has ended."""
        self._end_threads(self._count)
        for thread in self._threads:
            thread.join()

    def _start_thread(self) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = Thread(target=self._work, name=self._name)
        self._threads.append(thread)
        self._count += 1
        thread.start()

    def _end_threads(self, count: int) -> None:
        for _ in range(count):
            self._queue.put(None)
        self._count -= count

    def _watch(self) -> None:
        """Look again after a while whether the jobs that are queued now still wait."""
        assert self._loop is not None
        self._growth = self._loop.call_later(self.PATIENCE_S, self._grow, self._submitted)

    def _grow(self, submitted: int) -> None:
        """Start a thread if one of the first jobs, up to that number, has waited all the time."""
        self._growth = None
        if self._submitted - self._queue.qsize() < submitted and self._count < self._limit:
            self._start_thread()
        if self._open > self._count:
            self._watch()

    def _work(self) -> None:
        assert self._loop is not None
        while (job := self._queue.get()) is not None:
            with job:
                job.result = job.work()
            # First the result, then the look at the flag. `_deliver` does it the other way round,
            # so no result is overlooked.
            self._finished.append(job)
            if not self._is_waking:
                self._is_waking = True
                with suppress(RuntimeError):  # the loop did not wait for this job any longer
                    self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Hand over the results that are ready."""
        assert self._loop is not None
        self._is_waking = False
        try:
            while self._finished:
                job = self._finished.popleft()
                self._open -= 1
                job.done(job)
        finally:
            if self._finished:  # the failure of one must not hold up the others
                self._loop.call_soon(self._deliver)
        if not self._open and self._count > self._usual:
            self._end_threads(self._count - self._usual)


def _settle(future: "asyncio.Future[Any]", job: Job) -> None:
    if future.done():
        return  # the task that waited was cancelled
    if job.failure is not None:
        future.set_exception(job.failure)
    else:
        future.set_result(job.result)
