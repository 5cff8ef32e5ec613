"""Which workspace a directory belongs to: one for each project, and one for everything personal."""

import re
from collections.abc import Sequence
from pathlib import Path

from polymnia.engine.workspaces.workspaces import Workspaces
from polymnia.errors import BadInput, FormerWorkspace, WorkspaceNotFound
from polymnia.model import Workspace, own_workspace

PERSONAL = "personal"
MAX_NAME_LENGTH = 48


def find_project(directory: Path) -> Path | None:
    """Return the root of the git work tree that contains the directory; None if there is none.

    A work tree at the user's home directory is not a project: it holds the user's settings.
    """
    try:
        resolved, home = directory.resolve(), Path.home().resolve()
    except (OSError, RuntimeError):
        return None
    for parent in (resolved, *resolved.parents):
        if (parent / ".git").exists():
            return None if parent == home else parent
    return None


def project_workspace(workspaces: Workspaces, root: Path) -> str:
    """Return the name of the project's workspace, which may not exist yet.

    It is the directory's name or, if the workspace of another directory has that name, the name
    with a part of a hash of the path.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", root.name).strip("-")[:MAX_NAME_LENGTH] or "work"
    taken = _find(workspaces, name)
    if name != PERSONAL and (taken is None or taken.description == str(root)):
        return name
    from hashlib import sha256  # loads OpenSSL, and few names are taken

    return f"{name}-{sha256(str(root).encode(errors='replace')).hexdigest()[:6]}"


def default_workspace(workspaces: Workspaces, directory: Path | None) -> str:
    """Return the workspace for work in the directory: that of its project, or the personal one."""
    root = None if directory is None else find_project(directory)
    return PERSONAL if root is None else project_workspace(workspaces, root)


def workspace_to_write(
    workspaces: Workspaces, named: str, directory: Path | None, *, creates: bool = True
) -> str:
    """Return the workspace for writes in a directory: the named or only one, else the default.

    With `creates`, a default one is created if it is missing.
    """
    if named or workspaces.sole is not None:
        return named or workspaces.sole or ""
    root = None if directory is None else find_project(directory)
    name = PERSONAL if root is None else project_workspace(workspaces, root)
    if creates:
        create_missing(workspaces, name, str(root or ""))
    return name


def session_workspaces(workspaces: Workspaces, named: str, directory: Path) -> list[str]:
    """Return the names of a session's workspaces. They may not exist."""
    if workspaces.sole is not None:
        return [workspaces.sole]
    return list(dict.fromkeys([named or default_workspace(workspaces, directory), PERSONAL]))


def new_rights(
    workspaces: Workspaces, name: str, named: Sequence[str], *, keeps: bool
) -> tuple[str, ...] | None:
    """Return the workspaces of a new token or person: those named, and one of their own.

    The own one is created. Unless `keeps`, raise BadInput if it exists: it has the memory of
    another one, who had the name before. Who gets `personal` shares that instead. Return None,
    which means all, for a store with one workspace unless that is named.
    """
    if workspaces.sole is not None:
        return tuple(named) or None
    if PERSONAL in named:
        return tuple(named)
    own = own_workspace(name)
    if not keeps and own not in named and _find(workspaces, own) is not None:
        raise FormerWorkspace(name, own)
    create_missing(workspaces, own, f"what concerns {name}")
    return (*named, own)


def existing_default(workspaces: Workspaces, directory: Path) -> str | None:
    """Return the project's workspace, else the personal one; None if neither exists."""
    names = (default_workspace(workspaces, directory), PERSONAL)
    return next((name for name in names if _find(workspaces, name) is not None), None)


def create_missing(workspaces: Workspaces, name: str, description: str = "") -> None:
    """Create the workspace if it does not exist.

    Another process may do the same at the same time.
    """
    if _find(workspaces, name) is not None:
        return
    try:
        workspaces.create(name, description)
    except BadInput:
        if _find(workspaces, name) is None:
            raise


def _find(workspaces: Workspaces, name: str) -> Workspace | None:
    try:
        return workspaces.find(name)
    except WorkspaceNotFound:
        return None
