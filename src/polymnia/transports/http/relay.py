"""Requests that belong to another worker's session, handed on to it and answered from there."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs

import h11

from polymnia.errors import Refused
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.operations import App, Scope
from polymnia.transports.http.visit import Receive, Send, Visit
from polymnia.transports.http.workers import Crew

_CHUNK = 1 << 16
_OURS = (b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"expect")


class Relay:
    """Comes before everything else in a worker."""

    def __init__(self, app: App, crew: Crew, desk: Desk) -> None:
        self._app = app
        self._theirs = {str(each): place for each, place in enumerate(crew.places) if each != crew.number}
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = self._elsewhere(scope)
        if place is None:
            await self._app(scope, receive, send)
            return
        visit = Visit(scope, receive, send)
        try:
            self._desk.gate.check_place(visit)
            self._desk.gate.principal(visit)
            body = await self._desk.body(visit)
            await _hand_on(visit, scope, place, body)
        except Refused as refusal:
            await visit.refuse(refusal)
        finally:
            visit.leave()

    def _elsewhere(self, scope: Mapping[str, Any]) -> str | None:
        """The place of the worker that has the request's session; None when that is this one, or nobody."""
        if scope["type"] != "http":
            return None
        identifier = dict(scope["headers"]).get(b"mcp-session-id", b"").decode("latin-1")
        if not identifier and scope["query_string"]:
            identifier = parse_qs(scope["query_string"].decode("latin-1")).get("session_id", [""])[0]
        return self._theirs.get(identifier.partition("-")[0])


async def _hand_on(visit: Visit, scope: Mapping[str, Any], place: str, body: bytes) -> None:
    async with _connected(place) as (reader, writer):
        talk = h11.Connection(h11.CLIENT)
        kept = [(name, value) for name, value in visit.raw_headers if name not in _OURS]
        target = scope["raw_path"] + (b"?" + visit.query if visit.query else b"")
        head = [*kept, (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        try:
            request = h11.Request(method=visit.method, target=target, headers=head)
        except h11.LocalProtocolError as exc:
            raise Refused(400, "the request has a header that cannot be handed on") from exc
        for part in (request, h11.Data(data=body), h11.EndOfMessage()):
            writer.write(talk.send(part) or b"")
        watch = asyncio.get_running_loop().create_task(_close_when_gone(visit, writer))
        try:
            await _bring_back(visit, talk, reader)
        except (h11.RemoteProtocolError, OSError) as exc:  # the other worker has died, or our client has hung up
            if not visit.started:
                raise _gone() from exc
            await visit.abort()
        finally:
            watch.cancel()


async def _bring_back(visit: Visit, talk: h11.Connection, reader: asyncio.StreamReader) -> None:
    while True:
        part = talk.next_event()
        if part is h11.NEED_DATA:
            talk.receive_data(await reader.read(_CHUNK))
        elif isinstance(part, h11.Response):
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in part.headers}
            skipped = ("connection", "transfer-encoding", "date")
            await visit.start(part.status_code, {name: headers[name] for name in headers if name not in skipped})
        elif isinstance(part, h11.Data):
            await visit.write(bytes(part.data), more=True)
        else:
            await visit.write(b"", more=False)
            return


@asynccontextmanager
async def _connected(place: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    try:
        reader, writer = await asyncio.open_unix_connection(place)
    except OSError as exc:
        raise _gone() from exc
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _gone() -> Refused:
    return Refused(404, "there is no such session, or no longer; initialize again", code=-32001)


async def _close_when_gone(visit: Visit, writer: asyncio.StreamWriter) -> None:
    await visit.gone()
    writer.close()
