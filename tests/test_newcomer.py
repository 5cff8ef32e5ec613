"""The newcomer's path: every documented way to install, then a client, a first memory and a search.

It starts with Python and pip alone. The commands are those of the README; only the wheel comes from a directory,
because nothing is published yet.
"""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from polymnia.dialects.registry import DEFAULT_DIALECT
from tests.interop.install import client_programs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
# The call of an agent that remembers something, by the dialect that is served.
FIRST_MEMORY = {
    "native": {
        "name": "remember",
        "arguments": {"entities": [{"name": "Ada", "type": "person", "facts": ["likes tea"]}]},
    },
    "reference": {
        "name": "create_entities",
        "arguments": {
            "entities": [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
        },
    },
}
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the paths are those of a POSIX system"
)


class Newcomer:
    """A user with a home directory of their own, Python and pip."""

    def __init__(self, home: Path, wheels: Path) -> None:
        self.home = home
        kept = (
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "PIP_CERT",
            "REQUESTS_CA_BUNDLE",
            "HTTPS_PROXY",
            "PIP_INDEX_URL",
        )
        # Programs of the system, this Python, and what the user installs.
        path = os.pathsep.join(
            [f"{home}/tools/bin", f"{home}/.local/bin", Path(sys.executable).parent.as_posix()]
        )
        self.environment = {name: os.environ[name] for name in kept if name in os.environ} | {
            "HOME": str(home),
            "PATH": f"{path}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin",
            "PIP_FIND_LINKS": f"{os.environ.get('PIP_FIND_LINKS', '')} {wheels}".strip(),
            "UV_FIND_LINKS": str(wheels),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "POLYMNIA_EMBEDDER": "local",
        }

    def run(self, line: str, given: str = "") -> str:
        """Run a line of shell with this on standard input and return what it prints."""
        done = subprocess.run(
            ["bash", "-c", line],
            input=given,
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def has_tools(self, *names: str) -> None:
        """Give the user uv or pipx, in an environment of its own."""
        venv.create(self.home / "tools", with_pip=True)
        self.run(f"tools/bin/pip install -q {' '.join(names)}")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheels")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(directory),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    return directory


@pytest.fixture
def newcomer(wheels: Path, tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path, wheels)


def documented(start: str) -> str:
    """Return the command of the README's first steps that begins like this."""
    blocks = re.findall(
        r"```sh\n(.*?)```", README.partition("## Start")[2].partition("\n## ")[0], re.DOTALL
    )
    lines = [line for block in blocks for line in block.splitlines()]
    either = [part.strip() for line in lines for part in line.split("# or:")]
    return str(next(part for part in either if part.startswith(start)))


def test_uv_installs_the_command(newcomer: Newcomer) -> None:
    newcomer.has_tools("uv")
    newcomer.run(documented("uv tool install"))
    assert newcomer.run("polymnia --version").startswith("polymnia ")


def test_pipx_installs_the_command(newcomer: Newcomer) -> None:
    newcomer.has_tools("pipx")
    newcomer.run(documented("pipx install"))
    assert newcomer.run("polymnia --version").startswith("polymnia ")


def test_uvx_runs_the_server_without_installing_it(newcomer: Newcomer) -> None:
    newcomer.has_tools("uv")
    (command,) = re.findall(r"`(uvx polymnia serve)`", README)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert '"tools"' in newcomer.run(command, json.dumps(hello) + "\n")
    entry = json.loads(newcomer.run("uvx polymnia install cursor --print"))["mcpServers"]["memory"]
    assert (Path(entry["command"]).name, entry["args"]) == ("uvx", ["polymnia", "serve"])


def test_the_path_from_pip_to_a_memory_that_claude_code_can_use(
    newcomer: Newcomer, pytestconfig: pytest.Config
) -> None:
    newcomer.run(documented("python3 -m venv"))
    polymnia = newcomer.home / ".venv" / "bin" / "polymnia"
    said = newcomer.run(
        f"{polymnia} {documented('polymnia install claude-code').split('#')[0].removeprefix('polymnia')}"
    )
    assert "the server works: " in said
    entry = json.loads((newcomer.home / ".claude.json").read_text("utf-8"))["mcpServers"]["memory"]
    assert entry["command"] == str(polymnia)
    remember(newcomer, entry)
    found = newcomer.run(f"{polymnia} search who drinks tea")
    assert "Ada" in found
    assert "likes tea" in found
    programs = client_programs(pytestconfig.rootpath / ".test-cache") / "node_modules"
    newcomer.run(f"node {programs}/@anthropic-ai/claude-code/install.cjs")
    assert re.search(
        r"^memory: .* - .*Connected", newcomer.run(f"{programs}/.bin/claude mcp list"), re.MULTILINE
    )


def remember(newcomer: Newcomer, entry: dict[str, Any]) -> None:
    """Store the first memory as the client would: start the entry's command and call its tool."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": FIRST_MEMORY[DEFAULT_DIALECT],
    }
    reply = json.loads(
        newcomer.run(" ".join([entry["command"], *entry["args"]]), json.dumps(message) + "\n")
    )
    assert not reply["result"].get("isError"), reply
