"""Further tools that a server offers with `--toolsets`."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct
from msgspec.json import encode

from polymnia.dialects.base import Call, Reply, Tool, tool
from polymnia.dialects.native.recalling import search_places
from polymnia.dialects.native.replies import (
    clean_reply,
    line_item,
    page_reply,
    short_time,
)
from polymnia.dialects.native.scope import Place, places, target
from polymnia.dialects.native.shapes import Arguments, Bounded, Found
from polymnia.dialects.questions import confirmation
from polymnia.dialects.replies import json_reply
from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.history import trash
from polymnia.errors import BadInput, SettingsError
from polymnia.model import VAULT, Entity, Note, NoteQuery, Relation
from polymnia.search.terms import one_line
from polymnia.search.times import iso_time

MAX_READ_CHARACTERS = 4_000_000
_MAX_RESULTS = 20
_MAX_FOUND_NOTES = 200
# Between the workspace and the name in the id of a document.
_SEPARATOR = "::"


class WriteNote(Arguments, frozen=True, kw_only=True):
    key: str
    content: str
    tags: list[str] = []


class FindNotes(Bounded, frozen=True, kw_only=True):
    query: str = ""
    tags: list[str] = []
    prefix: Annotated[str, Meta(description="how the keys begin")] = ""


class ReadNotes(Arguments, frozen=True, kw_only=True):
    keys: Annotated[list[str], Meta(max_length=100)]


class DeleteNotes(Arguments, frozen=True, kw_only=True):
    key: str


class ListWorkspaces(Bounded, frozen=True, kw_only=True):
    pass


class ManageWorkspace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Literal["create", "archive", "restore", "rename", "describe", "delete"]
    name: str
    to: Annotated[str, Meta(description="new name or description")] = ""
    confirm: Annotated[bool, Meta(description="delete it")] = False


class Trash(Bounded, frozen=True, kw_only=True):
    restore: Annotated[str, Meta(description="id or name to bring back")] = ""


class SearchDocuments(Struct, frozen=True, kw_only=True):
    query: str


class Fetch(Struct, frozen=True, kw_only=True):
    id: str


class SearchReply(Struct, frozen=True):
    results: list[dict[str, str]]


class FetchReply(Struct, frozen=True):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


@tool(WriteNote, needs="write", destructive=True, idempotent=True, brief=True)
def write_note(call: Call, arguments: WriteNote) -> Reply:
    """Store a longer text under a key, or replace it."""
    place = target(call, arguments.workspace)
    note = Note(arguments.key, arguments.content, tuple(arguments.tags))
    stored = notes.commit(place.memory, note, by=call.by)
    updated = short_time(stored.updated_at)
    return _json_lines([{"key": stored.key, "workspace": place.name, "updated": updated}])


@tool(FindNotes, needs="read", brief=True)
def find_notes(call: Call, arguments: FindNotes) -> Reply:
    """Search the notes, or list them without a query."""
    items = []
    for place in places(call, arguments.workspace):
        for note in _find_notes(place, arguments):
            text = one_line(note.content)
            updated = short_time(note.updated_at)
            line = f"- {note.key}: {text} [{updated}, {place.name}]"
            items.append(line_item(line, {"key": note.key}))
    return page_reply(items, arguments, note_if_empty="No notes found.")


def _find_notes(place: Place, arguments: FindNotes) -> list[Note]:
    if not place.memory.store.capabilities.notes:
        return []
    if not arguments.query:
        return notes.listing(place.memory, prefix=arguments.prefix, tags=arguments.tags)
    tags = tuple(arguments.tags)
    query = NoteQuery(text=arguments.query, tags=tags, limit=_MAX_FOUND_NOTES)
    hits = notes.search(place.memory, query, [VAULT]).hits
    return [hit.note for hit in hits if hit.note.key.startswith(arguments.prefix)]


@tool(ReadNotes, needs="read", brief=True)
def read_notes(call: Call, arguments: ReadNotes) -> Reply:
    """Return notes by their keys, complete and unchanged."""
    items: list[dict[str, Any]] = []
    for place in places(call, arguments.workspace):
        if not place.memory.store.capabilities.notes:
            continue
        for note in notes.read_many(place.memory, VAULT, arguments.keys):
            items.append(
                {
                    "key": note.key,
                    "content": note.content,
                    "tags": list(note.tags),
                    "created": iso_time(note.created_at),
                    "updated": iso_time(note.updated_at),
                    "workspace": place.name,
                }
            )
    size = sum(len(item["content"]) for item in items)
    if size > MAX_READ_CHARACTERS:
        raise BadInput(f"that is {size:,} characters, too many for a reply; read fewer notes")
    if not items:
        return clean_reply("No note has such a key.")
    return _json_lines(items)


@tool(DeleteNotes, needs="write", destructive=True, brief=True)
def delete_note(call: Call, arguments: DeleteNotes) -> Reply:
    """Delete a note by its key; undo brings it back."""
    place = target(call, arguments.workspace)
    deleted = notes.prune(place.memory, [VAULT], by=call.by, key=arguments.key)
    return _json_lines([{"key": arguments.key, "deleted": deleted, "workspace": place.name}])


@tool(ListWorkspaces, needs="admin", brief=True)
def list_workspaces(call: Call, arguments: ListWorkspaces) -> Reply:
    """List the workspaces with their status."""
    items = []
    for workspace in call.workspaces.find_all():
        if not call.client.principal.enters(workspace.name):
            continue
        text = one_line(workspace.description)
        items.append(line_item(f"- {workspace.name} ({workspace.status}): {text}"))
    return page_reply(items, arguments, head="Workspaces:")


@tool(ManageWorkspace, needs="admin", destructive=True, brief=True)
def manage_workspace(call: Call, arguments: ManageWorkspace) -> Reply:
    """Create, archive, restore, rename, describe or delete a workspace."""
    principal, workspaces = call.client.principal, call.workspaces
    action, name = arguments.action, arguments.name
    principal.require_entry(name)
    if action == "rename":
        if not arguments.to:
            raise BadInput("to: rename needs a new name")
        principal.require_entry(arguments.to)
        workspace = workspaces.rename(name, arguments.to)
    elif action == "describe":
        if not arguments.to:
            raise BadInput("to: describe needs a new description")
        workspace = workspaces.describe(name, arguments.to)
    elif action == "create":
        workspace = workspaces.create(name, arguments.to)
    elif action == "archive":
        workspace = workspaces.archive(name)
    elif action == "restore":
        workspace = workspaces.restore(name)
    else:
        # Raise BadInput if the user declines, or cannot be asked and the call does not confirm.
        text = f"Delete the workspace {arguments.name} with everything in it?"
        is_agreed = call.confirm(confirmation("delete", text), otherwise=arguments.confirm)
        if is_agreed is None:
            raise BadInput(f"that would delete everything in {arguments.name}: pass confirm: true")
        if not is_agreed:
            raise BadInput("the user declined; nothing was deleted")
        workspace = workspaces.delete(name)
    return _json_lines([{"name": workspace.name, "status": workspace.status, "action": action}])


@tool(Trash, needs="admin", destructive=True, brief=True)
def trash_can(call: Call, arguments: Trash) -> Reply:
    """List what was deleted, latest first, or restore one of it."""
    if arguments.restore:
        place = target(call, arguments.workspace)
        rows = trash.restore(place.memory, arguments.restore, by=call.by)
        names = [entity.name for entity in rows.entities]
        names += [changed.entity for changed in rows.facts]
        item = {"restored": names or [arguments.restore], "relations": len(rows.relations)}
        return _json_lines([item])
    items = []
    for place in places(call, arguments.workspace)[:1]:
        for deleted in trash.items(place.memory):
            at = short_time(deleted.deleted_at)
            items.append(line_item(f"- {deleted.id} deleted {at}"))
    return page_reply(items, arguments, note_if_empty="Nothing was deleted.")


@tool(SearchDocuments, needs="read", returns=SearchReply)
def search(call: Call, arguments: SearchDocuments) -> Reply:
    """Search the memory; fetch returns the document of a result."""
    results: dict[str, dict[str, str]] = {}
    for place, hit in search_places(call, arguments.query, limit=_MAX_RESULTS):
        passage = hit.passage
        if passage.kind == "note":
            continue
        result = {
            "id": f"{place.name}{_SEPARATOR}{passage.entity}",
            "title": f"{passage.entity} ({passage.type})",
            "url": _document_url(passage.entity),
        }
        results.setdefault(result["id"], result)  # several facts of an entity are one document
    return json_reply(SearchReply(list(results.values())))


@tool(Fetch, needs="read", returns=FetchReply)
def fetch(call: Call, arguments: Fetch) -> Reply:
    """Return the document of a search result: everything about an entity."""
    workspace, _, name = arguments.id.rpartition(_SEPARATOR)
    for place in places(call, workspace):
        graph = entities.open_named(place.memory, [name])
        if graph.entities:
            return json_reply(_document(place, graph.entities[0], graph.relations))
    raise BadInput(f"there is no document {arguments.id!r}; use an id that search returned")


def _document(place: Place, entity: Entity, relations: list[Relation]) -> FetchReply:
    lines = [entity.summary or "", *entity.texts]
    for relation in relations:
        lines.append(f"{relation.source} {relation.type} {relation.target}")
    return FetchReply(
        id=f"{place.name}{_SEPARATOR}{entity.name}",
        title=f"{entity.name} ({entity.type})",
        text="\n".join(lines).strip(),
        url=_document_url(entity.name),
        metadata={
            "type": entity.type,
            "workspace": place.name,
            "updated": short_time(entity.updated_at),
        },
    )


def _document_url(name: str) -> str:
    return f"polymnia://entity/{quote(name, safe='')}"


def _json_lines(items: list[dict[str, Any]]) -> Reply:
    """Return one JSON object on each line, as text and for programs."""
    text = "\n".join(encode(item).decode() for item in items)
    return clean_reply(text, Found(items=items))


TOOLSETS: dict[str, tuple[Tool, ...]] = {
    "notes": (write_note, find_notes, read_notes, delete_note),
    "admin": (list_workspaces, manage_workspace, trash_can),
    "search-fetch": (search, fetch),
}


def tools_of(toolsets: Iterable[str]) -> list[Tool]:
    """Return the tools of these toolsets; `all` stands for every one. Raise SettingsError."""
    chosen: dict[str, tuple[Tool, ...]] = {}
    for name in toolsets:
        if name == "all":
            chosen |= TOOLSETS
        elif name in TOOLSETS:
            chosen[name] = TOOLSETS[name]
        else:
            raise SettingsError(f"unknown toolset {name!r}: use {', '.join(TOOLSETS)} or all")
    return [tool for tools in chosen.values() for tool in tools]
