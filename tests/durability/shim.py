"""Build `shim.c` and control it: fail or record the calls of this process on files of one
directory.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir

import apsw

_SOURCE = Path(__file__).with_name("shim.c")
# The status of a process that ended at the call it was told to.
CRASHED = 86


def why_not() -> str:
    """Return why this machine cannot use the shim; nothing if it can."""
    if sys.platform != "linux" or os.confstr("CS_GNU_LIBC_VERSION") is None:
        return "the shim needs Linux with the GNU C library"
    if shutil.which("cc") is None:
        return "no C compiler: install gcc and libc6-dev"
    return ""


def run_with_shim(module: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a module of Python in a process with the shim, and return its output."""
    environment = {**os.environ, "LD_PRELOAD": str(_build())}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def restart_with_shim(module: str, arguments: list[str]) -> None:
    """Replace this process by one with the shim, unless it has it already."""
    if not hasattr(ctypes.CDLL(None), "shim_watch"):
        os.environ["LD_PRELOAD"] = str(_build())
        os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


def _build() -> Path:
    """Compile the shim, once for each version of its source."""
    version = f"{_SOURCE.stat().st_mtime_ns:x}-{os.getuid()}"
    library = Path(gettempdir()) / f"polymnia-shim-{version}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(part), str(_SOURCE)]
        subprocess.run(command, check=True)
        part.replace(library)
    return library


class Shim:
    """The shim of this process. What a forked process sets is forgotten with it."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.shim_calls.restype = ctypes.c_long
        self._library.shim_allocations.restype = ctypes.c_long

    @property
    def calls(self) -> int:
        """Return how many calls on watched files were made."""
        return int(self._library.shim_calls())

    @property
    def allocations(self) -> int:
        """Return how many times SQLite asked for memory since `fail_allocation`."""
        return int(self._library.shim_allocations())

    def watch(self, directory: Path) -> None:
        """Count calls on the files below a directory from now on."""
        self._library.shim_watch(bytes(directory.resolve()))

    def fail(self, call: int, error: int) -> None:
        """Fail one call. Error 0 ends the process; ENOSPC lasts until `heal`."""
        self._library.shim_fail(ctypes.c_long(call), error)

    def fail_allocation(self, allocation: int) -> None:
        """Refuse one allocation of SQLite; 0 refuses none and counts them."""
        start, end = self._sqlite
        self._library.shim_fail_allocation(
            ctypes.c_size_t(start), ctypes.c_size_t(end), ctypes.c_long(allocation)
        )

    def heal(self) -> None:
        """Let every later call succeed, if the chosen one has failed."""
        self._library.shim_heal()

    def record(self, descriptor: int) -> None:
        """Write every change of a watched file to a descriptor; `power.py` reads that."""
        self._library.shim_record(descriptor)

    def acknowledge(self, steps: int) -> None:
        """Put into the record that so many steps are acknowledged."""
        self._library.shim_acknowledge(ctypes.c_long(steps))

    @cached_property
    def _sqlite(self) -> tuple[int, int]:
        """The addresses of SQLite's code: it is a part of the driver."""
        bounds = []
        for line in Path("/proc/self/maps").read_text().splitlines():
            if line.endswith(str(apsw.__file__)):
                bounds += [int(address, 16) for address in line.split()[0].split("-")]
        return min(bounds), max(bounds)
