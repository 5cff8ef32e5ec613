"""Check that the gate runs failed tests again: tests/rerun.py, with real runs of pytest."""

import subprocess
import sys
from pathlib import Path

from tests.rerun import known_flaky

ROOT = Path(__file__).parent.parent

# The first test is flaky: it passes when its file exists, and leaves the file behind.
FLAKY = """
from pathlib import Path

def test_that_is_flaky():
    marker = Path(__file__).with_name("marker")
    failed_before = marker.exists()
    marker.touch()
    assert failed_before

def test_that_passes():
    pass
"""
BROKEN = """
def test_that_is_broken():
    assert False
"""


def run_twice(directory: Path) -> tuple[int, str]:
    """Run pytest on a directory and its failed tests again, as .ci/run does."""
    command = f"{sys.executable} -m pytest -n 2 || {sys.executable} -m tests.rerun $?"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_flaky_test_is_named_and_passes_the_gate(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    status, output = run_twice(tmp_path)
    assert "1 failed, 1 passed" in output
    assert "1 passed" in output.partition("running 1 failed tests again")[2]
    name = "test_flaky.py::test_that_is_flaky"
    assert f"flaky: {name} (new: add it to tests/flaky.md)" in output
    assert status == 0


def test_a_test_that_fails_twice_fails_the_gate(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    (tmp_path / "test_broken.py").write_text(BROKEN)
    status, output = run_twice(tmp_path)
    assert "flaky: test_flaky.py::test_that_is_flaky" in output
    assert "failed twice: test_broken.py::test_that_is_broken" in output
    assert status == 1


def test_a_module_that_cannot_be_imported_fails_the_gate(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    (tmp_path / "test_broken.py").write_text("import a_module_that_does_not_exist")
    status, output = run_twice(tmp_path)
    assert "ERROR test_broken.py" in output
    assert status != 0


def test_every_known_flaky_test_is_in_a_file_that_exists() -> None:
    assert [name for name in known_flaky() if not (ROOT / name.partition("::")[0]).exists()] == []
