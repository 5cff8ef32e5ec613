"""Data directories for tests: what they contain, and crashes at chosen steps of a change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from polymnia.engine.many_workspaces import ManyWorkspaces

from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores.projects import catalogue, files
from polymnia.stores.projects.catalogue import Catalogue
from polymnia.stores.projects.registry import Registry

ME = "test"


class Crash(BaseException):
    """Stands for the end of the process: nothing catches it and nothing is cleaned up."""


def opened(directory: Path, most_open: int = 32) -> ManyWorkspaces:
    return ManyWorkspaces(Catalogue(str(directory)), most_open=most_open)


def write(memory: Memory, name: str) -> None:
    entities.create(memory, [EntityDraft(name, "thing", (f"{name} is known",))], by=ME)


def names_in(workspaces: ManyWorkspaces, project: str) -> list[str]:
    return [entity.name for entity in entities.read_all(workspaces.memory(project)).entities]


def on_disk(directory: Path) -> list[str]:
    """Return the files below the directory, without the registry."""
    found = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("_meta")]
    return sorted(str(path.relative_to(directory)) for path in found)


# The steps of each change in order; the process may crash before or after each step.
STEPS: dict[str, list[tuple[Any, str]]] = {
    "create": [(Registry, "intend"), (catalogue, "SqliteStore"), (Registry, "add")],
    "archive": [
        (Registry, "intend"),
        (files, "seal"),
        (files, "move"),
        (files, "drop_logs"),
        (Registry, "settle"),
    ],
    "restore": [
        (Registry, "intend"),
        (files, "copy"),
        (files, "unseal"),
        (files, "put"),
        (files, "discard"),
        (Registry, "settle"),
    ],
    "delete": [(Registry, "intend"), (files, "seal"), (files, "discard"), (Registry, "remove")],
}
CRASHES = [(change, step, when) for change, steps in STEPS.items() for _, step in steps for when in ("before", "after")]


def crash_at(monkeypatch: pytest.MonkeyPatch, change: str, step: str, when: str) -> None:
    """Make the next change of that kind crash before or after the step."""
    (home,) = [home for home, name in STEPS[change] if name == step]
    real: Callable[..., Any] = getattr(home, step)

    def crash(*arguments: Any, **options: Any) -> Any:
        if when == "after":
            real(*arguments, **options)
        raise Crash(f"{when} {step}")

    monkeypatch.setattr(home, step, crash)
