"""The floor: a loop that decodes a request and sends a constant reply.

It is the lower limit for a server in Python, so the tables also show times as a multiple of it. The
reply is about as large as that of `open_nodes` for one entity.
"""

import sys

import msgspec

ENTITY = {
    "name": "entity-000000",
    "entityType": "person",
    "observations": ["pamira solevu kidaro benuto fagilo mesaru" for _ in range(3)],
}
RELATION = {"from": "entity-000000", "to": "entity-000001", "relationType": "knows"}
GRAPH = {"entities": [ENTITY], "relations": [RELATION for _ in range(4)]}


class Request(msgspec.Struct):
    """A JSON-RPC message as it arrives; a notification has no id."""

    method: str
    id: int | str | None = None
    params: dict[str, object] = {}


class Reply(msgspec.Struct):
    """A JSON-RPC reply as it leaves."""

    id: int | str
    result: object
    jsonrpc: str = "2.0"


def main() -> None:
    """Answer each line of stdin until it ends."""
    decoder, encoder = msgspec.json.Decoder(Request), msgspec.json.Encoder()
    canned = graph_reply(encoder)
    lines, out = sys.stdin.buffer, sys.stdout.buffer
    for line in lines:
        request = decoder.decode(line)
        if request.id is None:
            continue
        result = initialize_result(request) if request.method == "initialize" else canned
        out.write(encoder.encode(Reply(request.id, result)) + b"\n")
        out.flush()


def graph_reply(encoder: msgspec.json.Encoder) -> dict[str, object]:
    """Return the result of every tool call: an entity and its relations, as text and structured."""
    text = msgspec.json.format(encoder.encode(GRAPH), indent=2).decode()
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": GRAPH,
    }


def initialize_result(request: Request) -> dict[str, object]:
    """Return the result of `initialize`, with the revision that the client asked for."""
    return {
        "protocolVersion": request.params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "floor", "version": "1"},
    }


if __name__ == "__main__":
    main()
