"""The command line, a small memory to read, and a call of every command."""

import contextlib
import io
import logging
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store

LINES = (
    '{"type":"entity","name":"Zoë","entityType":"person",'
    '"observations":["likes tea","likes tea"]}\n'
    '{"type":"relation","from":"Zoë","to":"Bob","relationType":"knows"}'
)
# A conversation and a question, in the form of LoCoMo.
# A call of each command in a directory made by `make_place`. `serve` and `ui`
# would run until they are stopped, and `hook` never fails.
EXAMPLES = {
    "demo": ("--no-ui",),
    "remember": ("Zoë", "drinks it cold", "--store", "memory.db"),
    "revise": ("Zoë", "--type", "person", "--store", "memory.db"),
    "forget": ("Zoë", "1", "--dry-run", "--store", "memory.db"),
    "audit": ("--store", "memory.db"),
    "erase": ("--about", "Zoë", "--dry-run", "--store", "memory.db"),
    "list": ("--store", "memory.db"),
    "serve": ("--help",),
    "ui": ("--help",),
    "install": ("--list",),
    "hook": ("--help",),
    "search": ("tea", "--embedder", "none", "--store", "memory.db"),
    "show": ("Zoë", "--store", "memory.db"),
    "stats": ("--store", "memory.db"),
    "import": ("in.jsonl", "--dry-run", "--store", "memory.db"),
    "export": ("--store", "memory.db"),
    "sync": ("notes", "--dry-run", "--store", "memory.db"),
    "index": ("--embedder", "local", "--store", "memory.db"),
    "embedder": ("check", "local"),
    "doctor": ("--store", "memory.db"),
    "backup": ("copy.db", "--store", "memory.db"),
    "restore": ("backup.db", "--store", "memory.db"),
    "migrate": ("memory.db", "data/"),
    "migrate-schema": ("--help",),
    "history": ("--store", "memory.db"),
    "undo": ("1", "--dry-run", "--store", "memory.db"),
    "trash": ("list", "--store", "memory.db"),
    "workspace": ("list", "--store", "workspaces/"),
    "perspective": ("list", "--store", "memory.db"),
    "token": ("list", "--store", "memory.db"),
    "user": ("list", "--store", "memory.db"),
    "completion": ("bash",),
}


def run(
    *arguments: str, directory: Path, environment: Mapping[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, as if in one of its own: starting one takes 20 times as long.

    A variable that is None is unset.
    """
    output, errors = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(directory),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        patch.setattr("sys.stdin", io.StringIO())
        for name, value in (environment or {}).items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        try:
            status = main(arguments)
        except SystemExit as exc:  # argparse ends the process
            status = int(exc.code or 0)
    root.handlers[:] = handlers
    root.setLevel(level)
    return subprocess.CompletedProcess(arguments, status, text_in(output), text_in(errors))


def text_in(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def fill(path: str) -> None:
    store = open_store(path)
    memory = Memory(store)
    entities.create(memory, [EntityDraft("Zoë", "person", ("likes tea", "likes tea"))], by="test")
    relations.create(memory, [Relation("Zoë", "Bob", "knows")], by="test")
    store.close()


def make_place(directory: Path) -> None:
    """Fill a directory with what EXAMPLES name.

    A memory with something in its trash, a backup, a file to import.
    """
    fill(str(directory / "memory.db"))
    store = open_store(str(directory / "memory.db"))
    entities.create(Memory(store), [EntityDraft("Gone", "thing")], by="test")
    entities.delete(Memory(store), ["Gone"], by="test")
    store.close()
    shutil.copy(directory / "memory.db", directory / "backup.db")
    (directory / "in.jsonl").write_text(LINES, "utf-8")
    with closing(open_workspaces(f"{directory / 'workspaces'}/")) as workspaces:
        workspaces.create("plans", "what comes next")
