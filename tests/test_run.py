"""Check the test run itself.

Which tests run by default, and that a killed run leaves no server behind.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import TIMEOUT_S, end_with_parent

ROOT = Path(__file__).parent.parent

# A test that starts a server, writes the server's process id to a pipe and then blocks for ever.
BLOCKING_TEST = """
import os, threading
from tests.transports.running import Running

def test_that_blocks(tmp_path):
    with Running(tmp_path / "memory.db", transport={transport!r}) as server:
        os.write(os.open({pipe!r}, os.O_WRONLY), b"%d\\n" % server.popen.pid)
        threading.Event().wait()
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux kills a child together with its parent"
)
@pytest.mark.parametrize("transport", ["http", "tcp"])
@pytest.mark.parametrize("workers", ["0", "1"])
def test_killing_pytest_leaves_no_server_behind(
    tmp_path: Path, workers: str, transport: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    blocking = tmp_path / "test_blocking.py"
    blocking.write_text(BLOCKING_TEST.format(pipe=str(pipe), transport=transport))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-n",
        workers,
        str(blocking),
    ]
    reader = os.open(
        pipe, os.O_RDWR
    )  # for writing too, so that opening it does not wait for the writer
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent
    ) as run:
        assert is_readable(reader)
        server = os.pidfd_open(int(os.read(reader, 100)))
        run.send_signal(signal.SIGKILL)
    assert is_readable(server)  # a process descriptor is readable once the process has ended
    os.close(server)
    os.close(reader)


def is_readable(descriptor: int) -> bool:
    """Wait until the descriptor can be read; return False when it takes too long.

    A worker of xdist needs some seconds to notice that its parent is gone, and many more on a busy
    machine.
    """
    return bool(select.select([descriptor], [], [], 4 * TIMEOUT_S)[0])


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        ((), {"tests/test_settings.py"}),
        (
            ("-m", "slow or interop"),
            {"tests/durability/test_kill.py", "tests/interop/test_vault.py"},
        ),
    ],
    ids=["default", "marked"],
)
def test_a_run_without_paths_leaves_out_marked_tests(
    arguments: tuple[str, ...], selected: set[str]
) -> None:
    assert (
        collected(*arguments)
        & {*selected, "tests/test_settings.py", "tests/durability/test_kill.py"}
        == selected
    )


def test_a_path_selects_marked_tests_too() -> None:
    assert collected("tests/durability/test_kill.py") == {"tests/durability/test_kill.py"}


def collected(*arguments: str) -> set[str]:
    """Return the files from which pytest collects at least one test."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", *arguments]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {line.partition("::")[0] for line in listed.splitlines() if "::" in line}
