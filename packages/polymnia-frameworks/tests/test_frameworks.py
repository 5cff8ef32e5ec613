"""The adapters with their frameworks, over a local store and over a server with a token.

Run these tests where Polymnia, this package and its extra `test` are installed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "frameworks.md"
FRAMEWORKS = ["langgraph", "anthropic", "openai_agents", "google_adk", "strands"]
# Nothing is sent to anyone: the models are scripted, and traces stay here.
QUIET = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "POLYMNIA_EMBEDDER": "none"}


@pytest.fixture(params=["local", "remote"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Yield a memory as the scripts take it: its location, and the token of a server."""
    store = str(tmp_path / "memory.db")
    if request.param == "local":
        yield store, ""
        return
    token = run("-m", "polymnia", "token", "create", "tests", "--can", "write", "--store", store)
    options = ["--dialect", "native", "--toolsets", "notes", "--store", store]
    command = [sys.executable, "-m", "polymnia", "serve", *options]
    command += ["--transport", "http", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            address = re.search(r"http://\S+/mcp", line)
            assert address, line
            yield address[0], token.strip().splitlines()[-1]
        finally:
            server.terminate()


def run(*arguments: str, directory: Path = HERE) -> str:
    """Return what Python prints with these arguments. It must end with status 0."""
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_keeps_its_memory_in_polymnia(
    framework: str, memory: tuple[str, str], tmp_path: Path
) -> None:
    output = run(str(HERE / f"try_{framework}.py"), *memory, directory=tmp_path)
    assert output.endswith("passed\n")


def test_the_examples_of_the_page_run_one_after_another_in_one_directory(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == len(FRAMEWORKS)
    for example in examples:
        expected = re.findall(r"# prints (.*)", example)
        assert run("-c", example, directory=tmp_path).splitlines() == expected


def test_a_missing_framework_is_named() -> None:
    script = "import sys; sys.modules['langgraph'] = None; import polymnia_frameworks.langgraph"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install langgraph-checkpoint" in process.stderr
