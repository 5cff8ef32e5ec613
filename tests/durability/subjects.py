"""What faults are tried on: a store of each kind, and the script of verbs it is put through."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol

from polymnia.engine.graph import entities
from polymnia.engine.health import check_all, check_one
from polymnia.engine.history import changes, trash
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.engine.notes import page
from polymnia.engine.workspaces import Workspaces
from polymnia.model import VAULT, EntityDraft
from polymnia.stores import open_store
from polymnia.stores.backup import back_up
from polymnia.stores.directory.catalogue import DirectoryCatalogue
from tests.behaviour.steps import Step, last_change, take

_ME = "a test"
_LONG = "long " * 6_000
_SCRIPT: tuple[Step, ...] = (
    ("create", "a", "b", "tea", _ME),
    ("link", "a", "b", "", _ME),
    ("add", "a", "", _LONG, _ME),
    ("add", "b", "", "coffee", _ME),
    ("rename", "b", "c", "", _ME),
    ("remove", "a", "", _LONG, _ME),
    ("remember", "d", "a", "two words", _ME),
    ("merge", "c", "d", "", _ME),
    ("unlink", "a", "b", "", _ME),
    ("delete", "a", "", "", _ME),
)
_NOTES: tuple[Step, ...] = (("note", "n", "x", "a note", _ME), ("prune", "n", "", "", _ME))


class Subject(Protocol):
    """An open store with a script. A step that raises may be tried again."""

    steps: list[Callable[[], object]]
    # Steps that are done in parts, so that a failure may leave the first of them.
    long_steps: list[int]

    def state(self) -> object:
        """Return what the store holds, without ids and times."""

    def close(self) -> None:
        """Close it."""


class FileSubject:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._copy = path.with_name(f"copy{path.suffix}")
        self._memory = Memory(open_store(str(path)))
        self.steps: list[Callable[[], object]] = []
        self.steps += [partial(take, self._memory, step) for step in _SCRIPT]
        self.long_steps: list[int] = []
        if self._memory.store.capabilities.history:
            self.steps += [partial(take, self._memory, step) for step in _NOTES]
            self.steps += [self._undo, self._purge]
            self.long_steps = [len(self.steps) - 1]
        self.steps.append(self._back_up)

    def state(self) -> object:
        state = [_state_of(self._memory), None]
        if self._copy.exists():
            with closing(open_store(str(self._copy), read_only=True)) as copy:
                state[1] = _state_of(Memory(copy))
        return state

    def close(self) -> None:
        self._memory.store.close()

    def _undo(self) -> None:
        undo(self._memory, [last_change(self._memory)[0]], by=_ME)

    def _purge(self) -> None:
        trash.purge(self._memory, days=0)

    def _back_up(self) -> None:
        back_up(str(self._path), str(self._copy))


class DirectorySubject:
    """A directory of workspaces."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._catalogue = DirectoryCatalogue(str(path))
        self._workspaces = Workspaces(self._catalogue)
        workspaces = self._workspaces
        self.steps: list[Callable[[], object]] = [
            partial(workspaces.create, "one", "the first"),
            partial(self._write, "one", "a"),
            partial(workspaces.create, "two"),
            partial(self._write, "two", "b"),
            partial(workspaces.archive, "one"),
            partial(workspaces.rename, "two", "three"),
            partial(self._write, "three", "c"),
            partial(workspaces.restore, "one"),
            partial(self._write, "one", "d"),
            partial(workspaces.describe, "one", "still the first"),
            partial(workspaces.delete, "three"),
        ]
        self.long_steps = [0, 2, 4, 7, 10]  # of these a fault may leave the intent

    def state(self) -> object:
        DirectoryCatalogue(str(self._path)).close()  # settles what was interrupted
        states = []
        for workspace in self._workspaces.find_all():
            if workspace.status == "active":
                memory = self._workspaces.memory(workspace.name)
                graph = _state_of(memory)
            else:
                with closing(self._catalogue.open(workspace.name, archived=True)) as store:
                    graph = _state_of(Memory(store))
            states.append((workspace.name, workspace.status, workspace.description, graph))
        return states

    def close(self) -> None:
        self._workspaces.close()

    def _write(self, workspace: str, name: str) -> None:
        memory = self._workspaces.memory(workspace)
        entities.create(memory, [EntityDraft(name, "thing", ("a fact",))], by=_ME)


# The name of the store in its own directory, by kind.
NAMES = {"db": "memory.db", "dir": "memories", "jsonl": "memory.jsonl", "mcpmem": "memory.mcpmem"}


def open_subject(kind: str, directory: Path) -> Subject:
    """Open the store of that kind in a directory, or create it."""
    path = directory / NAMES[kind]
    return DirectorySubject(path) if kind == "dir" else FileSubject(path)


def find_problems(kind: str, directory: Path) -> list[str]:
    """Return what `polymnia doctor` would say is wrong with the store, without changing it."""
    path = directory / NAMES[kind]
    if kind == "dir":
        findings = check_all(f"{path}/")
    else:
        with closing(open_store(str(path), read_only=True)) as store:
            findings = check_one(store, str(path))
    problems = [problem for finding in findings.findings for problem in finding.problems]
    if findings.error:
        problems.append(findings.error)
    return problems


def _state_of(memory: Memory) -> object:
    graph = entities.read_all(memory)
    # Only what every kind of store keeps.
    cards = sorted((entity.name, entity.type, entity.texts) for entity in graph.entities)
    state: list[object] = [cards, sorted(relation.key for relation in graph.relations)]
    if memory.store.capabilities.history:
        operations = [change.operation for change in changes.latest(memory, limit=100).changes]
        notes = [(note.key, note.content) for note in page(memory, VAULT)]
        state += [operations, len(trash.items(memory)), notes]
    return state
