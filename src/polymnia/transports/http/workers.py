"""Several processes behind one port: started together, replaced when one dies, stopped together."""

import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from msgspec import Struct

from polymnia.errors import SettingsError

logger = logging.getLogger(__name__)

# A worker that dies sooner than this after its start, in seconds, will not do better the next time.
_TOO_SOON = 2.0


class Crew(Struct, frozen=True):
    """Which worker this is, and where each takes requests that belong to its sessions."""

    number: int
    places: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """What the ids of this worker's sessions begin with."""
        return f"{self.number}-"


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
            os._exit(self._labour(number))
        self._workers[process] = (number, time.monotonic())

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
                self._work([self._listener, own], Crew(number, self._places))
            except SystemExit as exc:
                return int(exc.code or 0)
        return 0

    def _bury(self, process: int, status: int) -> None:
        """A worker has ended: start another in its place, unless it would only die again."""
        number, started = self._workers.pop(process)
        if self._is_stopping:
            return
        logger.error("worker %d ended with status %d", number, os.waitstatus_to_exitcode(status))
        if time.monotonic() - started > _TOO_SOON:
            self._start(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        for process in self._workers:
            os.kill(process, signal.SIGTERM)
