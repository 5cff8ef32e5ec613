"""From a message to its answer: at once where it is short, else on a thread, as JSON or as a stream of events."""

import asyncio
from collections.abc import Mapping
from threading import Event

from msgspec import Struct

from polymnia.errors import MissingCapability, Refused
from polymnia.mcp.exchange import Arrival
from polymnia.mcp.glance import LISTEN, Glance, error_code
from polymnia.mcp.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from polymnia.mcp.revisions import UNSUPPORTED_VERSION
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.transports.http.desk import Desk
from polymnia.transports.http.headers import HEADER_MISMATCH
from polymnia.transports.http.stream import HEADERS, Stream, event
from polymnia.transports.http.visit import EVENTS, Visit

# What is longer is no short request, whatever it asks.
_SHORT_BODY = 4096
_INVALID_PARAMS = -32602
# The errors of the protocol itself have a status too; what a tool says is always 200.
_STATUS = {PARSE_ERROR: 400, INVALID_REQUEST: 400}
_STATELESS_STATUS = {
    **_STATUS,
    _INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    MissingCapability.CODE: 400,
    METHOD_NOT_FOUND: 404,
}


class Errand(Struct, frozen=True, kw_only=True):
    """A message to be handled, where it came from and where its answer goes."""

    visit: Visit
    body: bytes
    seen: Glance
    session: Session
    workspace: str | None
    headers: Mapping[str, str]


async def answer(desk: Desk, server: Server, errand: Errand) -> None:
    """Handle the message and send what comes of it."""
    if errand.seen.method == LISTEN:
        await _listen(desk, errand)
    elif _is_short(server, errand):
        told: list[bytes] = []
        reply = errand.session.handle(errand.body, Arrival(errand.workspace, told.append))
        await _send_whole(errand, told, reply)
    else:
        await _answer_later(desk, errand)


def _is_short(server: Server, errand: Errand) -> bool:
    fits = len(errand.body) <= _SHORT_BODY and errand.seen.is_short(server.dialect)
    return fits and server.workspaces.short_reads


async def _listen(desk: Desk, errand: Errand) -> None:
    """A request whose answer is a stream that ends when the client or the server does."""
    visit, session, stream = errand.visit, errand.session, Stream()
    if not visit.accepts(EVENTS):
        raise Refused(406, f"what is listened for comes as {EVENTS}; accept it")
    reply = session.handle(errand.body, Arrival(errand.workspace, stream.put))
    if reply is not None:
        await _send_whole(errand, [], reply)
        return
    await visit.start(200, HEADERS)
    desk.streams[stream] = session.client.principal
    try:
        await stream.pour_until_gone(visit)
        session.close()
        await visit.write(b"".join(map(event, session.outbox)), more=False)
    finally:
        desk.streams.pop(stream, None)


async def _answer_later(desk: Desk, errand: Errand) -> None:
    """On a thread: what it tells meanwhile opens a stream, silence lets it be one JSON answer."""
    visit, stream, gone = errand.visit, Stream(), Event()
    loop = asyncio.get_running_loop()
    arrival = Arrival(errand.workspace, stream.put, gone.is_set)
    work = loop.run_in_executor(desk.pool, errand.session.handle, errand.body, arrival)
    desk.in_hand += 1
    work.add_done_callback(lambda _: _done(desk, stream))
    watch = loop.create_task(_watch(visit, gone))
    try:
        first = await stream.next() if visit.accepts(EVENTS) else None
        if first is None and (work.done() or not visit.accepts(EVENTS)):
            await _send_whole(errand, [], await work)
            return
        await visit.start(200, {**HEADERS, **errand.headers})
        await visit.write(b"" if first is None else event(first), more=True)
        await stream.pour(visit)
        reply = await work
        await visit.write(b"" if reply is None else event(reply), more=False)
    finally:
        gone.set()
        watch.cancel()


def _done(desk: Desk, stream: Stream) -> None:
    """The work is done; how long the client takes to read what came of it is another matter."""
    desk.in_hand -= 1
    stream.end()


async def _watch(visit: Visit, gone: Event) -> None:
    """A client that leaves wants its answer no more."""
    await visit.gone()
    gone.set()


async def _send_whole(errand: Errand, told: list[bytes], reply: bytes | None) -> None:
    visit = errand.visit
    if told and visit.accepts(EVENTS):
        events = b"".join(map(event, [*told, *([] if reply is None else [reply])]))
        await visit.answer(200, events, {**HEADERS, **errand.headers})
    elif reply is None:
        await visit.answer(202, b"", errand.headers)
    else:
        await visit.answer(_status(errand.seen, reply), reply, errand.headers)


def _status(seen: Glance, reply: bytes) -> int:
    code = error_code(seen, reply)
    if code is None:
        return 200
    return (_STATELESS_STATUS if seen.is_stateless else _STATUS).get(code, 200)
