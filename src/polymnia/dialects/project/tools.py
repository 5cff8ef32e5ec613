"""The tools that manage projects, and those for the graph of the active one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Raw
from msgspec.json import encode

from polymnia.dialects.base import Call, Reply, StrictArguments, tool
from polymnia.dialects.project import shapes
from polymnia.dialects.project.shapes import (
    added_shape,
    entity_shape,
    node_shapes,
    project_shape,
    relation_shape,
)
from polymnia.dialects.replies import (
    array_reply,
    in_order,
    json_reply,
    matching_notes,
    unchanged_note,
)
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.errors import (
    BadInput,
    NoWorkspace,
    StoreError,
    StoreSealed,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import EntityDraft, FactAddition, Relation, Workspace

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
        memory, client = call.memory, call.client
        if client.lasting and not client.names_workspace:
            # The name may now belong to another project than the one that the client chose.
            project = call.workspaces.find(name)
            client.workspace_id = client.workspace_id or project.id
            if client.workspace_id != project.id:
                _deactivate(call, name)
                raise BadInput(
                    f"Project {name} was deleted or renamed by another client, and a new project "
                    "has its name. Use switch_project to select the new one."
                )
        yield memory


def _activate(call: Call, project: Workspace) -> None:
    call.client.workspace = project.name
    call.client.workspace_id = project.id


def _deactivate(call: Call, name: str) -> None:
    if call.client.workspace == name:
        call.client.workspace = None
        call.client.workspace_id = ""


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


@tool(shapes.ProjectCreateEntities, needs="write", returns=shapes.ProjectEntitiesReply)
def create_entities(call: Call, arguments: shapes.ProjectCreateEntities) -> Reply:
    """Create one or more entities in the knowledge graph. Existing names are left unchanged."""
    drafts = [
        EntityDraft(shape.name, shape.entity_type, tuple(shape.observations))
        for shape in arguments.entities
    ]
    with active_memory(call) as memory:
        created = entities.create(memory, drafts, by=call.by)
    names = sorted(draft.name for draft in drafts)
    note = unchanged_note(names, [entity.name for entity in created])
    return array_reply([entity_shape(entity) for entity in created], "entities", note)


@tool(shapes.ProjectAddObservations, needs="write", returns=shapes.ObservationsReply)
def add_observations(call: Call, arguments: shapes.ProjectAddObservations) -> Reply:
    """Add observations to existing entities."""
    drafts = [
        FactAddition(shape.entity_name, tuple(shape.contents)) for shape in arguments.observations
    ]
    with active_memory(call) as memory:
        additions = facts.add(memory, drafts, by=call.by)
    added = []
    for addition in additions:
        entity = addition.before
        assert entity is not None  # unknown names are refused
        added += [added_shape(entity, observation) for observation in addition.facts]
    return array_reply(added, "observations")


@tool(shapes.ProjectRelations, needs="write", returns=shapes.ProjectRelationsReply)
def create_relations(call: Call, arguments: shapes.ProjectRelations) -> Reply:
    """Create directed relations between entities. Both must exist. Existing relations are left \
unchanged."""
    requested = _relations(arguments)
    with active_memory(call) as memory:
        created = relations.create(memory, requested, by=call.by, unknown_ends="refuse").new
    note = unchanged_note(_arrows(requested), _arrows(created))
    return array_reply([relation_shape(relation) for relation in created], "relations", note)


@tool(shapes.ProjectSearchNodes, needs="read", returns=shapes.NodesReply, idempotent=True)
def search_nodes(call: Call, arguments: shapes.ProjectSearchNodes) -> Reply:
    """Search entities and observations using FTS5 full-text search, best match first: words, \
"phrases", prefix*, AND, OR, NOT, and columns as in name: alice (name, entity_type, content). \
Words without an operator must all occur. Text that is not valid FTS5 is searched as plain words. \
Every match is returned: use specific words."""
    with active_memory(call) as memory:
        graph = search.full_text(memory, arguments.query)
        note = matching_notes(memory, arguments.query)
    return array_reply(node_shapes(graph.entities, graph.relations), "entities", note)


@tool(shapes.ProjectOpenNodes, needs="read", returns=shapes.NodesReply, idempotent=True)
def open_nodes(call: Call, arguments: shapes.ProjectOpenNodes) -> Reply:
    """Retrieve specific entities by exact name match, with their observations and relations."""
    with active_memory(call) as memory:
        graph = entities.open_named(memory, set(arguments.names))
    nodes = node_shapes(in_order(graph, arguments.names), graph.relations)
    return array_reply(nodes, "entities")


@tool(StrictArguments, needs="read", returns=shapes.GraphReply, idempotent=True)
def read_graph(call: Call, arguments: StrictArguments) -> Reply:
    """Read the entire knowledge graph of the current project. It can be large: prefer \
search_nodes."""
    with active_memory(call) as memory:
        graph = entities.read_all(memory)
    call.check()
    entity_shapes = [entity_shape(entity) for entity in graph.entities]
    call.check()
    relation_shapes = [relation_shape(relation) for relation in graph.relations]
    return json_reply(shapes.GraphReply(entity_shapes, relation_shapes))


@tool(
    shapes.ProjectDeleteEntities,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_entities(call: Call, arguments: shapes.ProjectDeleteEntities) -> Reply:
    """Delete entities with their observations and relations. Returns how many entities were \
deleted."""
    with active_memory(call) as memory:
        deleted = entities.delete(memory, set(arguments.names), by=call.by)
    return json_reply(shapes.CountReply(len(deleted.entities)))


@tool(
    shapes.ProjectDeleteObservations,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_observations(call: Call, arguments: shapes.ProjectDeleteObservations) -> Reply:
    """Delete specific observations from entities by their exact text. Returns how many were \
deleted."""
    removals = [(shape.entity_name, shape.observations) for shape in arguments.deletions]
    with active_memory(call) as memory:
        removed = facts.remove(memory, removals, by=call.by)
    return json_reply(shapes.CountReply(sum(len(removal.facts) for removal in removed)))


@tool(
    shapes.ProjectRelations,
    needs="write",
    returns=shapes.CountReply,
    destructive=True,
    idempotent=True,
)
def delete_relations(call: Call, arguments: shapes.ProjectRelations) -> Reply:
    """Delete specific relations by their exact from, to and relation_type. Returns how many were \
deleted."""
    with active_memory(call) as memory:
        deleted = relations.delete(memory, _relations(arguments), by=call.by)
    return json_reply(shapes.CountReply(len(deleted)))


def _relations(arguments: shapes.ProjectRelations) -> list[Relation]:
    return [
        Relation(shape.source, shape.target, shape.relation_type) for shape in arguments.relations
    ]


def _arrows(relations: list[Relation]) -> list[str]:
    return [f"{relation.source} -{relation.type}-> {relation.target}" for relation in relations]
