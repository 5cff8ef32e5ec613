"""Every client is asked by real tools, hears of their progress and cancels them, over each of its
transports.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from bench.dataset import write_dataset
from polymnia.cli.main import main
from tests.processes import polymnia_command

from . import install
from .conversation import JSON
from .server import Place, place, running
from .transcript import run

_ROOT = Path(__file__).parent.parent.parent
_TYPESCRIPT = ("@modelcontextprotocol/sdk", "@modelcontextprotocol/client")
ADA = {"name": "Ada", "type": "person", "facts": [f"fact {number}" for number in range(40)]}
# Enough for a review to take longer than the way of a cancellation.
ENTITIES = 10_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A client: the script that uses it, its kind, its mode and its transport."""

    script: str
    kind: str
    mode: str
    transport: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.mode}-{self.transport}"


_KINDS = {
    "mcp": "asked.py",
    "fastmcp": "asked.py",
    "typescript-v1": "sdk_v1.mjs",
    "typescript-v2": "sdk_v2.mjs",
}
CLIENTS = [
    Asked(script, kind, mode, transport)
    for (kind, script), mode, transport in itertools.product(
        _KINDS.items(), ("legacy", "auto"), ("stdio", "http", "sse")
    )
    if mode == "legacy" or (transport != "sse" and kind != "typescript-v1")
]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in which a review takes long."""
    home = tmp_path_factory.mktemp("large")
    write_dataset(ENTITIES, home / "memory.jsonl")
    assert (
        main(
            [
                "import",
                str(home / "memory.jsonl"),
                "--store",
                str(home / "memory.db"),
                "--log-level",
                "error",
            ]
        )
        == 0
    )
    return home / "memory.db"


@contextmanager
def served(transport: str, log: Path, *options: str) -> Iterator[Place]:
    """Run a server that logs every request, or say how to start it."""
    command = polymnia_command("serve", *options)
    if transport == "stdio":
        # The client inherits our standard error, so the server's goes to a file.
        yield Place(
            "stdio", ("sh", "-c", f'exec "$0" "$@" 2> {log}', *command, "--log-level", "debug")
        )
        return
    network = ("--transport", "http", "--bind", "127.0.0.1:0", "--log-level", "info")
    with running((*command, *network), log) as base:
        yield place(base, transport)


def command_of(client: Asked, request: pytest.FixtureRequest) -> Sequence[str]:
    if client.script.endswith(".mjs"):
        packages: Path = request.getfixturevalue("node_packages")
        return install.node(), str(packages / client.script)
    interpreter = (
        request.getfixturevalue("python_with_fastmcp")
        if client.kind == "fastmcp"
        else sys.executable
    )
    return str(interpreter), str(install.SCRIPTS / client.script)


def talk(
    server: Place, *calls: tuple[str, JSON], watched: JSON | None = None, root: Path | None = None
) -> JSON:
    answers = {
        "elicitation/create": {"action": "accept", "content": {"confirmed": True}},
        "sampling/createMessage": {
            "role": "assistant",
            "content": {"type": "text", "text": "1: Tea."},
            "model": "m",
        },
        "roots/list": {"roots": [{"uri": root.as_uri()}] if root else []},
    }
    listed = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
    return {"server": asdict(server), "calls": listed, "answers": answers, "watched": watched}


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_client_is_asked_and_hears_and_cancels(
    client: Asked, large: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    project = tmp_path / "my-project"
    project.mkdir()
    home, logs = (
        tmp_path / "home",
        [tmp_path / f"{name}.log" for name in ("native", "large")],
    )
    with ExitStack() as stack:
        native, reviewed = [
            stack.enter_context(served(client.transport, log, *options))
            for log, options in zip(
                logs,
                (
                    ("--dialect", "native", "--store", f"{home}/", "--workspace", "personal"),
                    ("--dialect", "native", "--store", str(large)),
                ),
                strict=True,
            )
        ]
        talks = [
            talk(
                native,
                ("remember", {"entities": [ADA]}),
                ("forget", {"name": "Ada", "whole": True}),
                ("history", {}),
                root=project,
            ),
            talk(reviewed, watched={"tool": "review", "arguments": {}}),
        ]
        told = {"task": "converse", "client": client.kind, "mode": client.mode, "talks": talks}
        memory, review = run(command_of(client, request), told, native)["heard"]
    # The first tool asks for the roots, which choose the workspace. A client without a session
    # names it instead.
    roots = ["roots/list"] if client.mode == "legacy" else []
    assert [item["method"] for item in memory["asked"]] == [*roots, "elicitation/create"]
    assert memory["asked"][-1]["params"]["message"] == "Forget Ada: 41 facts and relations in all?"
    where = "my-project" if roots else "personal"
    assert f"{where}:2" in memory["replies"][2]["content"][0]["text"]
    assert len(review["progress"]) > 1
    assert all(earlier < later for earlier, later in itertools.pairwise(review["progress"]))
    assert review["given"] == "up"
    assert re.search(r"review.*cancelled|cancelled.*review", logs[1].read_text("utf-8"))


def test_the_page_names_the_versions_that_are_tested() -> None:
    """The row of each client has the version that is installed for these tests."""
    pins: dict[str, str] = {}
    for manifest in (install.SCRIPTS, install.JUDGES):
        pins |= json.loads((manifest / "package.json").read_text("utf-8"))["dependencies"]
    rows = re.findall(
        r"^\| (.+?) \| (\d\S+) \|",
        (_ROOT / "docs" / "conformance.md").read_text("utf-8"),
        re.MULTILINE,
    )
    named = {
        (client.rpartition("`@")[2].removesuffix("`)"), version)
        for client, version in rows
        if "TypeScript" in client
    }
    assert named == {(name.removeprefix("@"), pins[name]) for name in _TYPESCRIPT}
    others = {version for client, version in rows if "Inspector" in client or "fastmcp" in client}
    assert others == {pins["@modelcontextprotocol/inspector"], install.FASTMCP.partition("==")[2]}
