"""The tools that manage projects, and the active project of a client."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Raw
from msgspec.json import encode

from polymnia.dialects.base import Call, Reply, StrictArguments, tool
from polymnia.dialects.project import shapes
from polymnia.dialects.project.shapes import project_shape
from polymnia.dialects.replies import array_reply, json_reply
from polymnia.engine.memory import Memory
from polymnia.errors import (
    BadInput,
    NoWorkspace,
    StoreError,
    StoreSealed,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import Workspace

logger = logging.getLogger(__name__)

NO_PROJECT = "No active project. Use switch_project to select one."
_NAME_IT = (
    'name the project in every request, with "polymnia/workspace" in its _meta or the header '
    "X-Memory-Workspace, because this client has no session"
)
_FIXED = (
    "this client's requests name their project in the header X-Memory-Workspace; "
    "change or drop the header"
)


@tool(shapes.ListProjects, needs="read", returns=shapes.ProjectsReply, idempotent=True)
def list_projects(call: Call, arguments: shapes.ListProjects) -> Reply:
    """List all projects with optional status filter. By default only active projects are listed."""
    status = None if arguments.status == "all" else arguments.status
    projects = []
    for workspace in call.workspaces.find_all(status):
        if call.client.principal.enters(workspace.name):
            projects.append(project_shape(workspace))
    return array_reply(projects, "projects")


@tool(shapes.CreateProject, needs="admin", returns=shapes.ProjectShape)
def create_project(call: Call, arguments: shapes.CreateProject) -> Reply:
    """Create a new project with its own isolated database, and switch to it."""
    call.client.principal.require_entry(arguments.name)
    created = call.workspaces.create(arguments.name, arguments.description)
    note = None
    if not call.client.lasting:
        note = f"To use it, {_NAME_IT}."
    elif call.client.names_workspace:
        note = f"Not switched: {_FIXED} to use {created.name}."
    else:
        _activate(call, created)
    return json_reply(project_shape(created), note=note)


@tool(shapes.SwitchProject, needs="read", returns=shapes.ConfirmedReply, idempotent=True)
def switch_project(call: Call, arguments: shapes.SwitchProject) -> Reply:
    """Switch the active project for the current session. The graph tools work in the active \
project."""
    if not call.client.lasting:
        raise BadInput(f"Cannot switch: {_NAME_IT}.")
    if call.client.names_workspace:
        raise BadInput(f"Cannot switch: {_FIXED} instead.")
    project = _find(call, arguments.name)
    if project.status != "active":
        raise BadInput(f"Project {project.name} is archived. {_how_to_restore(call)}")
    # Raise BadInput if the project's file is missing, damaged or foreign.
    name = project.name
    with _translate_errors(call, name):
        try:
            call.workspaces.memory(name)
        except StoreSealed:
            raise
        except StoreError as exc:
            logger.error("cannot open project %s: %s", name, exc)
            raise BadInput(f"Project {name} cannot be opened: {exc.public}.") from exc
    _activate(call, project)
    return _confirm(f"Switched to project {project.name}.", project)


@tool(StrictArguments, needs="read", returns=shapes.CurrentReply, idempotent=True)
def get_current_project(call: Call, arguments: StrictArguments) -> Reply:
    """Get information about the currently active project."""
    try:
        with active_memory(call):
            shape = project_shape(call.workspaces.find(call.client.workspace or ""))
    except (NoWorkspace, BadInput) as exc:
        return Reply(str(exc), Raw(encode(shapes.CurrentReply(str(exc), None))))
    return Reply(encode(shape).decode(), Raw(encode(shapes.CurrentReply(None, shape))))


@tool(shapes.ArchiveProject, needs="admin", returns=shapes.ConfirmedReply, destructive=True)
def archive_project(call: Call, arguments: shapes.ArchiveProject) -> Reply:
    """Archive a project. Its data is kept, but nobody can use it until restore_project brings it \
back."""
    project = _find(call, arguments.name)
    if project.status != "active":
        raise BadInput(f"Project {project.name} is already archived. {_how_to_restore(call)}")
    with _translate_errors(call, project.name):
        archived = call.workspaces.archive(project.name)
    _deactivate(call, project.name)
    return _confirm(f"Project {project.name} archived.", archived)


@tool(shapes.DeleteProject, needs="admin", returns=shapes.ConfirmedReply, destructive=True)
def delete_project(call: Call, arguments: shapes.DeleteProject) -> Reply:
    """Permanently delete a project and all its data, archived or not. This cannot be undone; \
archive_project can."""
    project = _find(call, arguments.name)
    with _translate_errors(call, project.name):
        deleted = call.workspaces.delete(project.name)
    _deactivate(call, deleted.name)
    return _confirm(f"Project {deleted.name} and all its data deleted.", deleted)


@tool(shapes.RestoreProject, needs="admin", returns=shapes.ProjectShape)
def restore_project(call: Call, arguments: shapes.RestoreProject) -> Reply:
    """Restore an archived project back to active status. switch_project then selects it."""
    project = _find(call, arguments.name)
    if project.status != "archived":
        raise BadInput(f"Project {project.name} is not archived. switch_project selects it.")
    with _translate_errors(call, project.name):
        return json_reply(project_shape(call.workspaces.restore(project.name)))


@contextmanager
def active_memory(call: Call) -> Iterator[Memory]:
    """Yield the memory of the client's project. Raise NoWorkspace, or BadInput if it is gone."""
    name = call.client.workspace
    if name is None:
        raise NoWorkspace(NO_PROJECT if call.client.lasting else f"No active project: {_NAME_IT}.")
    with _translate_errors(call, name):
        memory = call.memory
        _check_identity(call, name)
        yield memory


def _activate(call: Call, project: Workspace) -> None:
    call.client.workspace = project.name
    call.client.workspace_id = project.id


def _deactivate(call: Call, name: str) -> None:
    if call.client.workspace == name:
        call.client.workspace = None
        call.client.workspace_id = ""


def _check_identity(call: Call, name: str) -> None:
    """Raise BadInput if the name now belongs to another project than the one the client chose."""
    client = call.client
    if client.names_workspace or not client.lasting:
        return
    project = call.workspaces.find(name)
    client.workspace_id = client.workspace_id or project.id
    if client.workspace_id != project.id:
        _deactivate(call, name)
        raise BadInput(
            f"Project {name} was deleted or renamed by another client, and a new project has its "
            "name. Use switch_project to select the new one."
        )


def _find(call: Call, name: str) -> Workspace:
    call.client.principal.require_entry(name)
    with _translate_errors(call, name):
        return call.workspaces.find(name)


@contextmanager
def _translate_errors(call: Call, name: str) -> Iterator[None]:
    """Raise errors about workspaces as errors about projects, with advice for the client."""
    try:
        yield
    except WorkspaceArchived as exc:
        raise BadInput(f"Project {name} was archived. {_how_to_restore(call)}") from exc
    except WorkspaceNotFound as exc:
        raise BadInput(
            f"There is no project {name}. Use list_projects to see which exist."
        ) from exc
    except StoreSealed as exc:
        raise BadInput(
            f"Project {name} was archived or deleted during this call; nothing was changed. "
            "Use list_projects to see which exist."
        ) from exc


def _how_to_restore(call: Call) -> str:
    if call.client.principal.may("admin"):
        return "restore_project brings it back."
    return "Only a client with admin rights can restore it."


def _confirm(message: str, project: Workspace) -> Reply:
    return json_reply(shapes.ConfirmedReply(message, project_shape(project)))
