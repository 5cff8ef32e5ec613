"""What the tests need to start processes.

A way to end them with the test run, and to read their log as it grows.
"""

import ctypes
import re
import signal
import sys
from collections.abc import Callable
from threading import Condition, Thread
from typing import IO

# Seconds after which a wait fails its test: only what hangs takes so long, even on a busy machine.
TIMEOUT_S = 120

_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
_LISTENING = re.compile(r"(?:listening on |serving \S+ at http://)(?P<address>\S+:(?P<port>\d+))")


def _kill_with_parent() -> Callable[[], None] | None:
    """Return a function for `Popen(preexec_fn=...)` that has the kernel kill the child when its
    parent dies.

    Without it, a killed test run leaves its HTTP and TCP servers behind. A server on standard input
    needs no such help: its input ends. Only Linux can do this. The parent is the thread that starts
    the child, so start it in a thread that outlives it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


end_with_parent = _kill_with_parent()


def polymnia_command(*arguments: str) -> list[str]:
    """Return the command line of this Polymnia with its arguments."""
    return [sys.executable, "-m", "polymnia", *arguments]


class Log:
    """The standard error of a process, read by a thread as it grows."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._lines: list[str] = []
        self._has_ended = False
        self._grew = Condition()
        self._reader = Thread(target=self._read, args=(pipe,), daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        """Return everything written so far."""
        return "".join(self._lines)

    @property
    def port(self) -> int:
        """Return the port that a server says it listens on."""
        return int(self._listening()["port"])

    @property
    def address(self) -> str:
        """Return the host and port that a server says it listens on."""
        return self._listening()["address"]

    def wait_for(self, *texts: str) -> str:
        """Wait for a line with one of the texts and return it.

        Fail when the log ends without one.
        """
        with self._grew:
            self._grew.wait_for(lambda: self._has_ended or self._find(texts), TIMEOUT_S)
            line = self._find(texts)
        assert line, f"none of {texts} in the log: {self.text}"
        return line

    def join(self) -> None:
        """Wait until the process has closed its standard error."""
        self._reader.join(TIMEOUT_S)

    def _listening(self) -> re.Match[str]:
        found = _LISTENING.search(self.wait_for("serving", "listening"))
        assert found, self.text
        return found

    def _find(self, texts: tuple[str, ...]) -> str | None:
        return next((line for line in self._lines if any(text in line for text in texts)), None)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                with self._grew:
                    self._lines.append(line.decode("utf-8", "replace"))
                    self._grew.notify_all()
        with self._grew:
            self._has_ended = True
            self._grew.notify_all()
