"""The command line in a real process, and a small memory for it to read."""

import subprocess
import sys
from pathlib import Path

from polymnia.engine import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store

LINES = (
    '{"type":"entity","name":"Zoë","entityType":"person","observations":["likes tea","likes tea"]}\n'
    '{"type":"relation","from":"Zoë","to":"Bob","relationType":"knows"}'
)


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polymnia", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)


def fill(path: str) -> None:
    store = open_store(path)
    memory = Memory(store)
    entities.create(memory, [EntityDraft("Zoë", "person", ("likes tea", "likes tea"))], by="test")
    relations.create(memory, [Relation("Zoë", "Bob", "knows")], by="test")
    store.close()
