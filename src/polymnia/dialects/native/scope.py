"""The workspaces a call reads and writes: the client's project and its personal one, labelled."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from polymnia.dialects.base import Call, Client
from polymnia.dialects.questions import list_roots
from polymnia.engine.memory import Memory
from polymnia.engine.projects import PERSONAL, create_missing, find_project, project_workspace
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import BadInput, Unanswered, WorkspaceNotFound

# What an argument may say instead of the name of the client's own workspace.
PROJECT = "project"


class Place(Struct, frozen=True):
    """A workspace that a call reads, and its memory."""

    name: str
    memory: Memory


def own_names(call: Call) -> list[str]:
    """Return the client's workspaces: its project, then the personal one. They may not exist yet."""
    if call.workspaces.sole is not None:
        return [call.client.workspace or call.workspaces.sole]
    return list(dict.fromkeys([_project(call), PERSONAL]))


def places(call: Call, wanted: str = "") -> list[Place]:
    """Return the workspaces to read: the named one, or all of the client's own that exist and that it may enter.

    Raise NotAllowed, or WorkspaceNotFound for a name that does not exist and is not the client's own.
    """
    found = [_open(call, name) for name in _choose(call, wanted) if _is_open_to(call, name, wanted)]
    return [each for each in found if each is not None]


def target(call: Call, wanted: str = "") -> Place:
    """Return the workspace to write to: the project, unless another is named. Create it if it is the client's own."""
    name = _choose(call, wanted)[0]
    call.client.principal.require_entry(name)
    if _may_be_missing(call, name):
        create_missing(call.workspaces, name, _description(call, name))
    return Place(name, call.workspaces.memory(name))


def others(call: Call, read: Sequence[Place]) -> list[Place]:
    """Return the other workspaces that the client may read."""
    if call.workspaces.sole is not None:
        return []
    known = {each.name for each in read}
    names = [each.name for each in call.workspaces.find_all("active") if each.name not in known]
    return [
        Place(name, call.workspaces.memory(name))
        for name in names
        if call.client.principal.enters(name)
    ]


def describe_workspaces(workspaces: Workspaces, client: Client) -> str:
    """Return a sentence about the workspaces in use."""
    if workspaces.sole is not None:
        return f"Workspace: {workspaces.sole}."
    if client.workspace in (None, PERSONAL):
        return f"Workspace: {PERSONAL}."
    return f"Workspaces: {client.workspace} (this project; the default for writes) and {PERSONAL} (about the user)."


def _choose(call: Call, wanted: str) -> list[str]:
    own = own_names(call)
    if not wanted:
        return own
    if wanted == PROJECT:
        return own[:1]
    if call.workspaces.sole is not None and wanted == PERSONAL:
        return own  # a single file is everything
    return [wanted]


def _is_open_to(call: Call, name: str, wanted: str) -> bool:
    """Return True if the client may read the workspace. Raise NotAllowed unless it is one of several that are meant."""
    principal = call.client.principal
    if wanted or name == own_names(call)[0]:
        principal.require_entry(name)
    return principal.enters(name)


def _may_be_missing(call: Call, name: str) -> bool:
    """Return True for the client's own workspaces, unless a request names one itself."""
    if call.workspaces.sole is not None or name not in own_names(call):
        return False
    return not (call.client.names_workspace and name == call.client.workspace)


def _open(call: Call, name: str) -> Place | None:
    try:
        return Place(name, call.workspaces.memory(name))
    except WorkspaceNotFound:
        if _may_be_missing(call, name):
            return None
        raise


def _project(call: Call) -> str:
    """Return the client's project: what the server found at its start, or else what the client's roots say."""
    client = call.client.conversation or call.client
    if call.client.workspace not in (None, PERSONAL) or client.has_told_roots or not client.lasting:
        return call.client.workspace or PERSONAL
    if call.may_ask("roots"):
        try:
            roots = call.ask(list_roots()).roots
        except Unanswered:
            roots = []
        root = next(
            (each for each in map(_root_path, [one.uri for one in roots]) if each is not None), None
        )
        if root is not None:
            client.workspace = project_workspace(call.workspaces, root)
            client.workspace_path = str(root)
    client.has_told_roots = True
    return client.workspace or PERSONAL


def _root_path(uri: str) -> Path | None:
    """Return the project that a root of the client belongs to, or the root itself if it is a directory here."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    from urllib.request import url2pathname  # rarely needed, and slow to import

    path = Path(url2pathname(unquote(parts.path)))
    if not path.is_dir() or path in (Path.home(), Path(path.anchor)):
        return None
    return find_project(path) or path


def _description(call: Call, name: str) -> str:
    """Return the directory of the client's project, by which another project with the same name is told apart."""
    client = call.client.conversation or call.client
    if name != client.workspace:
        return ""
    if client.workspace_path:
        return client.workspace_path
    root = find_project(Path.cwd())
    return (
        str(root) if root is not None and project_workspace(call.workspaces, root) == name else ""
    )


def require_names(names: Sequence[str]) -> None:
    """Raise BadInput if no name is given."""
    if not any(name.strip() for name in names):
        raise BadInput("names: give at least one name")
