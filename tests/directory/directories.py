"""Data directories for tests: what they contain, and crashes at chosen steps of a change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces
from polymnia.model import EntityDraft
from polymnia.stores.directory import catalogue as catalogue_module
from polymnia.stores.directory import files
from polymnia.stores.directory.catalogue import DirectoryCatalogue
from polymnia.stores.directory.registry import Registry

ME = "test"


class Crash(BaseException):
    """Stands for the end of the process: nothing catches it and nothing is cleaned up."""


def opened(
    directory: Path, *, max_open: int = 32, trash_days: int = 0, read_only: bool = False
) -> Workspaces:
    catalogue = DirectoryCatalogue(str(directory), read_only=read_only)
    return Workspaces(catalogue, max_open=max_open, trash_days=trash_days)


def write(memory: Memory, name: str) -> None:
    entities.create(memory, [EntityDraft(name, "thing", (f"{name} is known",))], by=ME)


def names_in(workspaces: Workspaces, project: str) -> list[str]:
    return [entity.name for entity in entities.read_all(workspaces.memory(project)).entities]


def on_disk(directory: Path) -> list[str]:
    """Return the files below the directory, without the registry."""
    found = [
        path
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith("_meta")
    ]
    return sorted(str(path.relative_to(directory)) for path in found)


def snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return the time of the last write and the bytes of every file."""
    found = [path for path in directory.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in found
    }


# The steps of each change in order; the process may crash before or after each step.
STEPS: dict[str, list[tuple[Any, str]]] = {
    "create": [(Registry, "begin"), (catalogue_module, "SqliteStore"), (Registry, "add")],
    "archive": [
        (Registry, "begin"),
        (files, "seal"),
        (files, "move"),
        (files, "drop_logs"),
        (Registry, "relocate"),
    ],
    "restore": [
        (Registry, "begin"),
        (files, "copy"),
        (files, "unseal"),
        (files, "put"),
        (files, "discard"),
        (Registry, "relocate"),
    ],
    "delete": [(Registry, "begin"), (files, "seal"), (files, "discard"), (Registry, "remove")],
}
CRASHES = [
    (change, step, when)
    for change, steps in STEPS.items()
    for _, step in steps
    for when in ("before", "after")
]


def crash_at(monkeypatch: pytest.MonkeyPatch, change: str, step: str, when: str) -> None:
    """Make the next change of that kind crash before or after the step."""
    (home,) = [home for home, name in STEPS[change] if name == step]
    real: Callable[..., Any] = getattr(home, step)

    def crash(*arguments: Any, **options: Any) -> Any:
        if when == "after":
            real(*arguments, **options)
        raise Crash(f"{when} {step}")

    monkeypatch.setattr(home, step, crash)
