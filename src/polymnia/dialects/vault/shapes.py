"""The JSON of the vault dialect, and the session that a client is in."""

from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import quote

from msgspec import UNSET, Meta, Struct, UnsetType

from polymnia.dialects.base import Client, StrictArguments
from polymnia.errors import BadInput
from polymnia.model import Note, NoteHit, NoteScope

_TEXT = {"type": "string"}
OneScope = Annotated[Literal["session", "vault"], Meta(extra_json_schema=_TEXT)]
AnyScope = Literal["session", "vault", "all"]
Vector = list[float]
ENTITY_URI = "polymnia://entity/"


class Commit(StrictArguments, frozen=True):
    scope: OneScope
    key: Annotated[str, Meta(description="Unique identifier for this memory within its scope.")]
    content: Annotated[str, Meta(description="The memory content to store.")]
    tags: (
        Annotated[
            list[str],
            Meta(
                description="Categorization tags for retrieval. They replace the tags of an "
                "existing memory."
            ),
        ]
        | UnsetType
    ) = UNSET
    embedding: (
        Annotated[Vector, Meta(description="Optional pre-computed embedding vector (float32[D]).")]
        | UnsetType
    ) = UNSET


class Committed(Struct, frozen=True):
    committed: bool
    key: str
    scope: str


class VaultSearch(StrictArguments, frozen=True):
    query: Annotated[
        str,
        Meta(
            description="Full-text search query (FTS5 syntax supported). Empty: the newest "
            "memories."
        ),
    ]
    scope: (
        Annotated[
            AnyScope,
            Meta(description="Which scope(s) to search. Default: all.", extra_json_schema=_TEXT),
        ]
        | UnsetType
    ) = UNSET
    tags: (
        Annotated[
            list[str], Meta(description="Filter: only return memories with ALL specified tags.")
        ]
        | UnsetType
    ) = UNSET
    query_embedding: (
        Annotated[
            Vector, Meta(description="Optional: embedding of the query for semantic re-ranking.")
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(description="Max results to return.")] = 10


class Result(Struct, frozen=True):
    key: str
    content: str
    tags: list[str]
    scope: str
    relevance: Annotated[float, Meta(description="Score in [0,1]; 1.0 = exact match.")]


class Results(Struct, frozen=True):
    results: list[Result]
    total_searched: int


class Prune(StrictArguments, frozen=True):
    scope: Annotated[AnyScope, Meta(extra_json_schema=_TEXT)]
    key: (
        Annotated[str, Meta(description="If provided, delete only this key (within scope).")]
        | UnsetType
    ) = UNSET
    older_than: (
        Annotated[
            str,
            Meta(description="ISO 8601 datetime. Delete entries created before this timestamp."),
        ]
        | UnsetType
    ) = UNSET
    tags: (
        Annotated[list[str], Meta(description="Delete entries matching ALL these tags.")]
        | UnsetType
    ) = UNSET


class Pruned(Struct, frozen=True):
    pruned_count: int


class SetSession(StrictArguments, frozen=True):
    session_id: Annotated[
        str, Meta(description="The session whose memories this conversation uses from now on.")
    ]


class SessionSet(Struct, frozen=True):
    session_id: str


class MemoryShape(Struct, frozen=True):
    key: str
    content: str
    tags: list[str]
    scope: str
    created_at: str
    updated_at: str


def result(hit: NoteHit) -> Result:
    note = hit.note
    return Result(note.key, note.content, list(note.tags), scope_name(note), hit.relevance)


def entity_result(hit: NoteHit) -> Result:
    """Return an entity that another dialect stored, under an address that no note has."""
    key = ENTITY_URI + quote(hit.note.key, safe="")
    return Result(key, hit.note.content, list(hit.note.tags), "vault", hit.relevance)


def memory(note: Note) -> MemoryShape:
    times = (timestamp(note.created_at), timestamp(note.updated_at))
    return MemoryShape(note.key, note.content, list(note.tags), scope_name(note), *times)


def scope_name(note: Note) -> str:
    return "session" if note.scope.session else "vault"


def timestamp(at: int) -> str:
    """Return a time as whole seconds in UTC."""
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def own_session(client: Client) -> NoteScope | None:
    """Return the client's session, or None.

    It belongs to its principal, so guessing its id does not let another client in.
    """
    name = client.session or client.id
    return NoteScope(name, client.principal.name) if name else None


def require_session(client: Client) -> NoteScope:
    """Return the client's session. Raise BadInput, with what to do, if it has none."""
    scope = own_session(client)
    if scope is None:
        raise BadInput(
            'no session: set "polymnia/sessionId" in params._meta, or use scope "vault". '
            "Clients that call initialize get a session automatically."
        )
    return scope
