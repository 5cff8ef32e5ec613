"""From a store's URL to the workspaces in it, and to the one a client starts in."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import DEFAULT, OneWorkspace, Workspaces
from polymnia.errors import BadInput, WorkspaceNotFound
from polymnia.stores import open_store, store_kind
from polymnia.stores.base import VectorTable

if TYPE_CHECKING:
    from polymnia.engine.semantics import Semantics


def open_workspaces(
    url: str,
    only: str = "",
    *,
    trash_days: int = 0,
    read_only: bool = False,
    meaning: "Callable[[VectorTable], Semantics] | None" = None,
) -> Workspaces:
    """The workspaces of a data directory, or the only one of any other store, which has the name it is given.

    A store of one file that is read-only is left as it is, to the last byte; in a directory nothing is remembered or
    forgotten, but files may be put in order. `meaning` begins to search by meaning; what is in a directory is embedded
    when it is next searched. Raises SettingsError, StoreError.
    """
    kind, path = store_kind(url)
    if kind != "directory":
        memory = Memory(open_store(url, read_only=read_only))
        if meaning is not None:
            memory.search_by_meaning(meaning)
        return OneWorkspace(memory, only or DEFAULT, trash_days=trash_days)
    from polymnia.engine.many_workspaces import ManyWorkspaces
    from polymnia.stores.projects.catalogue import Catalogue

    return ManyWorkspaces(Catalogue(path), trash_days=trash_days)


def first_workspace(workspaces: Workspaces, named: str, *, may_choose: bool) -> str | None:
    """The workspace of clients that name none: that one; else the only one; else none if they may choose, or `default`.

    Raises WorkspaceNotFound. Only `default` is made when it is missing: a name that was typed may be a mistake.
    """
    if named:
        return workspaces.find(named).name
    if workspaces.sole is not None or not may_choose:
        return workspaces.sole or _default(workspaces)
    return None


def _default(workspaces: Workspaces) -> str:
    try:
        return workspaces.find(DEFAULT).name
    except WorkspaceNotFound:
        with suppress(BadInput):  # another process that starts just now was first
            workspaces.create(DEFAULT)
        return workspaces.find(DEFAULT).name
