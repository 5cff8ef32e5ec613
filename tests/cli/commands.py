"""The command line in a real process, a small memory to read, and a call of every command."""

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces.workspaces import open_workspaces
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store
from tests.processes import TIMEOUT_S

LINES = (
    '{"type":"entity","name":"Zoë","entityType":"person",'
    '"observations":["likes tea","likes tea"]}\n'
    '{"type":"relation","from":"Zoë","to":"Bob","relationType":"knows"}'
)
# A conversation and a question, in the form of LoCoMo.
QUESTIONS = (
    '[{"conversation": {"session_1_date_time": "9:05 am on 3 April, 2024", "session_1": '
    '[{"speaker": "Zoë", "dia_id": "D1:1", "text": "I like tea"}]}, '
    '"qa": [{"question": "Who likes tea?", "evidence": ["D1:1"], "category": 4}]}]'
)

# A call of each command in a directory made by `make_place`. `serve` and `ui`
# would run until they are stopped, and `hook` never fails, whatever happens.
EXAMPLES = {
    "demo": ("--no-ui",),
    "remember": ("Zoë", "drinks it cold", "--store", "memory.db"),
    "recall": ("tea", "--embedder", "none", "--store", "memory.db"),
    "revise": ("Zoë", "--type", "person", "--store", "memory.db"),
    "forget": ("Zoë", "1", "--dry-run", "--store", "memory.db"),
    "candidates": ("list", "--store", "memory.db", "--json"),
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
    "embedder": ("list",),
    "bench": ("questions.json", "--embedder", "none"),
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
    "completion": ("bash",),
}


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polymnia", *arguments]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


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
    (directory / "questions.json").write_text(QUESTIONS, "utf-8")
    with closing(open_workspaces(f"{directory / 'workspaces'}/")) as workspaces:
        workspaces.create("plans", "what comes next")
