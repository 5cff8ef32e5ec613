"""The four tools, and what happens to a session's notes when their conversation ends."""

import threading
from functools import partial

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import encode

from polymnia.dialects.base import Call, Client, NoteRules, Reply, Tool, catalogue, session_name, tool
from polymnia.dialects.vault import shapes
from polymnia.dialects.vault.moment import microseconds
from polymnia.dialects.vault.session import own_session, required_session
from polymnia.engine import notes, sessions
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, InvalidParams, NotSupported, SettingsError
from polymnia.model import VAULT, Note, NoteQuery, NoteScope
from polymnia.search.embedding import packed

_UNFILTERED = "Bulk vault prune requires at least one filter."
_US = "polymnia"
# More than any vault has, and a number that every store can count to.
_MOST = 1 << 40


class Vault:
    """The catalogue's functions under the rules of this server, and the memories they have worked on."""

    def __init__(self, rules: NoteRules) -> None:
        self._rules = rules
        self._lock = threading.Lock()
        self._entered: list[Memory] = []

    def tools(self) -> dict[str, Tool]:
        """The catalogue."""
        return catalogue(
            tool(shapes.Commit, needs="write", returns=shapes.Committed, idempotent=True)(self.commit_memory),
            tool(shapes.Search, needs="read", returns=shapes.Results, idempotent=True)(self.search_memories),
            tool(shapes.Prune, needs="write", returns=shapes.Pruned, destructive=True)(self.prune_memory),
            tool(shapes.SetSession, needs="write", returns=shapes.SessionSet, idempotent=True)(self.set_session_id),
        )

    def commit_memory(self, call: Call, arguments: shapes.Commit) -> Reply:
        """Store a memory entry in the session (volatile) or vault (persistent) scope. Upserts on key collision."""
        memory = call.memory  # whether one may be there comes before whatever else may be wrong
        scope = VAULT if arguments.scope == "vault" else self._session(call)
        tags = tuple(dict.fromkeys(arguments.tags or ()))
        embedding = self._vector(arguments.embedding, "embedding")
        note = Note(arguments.key, arguments.content, tags, scope, embedding)
        notes.commit(memory, note, by=call.by, member=call.client.id)
        return _reply(shapes.Committed(True, arguments.key, arguments.scope))

    def search_memories(self, call: Call, arguments: shapes.Search) -> Reply:
        """Search memories by text query, tags, or both. Returns ranked results. Semantic ranking used if embeddings \
are present and a query_embedding is provided."""
        memory = call.memory
        if arguments.limit < 1:
            raise BadInput(f"limit: expected at least 1, got {arguments.limit}")
        query = NoteQuery(
            text=arguments.query,
            tags=tuple(arguments.tags or ()),
            vector=self._vector(arguments.query_embedding, "query_embedding"),
            limit=min(arguments.limit, _MOST),
        )
        found = notes.search(memory, query, _scopes(call.client, arguments.scope or "all"))
        return _reply(shapes.Results([shapes.result(hit) for hit in found.hits], found.searched))

    def prune_memory(self, call: Call, arguments: shapes.Prune) -> Reply:
        """Delete memory entries. Can target a specific key, or bulk-delete by age or scope."""
        memory = call.memory
        key = None if arguments.key is UNSET else arguments.key
        before = None if arguments.older_than is UNSET else microseconds(arguments.older_than, "older_than")
        tags = arguments.tags or ()
        if arguments.scope != "session" and key is None and before is None and not tags:
            raise InvalidParams(_UNFILTERED)
        scopes = _scopes(call.client, arguments.scope)
        return _reply(shapes.Pruned(notes.prune(memory, scopes, by=call.by, key=key, tags=tags, before=before)))

    def set_session_id(self, call: Call, arguments: shapes.SetSession) -> Reply:
        """Choose the session whose memories the session scope means from now on in this conversation."""
        self._enter(call.memory)
        session = session_name(arguments.session_id)
        if not call.client.lasting:
            raise BadInput(
                "this client has no conversation in which a session could be remembered; name it with each request, "
                "in params._meta under polymnia/sessionId"
            )
        if session != call.client.session:
            call.client.session = session
            call.resources_changed()
        return _reply(shapes.SessionSet(session))

    def started(self, call: Call) -> None:
        """Delete what killed servers left, in every workspace. Raise SettingsError if the store holds no notes."""
        try:
            self._enter(call.memory)
            if not self._rules.persist_sessions:
                call.workspaces.on_open(partial(sessions.sweep, by=_US))
        except NotSupported as exc:
            raise SettingsError(f"the vault dialect keeps notes, and {exc}") from exc

    def stopped(self) -> None:
        """No session outlasts the server, those of clients without a conversation included."""
        self._leave("")

    def left(self, client: Client) -> None:
        """Its sessions end with the conversation, unless somebody else uses them."""
        self._leave(client.id)

    def _session(self, call: Call) -> NoteScope:
        scope = required_session(call.client)
        self._enter(call.memory)
        if not call.client.id and not self._rules.persist_sessions:
            sessions.expire(call.memory, by=_US)
        return scope

    def _enter(self, memory: Memory) -> None:
        """Before the first session note in a memory, what others left in it goes."""
        with self._lock:
            if memory in self._entered:
                return
            if self._rules.persist_sessions:
                notes.require(memory)
            else:
                sessions.sweep(memory, by=_US)
            self._entered.append(memory)

    def _leave(self, member: str) -> None:
        with self._lock:
            entered = list(self._entered)
        for memory in entered:
            sessions.leave(memory, member, by=_US, keep=self._rules.persist_sessions)

    def _vector(self, numbers: list[float] | UnsetType, name: str) -> bytes:
        return b"" if numbers is UNSET else packed(numbers, self._rules.dimension, name)


def _scopes(client: Client, scope: shapes.AnyScope) -> list[NoteScope]:
    """The scopes that are meant; `all` is the vault alone to a client that is in no session."""
    if scope == "vault":
        return [VAULT]
    if scope == "session":
        return [required_session(client)]
    own = own_session(client)
    return [VAULT] if own is None else [own, VAULT]


def _reply(shape: Struct) -> Reply:
    spelled = encode(shape)
    return Reply(spelled.decode(), Raw(spelled))
