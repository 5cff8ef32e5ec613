"""The tests of packages/polymnia-frameworks, in an environment that has the frameworks."""

import os
import subprocess
from pathlib import Path

from tests.interop.install import ROOT, python_with_frameworks


def test_the_frameworks_keep_their_memory_in_polymnia(cache: Path, tmp_path: Path) -> None:
    python = python_with_frameworks(cache)
    process = subprocess.run(
        [str(python), "-m", "pytest", "-q", str(ROOT / "packages" / "polymnia-frameworks")],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.returncode == 0, process.stdout
