"""Open the workspaces that a command or a program reads and writes, as agents do.

Inside a project, its workspace and the personal one are read together, and the project's is
written. Everywhere else it is the personal one.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import (
    DEFAULT,
    PERSONAL,
    Workspaces,
    create_missing,
    open_workspaces,
    session_workspaces,
    workspace_to_write,
)
from polymnia.errors import BadInput, WorkspaceNotFound
from polymnia.settings import Settings, default_store, runtime_directory
from polymnia.stores.open import open_store, store_exists, store_kind

if TYPE_CHECKING:
    from polymnia.engine.semantic.meaning import Meaning


class OpenedWorkspace(Struct, frozen=True):
    """A workspace in use, and its memory. `is_sole` is True if its store can hold no other."""

    name: str
    memory: Memory
    is_sole: bool = False
    workspaces: Workspaces | None = None

    def other_memories(self) -> Iterator[Memory]:
        """Return the memories of the other active workspaces of the store."""
        if self.workspaces is not None and not self.is_sole:
            for workspace in self.workspaces.find_all("active"):
                if workspace.name != self.name:
                    yield self.workspaces.memory(workspace.name)


@contextmanager
def open_workspaces_to_read(
    settings: Settings, *, by_meaning: bool = False
) -> Iterator[list[OpenedWorkspace]]:
    """Open to read: the chosen workspace, or the current project's and the personal one.

    With `by_meaning`, the memories can be searched by meaning. Raise BadInput if there is no such
    store, WorkspaceNotFound.
    """
    with (
        _open(settings, read_only=True, by_meaning=by_meaning) as workspaces,
        ExitStack() as resources,
    ):
        opened = []
        for name in _names_to_read(workspaces, settings):
            workspace = _open_memory(settings, workspaces, name)
            opened.append(resources.enter_context(workspace))
        yield opened


@contextmanager
def open_workspace(
    settings: Settings,
    *,
    read_only: bool = False,
    creates: bool = False,
    by_meaning: bool = False,
) -> Iterator[OpenedWorkspace]:
    """Open one workspace: the chosen one, the current project's, or the personal one.

    With `creates`, a missing store is created, and so is the project's workspace; if it is opened
    to read only, an empty memory stands for it. Without, the personal one is used in a project that
    has none. Raise BadInput if there is no such store, WorkspaceNotFound.
    """
    with _open(settings, read_only=read_only, creates=creates, by_meaning=by_meaning) as workspaces:
        named, may_create = settings.workspace, creates and not read_only
        name = workspace_to_write(workspaces, named, Path.cwd(), creates=may_create)
        if not named and not creates and not _exists(workspaces, name):
            name = _personal(workspaces, settings)
        if name == PERSONAL and not read_only and workspaces.sole is None:
            create_missing(workspaces, PERSONAL)
        with _open_memory(settings, workspaces, name) as workspace:
            yield workspace


def find_sole_workspace(settings: Settings, *, example: int) -> str:
    """Return the only workspace that a change without a workspace can be in.

    It is empty for a store that can hold only one. Raise BadInput if there are several; `example`
    is the number of such a change.
    """
    with _open(settings, read_only=True) as workspaces:
        if workspaces.sole is not None:
            return ""
        names = [workspace.name for workspace in workspaces.find_all("active")]
        if len(names) == 1:
            return names[0]
        likely = _names_to_read(workspaces, settings)
    labels = " or ".join(f"{name}:{example}" for name in likely)
    raise BadInput(f"change {example}: name its workspace too, e.g. {labels}")


def other_workspaces(settings: Settings, opened: Sequence[OpenedWorkspace]) -> list[str]:
    """Return the names of the workspaces that were not opened."""
    opened_names = [workspace.name for workspace in opened]
    with _open(settings, read_only=True) as workspaces:
        names = [workspace.name for workspace in workspaces.find_all("active")]
    return [name for name in names if name not in opened_names]


def require_store(url: str) -> None:
    """Raise BadInput if nothing exists at the URL: it is probably a typo."""
    if store_exists(url):
        return
    kind, path = store_kind(url)
    if kind == "directory":
        raise BadInput(f"there are no workspaces in {path}")
    raise BadInput(f"there is no file {path}")


def open_meaning(settings: Settings) -> "Meaning | None":
    """Return what searches by meaning; None if the embedder is `none`. Raise SettingsError."""
    if settings.embedder == "none":
        return None
    # Most commands that read never load a model.
    from polymnia.embedders import open_embedder
    from polymnia.embedders.base import check_embedder
    from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder

    check_embedder(settings.embedder)
    # A server for many clients runs for long, so it holds the model itself.
    is_shared = settings.share_embedder and settings.transport == "stdio"
    directory = runtime_directory() if is_shared and sys.platform != "win32" else None
    open_model = partial(open_embedder, key=settings.embedder_key, share_in=directory)
    return Meaning(SharedEmbedder(settings.embedder, open_model))


@contextmanager
def _open(
    settings: Settings, *, read_only: bool, creates: bool = False, by_meaning: bool = False
) -> Iterator[Workspaces]:
    """Open the workspaces of the store. Raise BadInput if it is missing and should not be."""
    is_missing = not store_exists(settings.store)
    is_own = settings.store == default_store() and settings.workspace in ("", PERSONAL)
    if is_missing and not creates and not is_own:
        require_store(settings.store)
    kind, _ = store_kind(settings.store)
    if kind not in ("directory", "postgres") and settings.workspace not in ("", DEFAULT):
        raise BadInput(
            f"{settings.store} holds one workspace, without a name: leave out --workspace "
            f"{settings.workspace}"
        )
    meaning = open_meaning(settings) if by_meaning else None
    url = settings.store
    with ExitStack() as resources:
        if is_missing and read_only:
            # A command that writes nothing creates nothing: something empty stands for the store.
            read_only = False
            url = "memory:" if kind in ("memory", "jsonl", "binlog") else ":memory:"
            if kind == "directory":
                from tempfile import TemporaryDirectory  # a server's start does not need it

                url = f"{resources.enter_context(TemporaryDirectory())}/"
        workspaces = open_workspaces(
            url,
            settings.workspace,
            read_only=read_only,
            meaning=meaning,
            secrets=settings.secrets,
        )
        resources.enter_context(closing(workspaces))
        yield workspaces


@contextmanager
def _open_memory(
    settings: Settings, workspaces: Workspaces, name: str
) -> Iterator[OpenedWorkspace]:
    """Open a workspace. One of the user's own is empty until something is written to it."""
    is_own = not settings.workspace or name == PERSONAL
    if is_own and workspaces.sole is None and not _exists(workspaces, name):
        with closing(open_store(":memory:")) as store:
            yield OpenedWorkspace(name, Memory(store))
    else:
        yield OpenedWorkspace(
            name, workspaces.memory(name), workspaces.sole is not None, workspaces
        )


def _names_to_read(workspaces: Workspaces, settings: Settings) -> list[str]:
    if settings.workspace:
        return [settings.workspace]
    names = session_workspaces(workspaces, "", Path.cwd())
    if workspaces.sole is None and not _exists(workspaces, names[0]):
        return [_personal(workspaces, settings)]
    return names


def _personal(workspaces: Workspaces, settings: Settings) -> str:
    """Return the personal workspace, which the user's own store always has.

    Raise BadInput if another store has only other workspaces: one of them is meant.
    """
    if settings.store == default_store() or _exists(workspaces, PERSONAL):
        return PERSONAL
    names = [workspace.name for workspace in workspaces.find_all("active")]
    if not names:
        return PERSONAL
    raise BadInput(
        f"{settings.store} has no workspace for this directory: "
        f"name one with --workspace ({', '.join(names)})"
    )


def _exists(workspaces: Workspaces, name: str) -> bool:
    try:
        workspaces.find(name)
    except WorkspaceNotFound:
        return False
    return True
