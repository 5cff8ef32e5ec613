"""Further tools that a server offers with `--toolsets`: notes, export, admin, and `search` with `fetch`."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Raw, Struct
from msgspec.json import encode

from polymnia.dialects.base import Call, Reply, Tool, tool
from polymnia.dialects.document import encode_document
from polymnia.dialects.native.budget import Item, bounded_reply, offset_of
from polymnia.dialects.native.lines import line_item, one_line, short_time
from polymnia.dialects.native.recalling import search_places
from polymnia.dialects.native.scope import Place, places, target
from polymnia.dialects.native.shapes import Arguments, Bounded, Items
from polymnia.dialects.questions import confirmation
from polymnia.engine import entities, notes, transfer, trash, traverse
from polymnia.engine.diagrams import as_dot, as_mermaid
from polymnia.engine.memory import statistics
from polymnia.errors import BadInput, SettingsError
from polymnia.model import VAULT, Graph, Note, NoteQuery

MAX_EXPORT_BYTES = 20_000
_PLACE_SEPARATOR = "::"


class WriteNote(Arguments, frozen=True, kw_only=True):
    key: str
    content: str
    tags: list[str] = []


class FindNotes(Bounded, frozen=True, kw_only=True):
    query: str = ""
    tags: list[str] = []


class DeleteNotes(Arguments, frozen=True, kw_only=True):
    key: str


class Export(Arguments, frozen=True, kw_only=True):
    format: Literal["json", "mermaid", "dot"] = "json"
    names: Annotated[list[str], Meta(description="only these and what is near")] = []


class Workspaces(Bounded, frozen=True, kw_only=True):
    pass


class ManageWorkspace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Literal["create", "archive", "restore", "rename", "describe", "delete"]
    name: str
    to: Annotated[str, Meta(description="new name or description")] = ""
    confirm: Annotated[bool, Meta(description="delete it")] = False


class Trash(Bounded, frozen=True, kw_only=True):
    restore: Annotated[str, Meta(description="id or name to bring back")] = ""


class Statistics(Arguments, frozen=True, kw_only=True):
    pass


class Search(Struct, frozen=True, kw_only=True):
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


@tool(WriteNote, needs="write", returns=Items, destructive=True, idempotent=True, brief=True)
def write_note(call: Call, arguments: WriteNote) -> Reply:
    """Store a longer text under a key, or replace it."""
    place = target(call, arguments.workspace)
    stored = notes.commit(
        place.memory, Note(arguments.key, arguments.content, tuple(arguments.tags)), by=call.by
    )
    return _items_reply(
        [{"key": stored.key, "workspace": place.name, "updated": short_time(stored.updated_at)}]
    )


@tool(FindNotes, needs="read", returns=Items, brief=True)
def find_notes(call: Call, arguments: FindNotes) -> Reply:
    """Search the notes, or list them without a query."""
    offset = offset_of(arguments.cursor)
    found = [
        (place, note)
        for place in places(call, arguments.workspace)
        for note in _notes(place, arguments)
    ]
    items = [_note_item(place, note) for place, note in found[offset : offset + arguments.limit]]
    note = "" if items else "No notes found."
    return bounded_reply(
        items, max_tokens=arguments.max_tokens, offset=offset, total=len(found), note=note
    )


@tool(DeleteNotes, needs="write", returns=Items, destructive=True, brief=True)
def delete_note(call: Call, arguments: DeleteNotes) -> Reply:
    """Delete a note by its key; undo brings it back."""
    place = target(call, arguments.workspace)
    deleted = notes.prune(place.memory, [VAULT], by=call.by, key=arguments.key)
    return _items_reply([{"key": arguments.key, "deleted": deleted, "workspace": place.name}])


@tool(Export, needs="read", returns=Items, brief=True)
def export(call: Call, arguments: Export) -> Reply:
    """Export the memory, or what is around some names, as JSON, Mermaid or Graphviz. Large exports are refused."""
    place = _first(call, arguments.workspace)
    graph = _export_graph(place, arguments.names)
    text = {
        "json": _document(place, graph, arguments.names),
        "mermaid": as_mermaid(graph),
        "dot": as_dot(graph),
    }[arguments.format]
    if len(text.encode()) > MAX_EXPORT_BYTES:
        raise BadInput(
            f"that is {len(text.encode()):,} bytes, too many for a reply; name fewer entities, or run `polymnia export`"
        )
    return Reply(text, Raw(encode(Items(items=[{"format": arguments.format, "text": text}]))))


@tool(Workspaces, needs="admin", returns=Items, brief=True)
def list_workspaces(call: Call, arguments: Workspaces) -> Reply:
    """List the workspaces with their status."""
    found = [each for each in call.workspaces.find_all() if call.client.principal.enters(each.name)]
    offset = offset_of(arguments.cursor)
    items = [
        line_item(f"- {each.name} ({each.status}): {one_line(each.description)}",
                  {"name": each.name, "status": each.status, "text": one_line(each.description)})
        for each in found[offset : offset + arguments.limit]
    ]  # fmt: skip
    return bounded_reply(
        items, max_tokens=arguments.max_tokens, offset=offset, total=len(found), head="Workspaces:"
    )


@tool(ManageWorkspace, needs="admin", returns=Items, destructive=True, brief=True)
def manage_workspace(call: Call, arguments: ManageWorkspace) -> Reply:
    """Create, archive, restore, rename, describe or delete a workspace."""
    call.client.principal.require_entry(arguments.name)
    if arguments.action in ("rename", "describe") and not arguments.to:
        raise BadInput(
            f"to: {arguments.action} needs a new {'name' if arguments.action == 'rename' else 'description'}"
        )
    if arguments.action == "rename":
        call.client.principal.require_entry(arguments.to)
        changed = call.workspaces.rename(arguments.name, arguments.to)
    elif arguments.action in ("create", "describe"):
        changed = getattr(call.workspaces, arguments.action)(arguments.name, arguments.to)
    else:
        if arguments.action == "delete":
            _confirm_deletion(call, arguments)
        changed = getattr(call.workspaces, arguments.action)(arguments.name)
    return _items_reply(
        [{"name": changed.name, "status": changed.status, "action": arguments.action}]
    )


@tool(Trash, needs="admin", returns=Items, destructive=True, brief=True)
def trash_can(call: Call, arguments: Trash) -> Reply:
    """List what was deleted, latest first, or restore one of it."""
    if arguments.restore:
        place = target(call, arguments.workspace)
        back = trash.restore(place.memory, arguments.restore, by=call.by)
        names = [each.name for each in back.entities] + [each.entity for each in back.observations]
        return _items_reply(
            [{"restored": names or [arguments.restore], "relations": len(back.relations)}]
        )
    found = [
        each
        for place in places(call, arguments.workspace)[:1]
        for each in trash.items(place.memory)
    ]
    offset = offset_of(arguments.cursor)
    items = [
        line_item(
            f"- {each.id} deleted {short_time(each.deleted_at)}",
            {"id": each.id, "deleted": short_time(each.deleted_at)},
        )
        for each in found[offset : offset + arguments.limit]
    ]
    note = "" if items else "Nothing was deleted."
    return bounded_reply(
        items, max_tokens=arguments.max_tokens, offset=offset, total=len(found), note=note
    )


@tool(Statistics, needs="read", returns=Items, brief=True)
def stats(call: Call, arguments: Statistics) -> Reply:
    """Count what the workspaces hold."""
    found = []
    for place in places(call, arguments.workspace):
        known = statistics(place.memory)
        with place.memory.reading() as read:
            relation_types = {each.type: each.count for each in read.relation_types()[:20]}
            types = {each.type: each.count for each in read.entity_types()[:20]}
        counts = known.counts
        found.append(
            {
                "workspace": place.name,
                "entities": counts.entities,
                "facts": counts.observations,
                "relations": counts.relations,
                "text_bytes": known.text_bytes,
                "types": types,
                "relation_types": relation_types,
            }
        )
    return _items_reply(found)


@tool(Search, needs="read", returns=SearchReply)
def search(call: Call, arguments: Search) -> Reply:
    """Search the memory; fetch returns the document of a result."""
    names: dict[tuple[str, str], str] = {}
    for place, hit in search_places(call, arguments.query, limit=20):
        if hit.passage.kind != "note":
            names.setdefault((place.name, hit.passage.entity), hit.passage.type)
    results = [
        {"id": _document_id(place, name), "title": f"{name} ({kind})", "url": _document_url(name)}
        for (place, name), kind in names.items()
    ]
    encoded = encode(SearchReply(results))
    return Reply(encoded.decode(), Raw(encoded))


@tool(Fetch, needs="read", returns=FetchReply)
def fetch(call: Call, arguments: Fetch) -> Reply:
    """Return the document of a search result: everything known of an entity."""
    where, _, name = arguments.id.rpartition(_PLACE_SEPARATOR)
    for place in places(call, where):
        graph = entities.open_named(place.memory, [name])
        for entity in graph.entities:
            relations = [f"{each.source} {each.type} {each.target}" for each in graph.relations]
            text = "\n".join([entity.summary or "", *entity.texts, *relations]).strip()
            about = {
                "type": entity.type,
                "workspace": place.name,
                "updated": short_time(entity.updated_at),
            }
            found = FetchReply(
                _document_id(place.name, name),
                f"{name} ({entity.type})",
                text,
                _document_url(name),
                about,
            )
            encoded = encode(found)
            return Reply(encoded.decode(), Raw(encoded))
    raise BadInput(f"there is no document {arguments.id!r}; use an id that search returned")


TOOLSETS: dict[str, tuple[Tool, ...]] = {
    "notes": (write_note, find_notes, delete_note),
    "export": (export, stats),
    "admin": (list_workspaces, manage_workspace, trash_can),
    "search-fetch": (search, fetch),
}


def chosen_tools(names: Iterable[str]) -> list[Tool]:
    """Return the tools of these toolsets; `all` stands for every one. Raise SettingsError."""
    wanted = dict.fromkeys(
        name for each in names for name in (TOOLSETS if each == "all" else (each,))
    )
    for name in wanted:
        if name not in TOOLSETS:
            raise SettingsError(f"unknown toolset {name!r}: use {', '.join(TOOLSETS)} or all")
    return [each for name in wanted for each in TOOLSETS[name]]


def _notes(place: Place, arguments: FindNotes) -> list[Note]:
    if not place.memory.store.capabilities.notes:
        return []
    if not arguments.query:
        listed = notes.page(place.memory, VAULT, limit=1_000)
        return [each for each in listed if set(arguments.tags) <= set(each.tags)]
    query = NoteQuery(text=arguments.query, tags=tuple(arguments.tags), limit=200)
    return [each.note for each in notes.search(place.memory, query, [VAULT]).hits]


def _note_item(place: Place, note: Note) -> Item:
    data: dict[str, Any] = {
        "key": note.key,
        "text": one_line(note.content),
        "tags": list(note.tags),
        "updated": short_time(note.updated_at),
        "workspace": place.name,
    }
    return line_item(f"- {note.key}: {data['text']} [{data['updated']}, {place.name}]", data)


def _confirm_deletion(call: Call, arguments: ManageWorkspace) -> None:
    """Raise BadInput if the user declines, or nobody confirms where no user can be asked."""
    question = confirmation(
        "delete", f"Delete the workspace {arguments.name} with everything in it?"
    )
    is_agreed = call.confirm(question, otherwise=arguments.confirm)
    if is_agreed is None:
        raise BadInput(f"that would delete everything in {arguments.name}: pass confirm: true")
    if not is_agreed:
        raise BadInput("the user declined; nothing was deleted")


def _first(call: Call, workspace: str) -> Place:
    found = places(call, workspace)
    if not found:
        raise BadInput("there is nothing here yet")
    return found[0]


def _export_graph(place: Place, names: list[str]) -> Graph:
    return traverse.subgraph(place.memory, names, 1) if names else entities.read_all(place.memory)


def _document(place: Place, graph: Graph, names: list[str]) -> str:
    kept = [] if names else transfer.vault_notes(place.memory)
    return encode_document(graph, kept).decode()


def _document_id(place: str, name: str) -> str:
    return f"{place}{_PLACE_SEPARATOR}{name}"


def _document_url(name: str) -> str:
    return f"polymnia://entity/{quote(name, safe='')}"


def _items_reply(items: list[dict[str, Any]]) -> Reply:
    return Reply(
        "\n".join([encode(each).decode() for each in items]), Raw(encode(Items(items=items)))
    )
