"""The adapters with their frameworks, over a local store and over a server with a token."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import install
from .install import ROOT, SCRIPTS
from .server import guarded

FRAMEWORKS = ["langgraph", "anthropic", "openai_agents", "google_adk", "strands"]
ADAPTERS = SCRIPTS / "adapters"
PAGE = ROOT / "docs" / "frameworks.md"
# Nothing is sent to anybody: the models are scripted, and traces stay here.
QUIET = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "POLYMNIA_EMBEDDER": "none"}


@pytest.fixture(scope="session")
def python(cache: Path) -> Path:
    """The interpreter of a virtual environment with the frameworks and Polymnia."""
    return install.python_with_frameworks(cache)


@pytest.fixture(params=["local", "remote"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A memory as the scripts take it: where it is, and the token of a server."""
    if request.param == "local":
        yield str(tmp_path / "memory.db"), ""
        return
    options = ("--dialect", "native", "--toolsets", "notes")
    with guarded(tmp_path / "memory.db", "http", options) as place:
        yield place.url, place.token


def run(python: Path, *command: str, directory: Path) -> str:
    """Return what a script prints. It must end with status 0."""
    process = subprocess.run(
        [str(python), *command],
        cwd=directory,
        env={**os.environ, **QUIET, "HOME": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return process.stdout


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_keeps_its_memory_here(
    framework: str, python: Path, memory: tuple[str, str], tmp_path: Path
) -> None:
    script = str(ADAPTERS / f"try_{framework}.py")
    assert run(python, script, *memory, directory=tmp_path).endswith("passed\n")


def test_the_examples_of_the_page_run(python: Path, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == len(FRAMEWORKS)
    for number, example in enumerate(examples):
        directory = tmp_path / str(number)
        directory.mkdir()
        shown = re.findall(r"# prints (.*)", example)
        assert run(python, "-c", example, directory=directory).splitlines() == shown


def test_a_missing_framework_is_named() -> None:
    with pytest.raises(ImportError, match="pip install langgraph-checkpoint"):
        import polymnia.adapters.langgraph  # noqa: F401
