"""What we publish, checked by the tools of those who read it.

The bundle by mcpb, the workflows by actionlint.
"""

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.interop.install import client_programs, node
from tests.processes import TIMEOUT_S

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def programs(cache: Path) -> Path:
    return client_programs(cache)


def mcpb(programs: Path, *arguments: str | Path) -> str:
    command = [str(programs / "node_modules" / ".bin" / "mcpb"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_manifest_of_the_bundle_is_valid(programs: Path) -> None:
    assert "passes" in mcpb(programs, "validate", ROOT / "packages" / "mcpb" / "manifest.json")


def test_the_bundle_has_what_its_host_needs_and_nothing_else(
    programs: Path, tmp_path: Path
) -> None:
    mcpb(programs, "pack", ROOT / "packages" / "mcpb", tmp_path / "polymnia.mcpb")
    packed = zipfile.ZipFile(tmp_path / "polymnia.mcpb").namelist()
    assert sorted(packed) == ["manifest.json", "pyproject.toml", "src/server.py"]


def lint(programs: Path, *workflows: Path) -> subprocess.CompletedProcess[str]:
    command = [node(), str(programs / "lint_workflows.mjs"), *map(str, workflows)]
    return subprocess.run(
        command, cwd=programs, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )


def test_the_workflows_have_no_mistakes(programs: Path) -> None:
    done = lint(programs, *WORKFLOWS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_mistake_in_a_workflow_is_found(programs: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text("utf-8").replace("runs-on:", "run-on:"), "utf-8")
    assert 'unexpected key "run-on"' in lint(programs, wrong).stdout
