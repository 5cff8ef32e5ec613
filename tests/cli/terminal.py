"""A real terminal of 80 columns: tmux runs a command line in it and shows what a user would see."""

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.processes import TIMEOUT_S

COLUMNS, ROWS = 80, 60


def screen(line: str, directory: Path, **environment: str) -> list[str]:
    """Run a line of shell in a terminal and return the lines on its screen, without trailing
    blanks.
    """
    tmux = shutil.which("tmux")
    if tmux is None:
        if os.environ.get("CI") == "true":
            pytest.fail("tmux is not on the PATH")
        pytest.skip("tmux is not on the PATH")
    server = [tmux, "-L", f"polymnia-{uuid.uuid4().hex[:12]}", "-f", os.devnull]
    script = directory / f"run-{uuid.uuid4().hex[:8]}.sh"
    python = f"polymnia() {{ '{sys.executable}' -m polymnia \"$@\"; }}\n"
    # `cat` keeps the terminal open until its screen has been read.
    script.write_text(f"{python}{line}\n{' '.join(server)} wait-for -S done\nexec cat\n", "utf-8")
    size = ["-x", str(COLUMNS), "-y", str(ROWS)]
    given = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **environment}
    given.pop("COLUMNS", None)
    try:
        started = [*server, "new-session", "-d", *size, "-c", str(directory), f"bash {script}"]
        subprocess.run(started, env=given, check=True, timeout=TIMEOUT_S)
        subprocess.run([*server, "wait-for", "done"], env=given, check=True, timeout=TIMEOUT_S)
        shown = subprocess.run(
            [*server, "capture-pane", "-p"],
            env=given,
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    finally:
        subprocess.run(
            [*server, "kill-server"], env=given, check=False, capture_output=True, timeout=TIMEOUT_S
        )
    script.unlink()
    return [part.rstrip() for part in shown.stdout.decode().rstrip().split("\n")]
