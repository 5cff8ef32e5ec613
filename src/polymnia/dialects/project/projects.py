"""The tools for projects: list, create, switch, look, archive, restore, delete."""

from polymnia.dialects.base import Call, Reply, tool
from polymnia.dialects.project import shapes
from polymnia.dialects.project.replies import plain, project_shape, wrapped
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, NoWorkspace, WorkspaceArchived, WorkspaceNotFound
from polymnia.model import Workspace

NO_PROJECT = "No active project. Use switch_project to select one."
_NAME_IT = (
    'name the project with every request: "polymnia/workspace" in its _meta, or the header X-Memory-Workspace, since '
    "nothing is kept between the requests of this client"
)


@tool(shapes.ListProjects, needs="read", returns=shapes.ProjectsReply, idempotent=True)
def list_projects(call: Call, arguments: shapes.ListProjects) -> Reply:
    """List all projects with optional status filter."""
    status = None if arguments.status == "all" else arguments.status
    enters = call.client.principal.enters
    shaped = [project_shape(each) for each in call.workspaces.listed(status) if enters(each.name)]
    return wrapped(shaped, shapes.ProjectsReply(shaped))


@tool(shapes.CreateProject, needs="admin", returns=shapes.ProjectShape)
def create_project(call: Call, arguments: shapes.CreateProject) -> Reply:
    """Create a new project with its own isolated database, and switch to it."""
    call.client.principal.require_entry(arguments.name)
    created = call.workspaces.create(arguments.name, arguments.description)
    call.client.workspace = created.name
    return plain(project_shape(created), note=None if call.client.lasting else f"To use it, {_NAME_IT}.")


@tool(shapes.SwitchProject, needs="read", returns=shapes.ConfirmedReply, idempotent=True)
def switch_project(call: Call, arguments: shapes.SwitchProject) -> Reply:
    """Switch the active project for the current session. The graph tools work in the active project."""
    if not call.client.lasting:
        raise BadInput(f"This client cannot switch: {_NAME_IT}.")
    project = _found(call, arguments.name)
    if project.status != "active":
        raise BadInput(f"Project {project.name} is archived. restore_project brings it back.")
    call.client.workspace = project.name
    return _confirmed(f"Switched to project {project.name}.", project)


@tool(shapes.Nothing, needs="read", returns=shapes.CurrentReply, idempotent=True)
def get_current_project(call: Call, arguments: shapes.Nothing) -> Reply:
    """Get information about the currently active project."""
    try:
        active_memory(call)
    except (NoWorkspace, BadInput) as exc:
        message = str(exc)
        return Reply(message, plain(shapes.CurrentReply(message, None)).structured)
    shape = project_shape(call.workspaces.find(call.client.workspace or ""))
    return Reply(plain(shape).text, plain(shapes.CurrentReply(None, shape)).structured)


@tool(shapes.ArchiveProject, needs="admin", returns=shapes.ConfirmedReply, destructive=True)
def archive_project(call: Call, arguments: shapes.ArchiveProject) -> Reply:
    """Archive a project. Its data is kept, and restore_project brings it back; until then nobody can use it."""
    project = _found(call, arguments.name)
    if project.status != "active":
        raise BadInput(f"Project {project.name} is archived already. restore_project brings it back.")
    archived = call.workspaces.archive(project.name)
    _leave(call, project.name)
    return _confirmed(f"Project {project.name} archived.", archived)


@tool(shapes.DeleteProject, needs="admin", returns=shapes.ConfirmedReply, destructive=True)
def delete_project(call: Call, arguments: shapes.DeleteProject) -> Reply:
    """Permanently delete a project and all its data, archived or not. This cannot be undone; archive_project can."""
    deleted = call.workspaces.delete(_found(call, arguments.name).name)
    _leave(call, deleted.name)
    return _confirmed(f"Project {deleted.name} and all its data deleted.", deleted)


@tool(shapes.RestoreProject, needs="admin", returns=shapes.ProjectShape)
def restore_project(call: Call, arguments: shapes.RestoreProject) -> Reply:
    """Restore an archived project back to active status. switch_project then selects it."""
    project = _found(call, arguments.name)
    if project.status != "archived":
        raise BadInput(f"Project {project.name} is not archived. switch_project selects it.")
    return plain(project_shape(call.workspaces.restore(project.name)))


def active_memory(call: Call) -> Memory:
    """The memory of the client's project. Raises NoWorkspace, or BadInput when somebody has put it away."""
    name = call.client.workspace
    if name is None:
        raise NoWorkspace(NO_PROJECT if call.client.lasting else f"No active project: {_NAME_IT}.")
    try:
        return call.memory
    except WorkspaceArchived as exc:
        raise BadInput(f"Project {name} was archived. restore_project brings it back.") from exc
    except WorkspaceNotFound as exc:
        raise _unknown(name) from exc


def _found(call: Call, name: str) -> Workspace:
    call.client.principal.require_entry(name)
    try:
        return call.workspaces.find(name)
    except WorkspaceNotFound as exc:
        raise _unknown(name) from exc


def _unknown(name: str) -> BadInput:
    return BadInput(f"There is no project {name}. Use list_projects to see which there are.")


def _leave(call: Call, name: str) -> None:
    if call.client.workspace == name:
        call.client.workspace = None


def _confirmed(message: str, project: Workspace) -> Reply:
    return plain(shapes.ConfirmedReply(message, project_shape(project)))
