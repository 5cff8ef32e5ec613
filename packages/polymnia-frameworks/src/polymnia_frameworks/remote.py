"""The memory of a server, with the methods of a memory in this process that programs need most.

It calls the tools of the default dialect over HTTP. Each request stands alone, so servers behind a
proxy may take turns.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from itertools import count
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from msgspec import DecodeError, json

from polymnia import NoteRecord, SearchHit, __version__
from polymnia.errors import BadInput, NotAdmitted, StoreUnavailable

_REVISION = "2026-07-28"
_META = "io.modelcontextprotocol/"
_TIMEOUT_S = 30.0
# The bounds of the tools: a page of hits or keys, and the notes of one request.
_MAX_TOKENS, _MAX_PAGE, _MAX_NOTES = 20_000, 200, 50


def connect(
    url: str,
    *,
    token: str = "",
    workspace: str = "",
    by: str = "python",
    timeout: float = _TIMEOUT_S,
) -> "RemoteMemory":
    """Return the memory of the server at `url`, which ends in `/mcp`.

    `by` is the name of the client that the history shows. Methods raise BadInput with the server's
    sentence, NotAdmitted if the token is not accepted, and StoreUnavailable if the server does not
    answer.
    """
    return RemoteMemory(_Tools(url, token, by, timeout), workspace)


class RemoteMemory:
    """The memory of a server. Threads may share it."""

    def __init__(self, tools: "_Tools", workspace: str) -> None:
        self._tools = tools
        self._workspace = workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteMemory at {self._tools.url}>"

    def close(self) -> None:
        """Do nothing: no connection outlives a request."""

    @property
    def notes(self) -> "RemoteNotes":
        """The notes of the memory. The server needs the toolset `notes`."""
        return RemoteNotes(self._tools, self._workspace)

    def remember(
        self,
        name: str,
        *texts: str,
        type: str = "",  # noqa: A002  # as in LocalMemory
        tags: Sequence[str] = (),
        valid_at: datetime | None = None,
        source: str = "",
    ) -> None:
        """Create an entity or extend it with texts it does not have yet."""
        entity: dict[str, Any] = {"name": name, "type": type, "facts": list(texts)}
        entity["tags"] = list(tags)
        if valid_at is not None:
            entity["when"] = valid_at.astimezone(UTC).isoformat()
        self._call("remember", entities=[entity], source=source)

    def recall(
        self,
        question: str,
        *,
        limit: int = 10,
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> list[SearchHit]:
        """Return what answers the question, best first. Long texts are shown as excerpts."""
        reply = self._call(
            "recall",
            query=question,
            limit=limit,
            types=list(types),
            tags=list(tags),
            max_tokens=_MAX_TOKENS,
        )
        is_weak = bool(reply.get("unknown"))
        hits = []
        for rank, item in enumerate(reply["items"]):
            score = 1 / (1 + rank)
            ordinal = int(item.get("fact", 0))
            kind = "fact" if ordinal else "entity"
            if item.get("type") == "note":
                kind = "note"
            search_hit = SearchHit(
                kind=kind,
                name=item["name"],
                type=item.get("type", ""),
                ordinal=ordinal,
                text=item.get("text", ""),
                score=score,
                at=_moment(item.get("when", "")),
                is_weak=is_weak,
            )
            hits.append(search_hit)
        return hits

    def forget(self, *, facts: Mapping[str, Sequence[int | str]]) -> None:
        """Delete facts, named by number or text, as one change for each entity."""
        for name, references in facts.items():
            named = [str(reference) for reference in references]
            self._call("forget", name=name, facts=named, confirm=True)

    def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self._tools.call(tool, {"workspace": self._workspace, **arguments})


class RemoteNotes:
    """The notes of a server's memory."""

    def __init__(self, tools: "_Tools", workspace: str) -> None:
        self._tools = tools
        self._workspace = workspace

    def put(self, key: str, content: str, *, tags: Sequence[str] = ()) -> None:
        """Store a note. It replaces one with the same key."""
        self._call("write_note", key=key, content=content, tags=list(tags))

    def get(self, key: str) -> NoteRecord | None:
        """Return the note with that key; None if there is none."""
        notes = self.read([key])
        return notes[0] if notes else None

    def read(self, keys: Sequence[str]) -> list[NoteRecord]:
        """Return the notes with these keys, in this order, without those that do not exist."""
        notes = []
        for start in range(0, len(keys), _MAX_NOTES):
            reply = self._call("read_notes", keys=list(keys[start : start + _MAX_NOTES]))
            notes += [_note_record(item) for item in reply["items"]]
        return notes

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that start with the prefix, in alphabetical order."""
        found: list[str] = []
        cursor = ""
        while True:
            reply = self._call(
                "find_notes", prefix=prefix, limit=_MAX_PAGE, max_tokens=_MAX_TOKENS, cursor=cursor
            )
            found += [item["key"] for item in reply["items"]]
            cursor = reply.get("cursor", "")
            if not cursor:
                return sorted(found)

    def delete(self, key: str) -> bool:
        """Delete the note with that key. Return False if there is none."""
        reply = self._call("delete_note", key=key)
        return bool(reply["items"][0]["deleted"])

    def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        no_notes = "the server does not offer notes: start it with `--toolsets notes`"
        try:
            return self._tools.call(tool, {"workspace": self._workspace, **arguments})
        except UnknownTool as exc:
            raise BadInput(no_notes) from exc


class UnknownTool(BadInput):
    """The server does not offer a tool that was called."""


class _Tools:
    """Calls of a server's tools."""

    def __init__(self, url: str, token: str, by: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._numbers = count(1)
        self._meta = {
            _META + "protocolVersion": _REVISION,
            _META + "clientInfo": {"name": by, "version": __version__},
            _META + "clientCapabilities": {},
            "polymnia/json": True,
        }
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": _REVISION,
            "Mcp-Method": "tools/call",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a tool's reply as JSON; no items for a tool that has none."""
        params = {"name": tool, "arguments": arguments, "_meta": self._meta}
        message = {
            "jsonrpc": "2.0",
            "id": next(self._numbers),
            "method": "tools/call",
            "params": params,
        }
        reply = _decode(self._send(json.encode(message), tool))
        if "error" in reply:
            text = str(reply["error"].get("message", "the server refused the request"))
            if text.lower().startswith("unknown tool"):
                raise UnknownTool(text)
            raise BadInput(text)
        result = reply["result"]
        if result.get("isError"):
            raise BadInput("\n".join(part.get("text", "") for part in result["content"]))
        content: dict[str, Any] = result.get("structuredContent", {"items": []})
        return content

    def _send(self, body: bytes, tool: str) -> bytes:
        request = Request(self.url, body, {**self._headers, "Mcp-Name": tool})
        try:
            with urlopen(request, timeout=self._timeout) as response:
                answer: bytes = response.read()
                return answer
        except HTTPError as exc:
            if exc.code in (401, 403):
                raise NotAdmitted(f"{self.url} does not accept the token") from exc
            answer = exc.read()
            if answer.startswith(b"{"):
                return answer
            raise StoreUnavailable(f"{self.url} answered with status {exc.code}") from exc
        except (URLError, HTTPException, OSError) as exc:
            reason = getattr(exc, "reason", exc)
            raise StoreUnavailable(f"{self.url} cannot be reached: {reason}") from exc


def _decode(body: bytes) -> dict[str, Any]:
    # A reply with progress is a stream of events; the last one is the result.
    events = [line[len(b"data:") :] for line in body.splitlines() if line.startswith(b"data:")]
    if events:
        body = events[-1]
    try:
        return json.decode(body, type=dict[str, Any])
    except DecodeError as exc:
        raise BadInput("the server is not an MCP server: its URL ends in /mcp") from exc


def _note_record(item: Mapping[str, Any]) -> NoteRecord:
    return NoteRecord(
        key=item["key"],
        content=item["content"],
        tags=tuple(item["tags"]),
        created_at=_moment(item["created"]),
        updated_at=_moment(item["updated"]),
    )


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment
