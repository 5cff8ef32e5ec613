"""The four tools, and the end of a session's notes when its conversation ends."""

import threading
from functools import partial

from msgspec import UNSET, UnsetType

from polymnia.dialects.base import (
    MAX_ROWS,
    Call,
    Client,
    Reply,
    ServerRules,
    Tool,
    catalogue,
    session_name,
    tool,
)
from polymnia.dialects.replies import json_reply
from polymnia.dialects.vault import shapes
from polymnia.dialects.vault.shapes import own_session, require_session
from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, InvalidParams, NotSupported, SettingsError
from polymnia.model import VAULT, Note, NoteQuery, NoteScope
from polymnia.search.embedding import pack_vector
from polymnia.search.times import parse_time

_SERVER = "polymnia"


class Vault:
    """The tools of one server, and the memories in which they keep session notes."""

    def __init__(self, rules: ServerRules) -> None:
        self._rules = rules
        self._lock = threading.Lock()
        self._entered: list[Memory] = []

    def tools(self) -> dict[str, Tool]:
        """Return the catalogue."""
        return catalogue(
            tool(shapes.Commit, needs="write", returns=shapes.Committed, idempotent=True)(
                self.commit_memory
            ),
            tool(shapes.VaultSearch, needs="read", returns=shapes.Results, idempotent=True)(
                self.search_memories
            ),
            tool(shapes.Prune, needs="write", returns=shapes.Pruned, destructive=True)(
                self.prune_memory
            ),
            tool(shapes.SetSession, needs="write", returns=shapes.SessionSet, idempotent=True)(
                self.set_session_id
            ),
        )

    def commit_memory(self, call: Call, arguments: shapes.Commit) -> Reply:
        """Store a memory entry in the session (volatile) or vault (persistent) scope. Upserts on \
key collision: content and tags are replaced, and omitted tags are emptied."""
        memory = call.memory  # check access to the workspace before the arguments
        scope = VAULT
        if arguments.scope == "session":
            scope = require_session(call.client)
            self._enter(memory)
            if not call.client.id and not self._rules.persist_sessions:
                notes.expire_sessions(memory, by=_SERVER)
        tags = tuple(dict.fromkeys(arguments.tags or ()))
        embedding = self._vector(arguments.embedding, "embedding")
        note = Note(arguments.key, arguments.content, tags, scope, embedding)
        notes.commit(memory, note, by=call.by, member=call.client.id)
        return json_reply(shapes.Committed(True, arguments.key, arguments.scope))

    def search_memories(self, call: Call, arguments: shapes.VaultSearch) -> Reply:
        """Search memories by text query, tags, or both. Returns ranked results. Semantic ranking \
used if embeddings are present and a query_embedding is provided. A note must contain all words of \
the query; if none does, notes that contain any of them are returned. Searches session and vault \
unless scope says otherwise."""
        memory = call.memory
        if arguments.limit < 1:
            raise BadInput(f"limit: expected at least 1, got {arguments.limit}")
        query = NoteQuery(
            text=arguments.query,
            tags=tuple(arguments.tags or ()),
            vector=self._vector(arguments.query_embedding, "query_embedding"),
            limit=min(arguments.limit, MAX_ROWS),
        )
        scope = arguments.scope or "all"
        matches = notes.search(memory, query, _scopes(call.client, scope))
        results = [shapes.result(hit) for hit in matches.hits]
        searched = matches.searched
        if scope != "session" and not query.tags:
            facts = notes.search_facts(memory, query)
            results += [shapes.entity_result(hit) for hit in facts.hits]
            results.sort(key=lambda result: -result.relevance)
            searched += facts.searched
        return json_reply(shapes.Results(results[: query.limit], searched))

    def prune_memory(self, call: Call, arguments: shapes.Prune) -> Reply:
        """Delete memory entries. Can target a specific key, or bulk-delete by age or scope. The \
scopes vault and all need a key, older_than or tags. Returns how many were deleted."""
        memory = call.memory
        key = None if arguments.key is UNSET else arguments.key
        before = None
        if arguments.older_than is not UNSET:
            before = parse_time(arguments.older_than, "older_than")
        tags = arguments.tags or ()
        if arguments.scope != "session" and key is None and before is None and not tags:
            raise InvalidParams("Bulk vault prune requires at least one filter.")
        scopes = _scopes(call.client, arguments.scope)
        count = notes.prune(memory, scopes, by=call.by, key=key, tags=tags, before=before)
        return json_reply(shapes.Pruned(count))

    def set_session_id(self, call: Call, arguments: shapes.SetSession) -> Reply:
        """Set the session whose memories the session scope refers to for the rest of this \
conversation."""
        self._enter(call.memory)
        session = session_name(arguments.session_id)
        if not call.client.lasting:
            raise BadInput(
                'this client has no session to change: set "polymnia/sessionId" in params._meta '
                "of each request"
            )
        if session != call.client.session:
            call.client.enter_session(session)
            call.resources_changed()
        return json_reply(shapes.SessionSet(session))

    def on_start(self, call: Call) -> None:
        """Delete the session notes of killed servers. Raise SettingsError without notes."""
        try:
            self._enter(call.memory)
            if not self._rules.persist_sessions:
                call.workspaces.on_open(partial(notes.sweep_sessions, by=_SERVER))
        except NotSupported as exc:
            raise SettingsError(f"the vault dialect keeps notes, and {exc}") from exc

    def on_stop(self) -> None:
        """End all sessions, including those of clients without a conversation."""
        self._leave("")

    def on_session_end(self, client: Client) -> None:
        """End the sessions of a conversation, unless another conversation uses them."""
        self._leave(client.id)

    def _enter(self, memory: Memory) -> None:
        """Delete what earlier servers left, before the first session note is written."""
        with self._lock:
            if memory in self._entered:
                return
            if self._rules.persist_sessions:
                notes.require(memory)
            else:
                notes.sweep_sessions(memory, by=_SERVER)
            self._entered.append(memory)

    def _leave(self, member: str) -> None:
        with self._lock:
            entered = list(self._entered)
        for memory in entered:
            notes.leave_session(memory, member, by=_SERVER, keep=self._rules.persist_sessions)

    def _vector(self, numbers: list[float] | UnsetType, name: str) -> bytes:
        return b"" if numbers is UNSET else pack_vector(numbers, self._rules.dimension, name)


def _scopes(client: Client, scope: shapes.AnyScope) -> list[NoteScope]:
    """Return the scopes to use. For a client without a session, `all` is the vault alone."""
    if scope == "vault":
        return [VAULT]
    if scope == "session":
        return [require_session(client)]
    own = own_session(client)
    return [VAULT] if own is None else [own, VAULT]
