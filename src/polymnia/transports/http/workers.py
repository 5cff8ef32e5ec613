"""Several processes behind one port: started together, replaced when one dies, stopped together."""

import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from msgspec import Struct

from polymnia.errors import PolymniaError, SettingsError

logger = logging.getLogger(__name__)

# A worker that gives up sooner than this after its start, in seconds, so many times in a row, will not do better.
_TOO_SOON = 2.0
_MOST_FAILURES = 3


class Crew(Struct, frozen=True):
    """Which worker this is, and where each takes requests that belong to its sessions."""

    number: int
    places: tuple[str, ...]
    foreman: int

    @property
    def prefix(self) -> str:
        """What the ids of this worker's sessions begin with."""
        return f"{self.number}-"

    @property
    def is_orphaned(self) -> bool:
        """Whether nobody is left who would stop this worker."""
        return os.getppid() != self.foreman


Work = Callable[[list[socket.socket], Crew], None]


def share(number: int, listener: socket.socket, work: Work) -> None:
    """Run so many workers on the socket until a signal asks to stop. Raises SettingsError."""
    if sys.platform == "win32":
        raise SettingsError("several workers are not possible on Windows; start it with one")
    with tempfile.TemporaryDirectory(prefix="polymnia-") as directory:
        places = tuple(str(Path(directory) / f"worker-{each}") for each in range(number))
        _Foreman(places, listener, work).run()


class _Foreman:
    """The process that starts the others and serves nobody itself."""

    def __init__(self, places: tuple[str, ...], listener: socket.socket, work: Work) -> None:
        self._places = places
        self._listener = listener
        self._work = work
        self._workers: dict[int, tuple[int, float]] = {}
        self._failures = Counter[int]()
        self._process = os.getpid()
        self._is_stopping = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for each in range(len(self._places)):
            self._start(each)
        while self._workers:
            self._bury(*os.wait())
        if not self._is_stopping:
            raise SettingsError("no worker could be kept running; the log above says why")

    def _start(self, number: int) -> None:
        process = os.fork()
        if process == 0:
            self._become_worker(number)
        self._workers[process] = (number, time.monotonic())
        if self._is_stopping:  # asked just before it was known
            _terminate(process)

    def _become_worker(self, number: int) -> NoReturn:
        """Work, and end: what the foreman has on its stack is not for this process to clean up."""
        status = 1
        try:
            status = self._labour(number)
        except PolymniaError as exc:
            logger.error("%s", exc)
        finally:
            failure = sys.exc_info()[1]
            if failure is not None:
                logger.error("a worker failed", exc_info=failure)
            logging.shutdown()
            os._exit(status)

    def _labour(self, number: int) -> int:
        """What the new process does; gives its exit status."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        place = self._places[number]
        Path(place).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
            own.bind(place)
            own.listen(128)
            try:
                self._work([self._listener, own], Crew(number, self._places, self._process))
            except SystemExit as exc:
                return int(exc.code or 0)
        return 0

    def _bury(self, process: int, status: int) -> None:
        """A worker has ended: start another in its place, unless it gives up each time."""
        number, started = self._workers.pop(process)
        if self._is_stopping:
            return
        code = os.waitstatus_to_exitcode(status)
        logger.error("worker %d ended with status %d", number, code)
        gave_up = code > 0 and time.monotonic() - started < _TOO_SOON
        self._failures[number] = self._failures[number] + 1 if gave_up else 0
        if self._failures[number] < _MOST_FAILURES:
            self._start(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        for process in list(self._workers):
            _terminate(process)


def _terminate(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
