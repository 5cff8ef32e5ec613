"""The workspaces that a call reads and writes: the client's project and its personal one."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from polymnia.dialects.base import Call, Client
from polymnia.dialects.questions import list_roots
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import (
    PERSONAL,
    Workspaces,
    create_missing,
    find_project,
    project_workspace,
)
from polymnia.errors import BadInput, Unanswered, WorkspaceNotFound
from polymnia.search.terms import fold

# What an argument may say instead of the name of the client's own workspace.
PROJECT = "project"


class Place(Struct, frozen=True):
    """A workspace that a call uses, and its memory.

    `is_default` is True if calls without a workspace write to it, `root` is the work tree of the
    project whose files its facts may name.
    """

    name: str
    memory: Memory
    is_default: bool = False
    root: Path | None = None


def own_names(call: Call) -> list[str]:
    """Return the client's project and the personal workspace. They may not exist yet."""
    if call.workspaces.sole is not None:
        return [call.client.workspace or call.workspaces.sole]
    return list(dict.fromkeys([_project(call), _personal(call.client)]))


def places(call: Call, requested: str = "") -> list[Place]:
    """Return the workspaces to read: the requested one, or those of the client that exist.

    Raise NotAllowed, or WorkspaceNotFound for a name that does not exist and is not the client's
    own.
    """
    names = []
    for name in _names(call, requested):
        # True if the client may read the workspace.
        principal = call.client.principal
        if requested or name == own_names(call)[0]:
            principal.require_entry(name)
        may_read = principal.enters(name)
        if may_read:
            names.append(name)
    memories = call.workspaces.memories(names)
    for name in names:
        if name not in memories and not _may_be_missing(call, name):
            raise _unknown_workspace(call, name)
    return [_place(call, name, memory) for name, memory in memories.items()]


def target(call: Call, requested: str = "", *, opened: Sequence[Place] = ()) -> Place:
    """Return the workspace to write to: the project, unless another is requested.

    It may be one of those that are open. Create it if it is the client's own. Raise NotAllowed or
    WorkspaceNotFound.
    """
    name = _names(call, requested)[0]
    principal = call.client.principal
    principal.require_entry(name)
    for place in opened:
        if place.name == name:
            return place
    try:
        return _place(call, name, call.workspaces.memory(name))
    except WorkspaceNotFound as exc:
        if not _may_be_missing(call, name):
            raise _unknown_workspace(call, name) from exc
    if name != _personal(call.client):
        principal.require("admin", f"to create the workspace {name!r}")
    create_missing(call.workspaces, name, _description(call, name))
    return _place(call, name, call.workspaces.memory(name))


def _place(call: Call, name: str, memory: Memory) -> Place:
    is_default = name == own_names(call)[0]
    root = None
    client = call.client.conversation or call.client
    if is_default and client.is_local and name != _personal(client):
        root = Path(client.workspace_path) if client.workspace_path else find_project(Path.cwd())
    return Place(name, memory, is_default, root)


def _unknown_workspace(call: Call, name: str) -> BadInput:
    """Return an error that lists the workspaces that the client may use."""
    names = dict.fromkeys(own_names(call))
    names |= dict.fromkeys(_other_names(call, (), 10))
    return BadInput(f"there is no workspace {name!r}; there are {', '.join(names)}")


def other_places(
    call: Call, known: Sequence[Place], *, limit: int | None = None
) -> Iterator[Place]:
    """Open the workspaces that the client may read besides those, one after the other."""
    for name in _other_names(call, known, limit):
        call.check()
        yield Place(name, call.workspaces.memory(name))


def _other_names(call: Call, known: Sequence[Place], limit: int | None) -> list[str]:
    """Return the names of workspaces that the client may read besides those, at most `limit`."""
    if call.workspaces.sole is not None:
        return []
    known_names = {place.name for place in known}
    enough = None if limit is None else limit + len(known_names)
    found = call.workspaces.find_entered(call.client.principal.workspaces, limit=enough)
    return [one.name for one in found if one.name not in known_names][:limit]


def join_names(used: Sequence[Place]) -> str:
    return " and ".join(place.name for place in used)


def describe_workspaces(workspaces: Workspaces, client: Client) -> str:
    """Return a sentence about the workspaces in use."""
    if workspaces.sole is not None:
        return f"Workspace: {workspaces.sole}."
    personal = _personal(client)
    if client.workspace in (None, PERSONAL, personal):
        return f"Workspace: {personal}."
    project = f"{client.workspace} (this project; the default for writes)"
    return f"Workspaces: {project} and {personal} (about the user)."


def _names(call: Call, requested: str) -> list[str]:
    own = own_names(call)
    if not requested:
        return own
    if requested == PROJECT:
        return own[:1]
    if fold(requested) == PERSONAL:
        # A single file holds both.
        return own if call.workspaces.sole is not None else [_personal(call.client)]
    return [_known_name(call, requested, own)]


def _known_name(call: Call, requested: str, own: Sequence[str]) -> str:
    """Return the only workspace of that name in another case; the requested name if none is."""
    if requested in own:
        return requested
    try:
        return call.workspaces.find(requested).name
    except WorkspaceNotFound:
        known = dict.fromkeys(own)
    for workspace in call.workspaces.find_entered(call.client.principal.workspaces):
        known[workspace.name] = None
    alike = [name for name in known if fold(name) == fold(requested)]
    return alike[0] if len(alike) == 1 else requested


def _may_be_missing(call: Call, name: str) -> bool:
    """Return True for the client's own workspaces, which the first write creates.

    A workspace that the request itself names must exist: a typing error should not create one.
    """
    if call.workspaces.sole is not None or name not in own_names(call):
        return False
    is_named = call.client.names_workspace and name == call.client.workspace
    return not is_named


def _project(call: Call) -> str:
    """Return the client's project: what the server found, or else what the client's roots say."""
    client = call.client.conversation or call.client
    known, personal = call.client.workspace, _personal(client)
    if known not in (None, PERSONAL, personal):
        return known
    # Without a session the answer would be forgotten, and the client asked again at every call.
    if client.has_told_roots or not client.lasting:
        return personal
    root = _ask_for_root(call)
    client.has_told_roots = True
    if root is None:
        return personal
    project = project_workspace(call.workspaces, root)
    if not client.principal.enters(project):
        return personal
    client.workspace, client.workspace_path = project, str(root)
    return project


def _personal(client: Client) -> str:
    """Return the workspace about the user: their own, or the one that all share."""
    return client.principal.own_workspace or PERSONAL


def _ask_for_root(call: Call) -> Path | None:
    """Return the first of the client's roots that is a project."""
    if not call.may_ask("roots"):
        return None
    try:
        answer = call.ask(list_roots())
    except Unanswered:
        return None
    for root in answer.roots:
        path = _root_path(root.uri)
        if path is not None:
            return path
    return None


def _root_path(uri: str) -> Path | None:
    """Return the project around a root, or the root itself if it is a directory on this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    from urllib.request import url2pathname  # rarely needed, and slow to import

    path = Path(url2pathname(unquote(parts.path)))
    # A home directory or a file system is where a client starts if the user opened no project.
    if not path.is_dir() or path in (Path.home(), Path(path.anchor)):
        return None
    return find_project(path) or path


def _description(call: Call, name: str) -> str:
    """Return the directory of the client's project. It distinguishes projects of the same name."""
    client = call.client.conversation or call.client
    if name != client.workspace:
        return ""
    if client.workspace_path:
        return client.workspace_path
    root = find_project(Path.cwd())
    if root is None or project_workspace(call.workspaces, root) != name:
        return ""
    return str(root)
