"""Check Polymnia against the npm reference server: the same replies, and one file for both."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.processes import TIMEOUT_S

from . import install
from .conversation import JSON, Call, entity, relation
from .random_calls import random_calls
from .server import Command, NewServer, polymnia
from .transcript import Reply, parse_reply

Serve = Callable[[Path], StdioServerParameters]

BOTH_WAYS = list(permutations(("polymnia", "reference")))

READ = Call("read_graph", {})
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
TOKYO = Call("create_entities", {"entities": [entity("東京", "city", 'Said "naïve" \\ 数学 🦊\n')]})
ADA = Call(
    "create_entities", {"entities": [entity("Ada", "person"), entity("Élodie", "person", "a", "b")]}
)
VISITS = Call(
    "create_relations",
    {"relations": [relation("Ada", "東京", "visits"), relation("Ada", "x", "y")]},
)


@pytest.fixture(scope="module")
def servers(node_packages: Path) -> dict[str, Serve]:
    """Return both servers, each as a function of the file that it serves."""
    return {
        "polymnia": lambda store: parameters(polymnia(store)),
        "reference": lambda store: reference(node_packages, store),
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_calls_get_the_same_replies(
    seed: int, new_server: NewServer, servers: dict[str, Serve], tmp_path: Path
) -> None:
    calls = [*random_calls(seed, 200), READ]
    theirs = servers["reference"](tmp_path / "memory.jsonl")
    our_end, their_end = anyio.run(until_they_part, parameters(new_server()), theirs, calls)
    assert our_end == their_end


def test_both_list_the_same_tools_with_the_same_schemas(
    new_server: NewServer, servers: dict[str, Serve], tmp_path: Path
) -> None:
    theirs = servers["reference"](tmp_path / "memory.jsonl")
    assert anyio.run(listed_shapes, parameters(new_server())) == anyio.run(listed_shapes, theirs)


@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
def test_each_reads_the_file_that_the_other_wrote(
    writer: str, reader: str, servers: dict[str, Serve], tmp_path: Path
) -> None:
    store = tmp_path / "memory.jsonl"
    *_, written = anyio.run(replies, servers[writer](store), [TOKYO, ADA, VISITS, READ])
    [read] = anyio.run(replies, servers[reader](store), [READ])
    assert read == written


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
def test_both_can_write_one_file_in_turn(
    first: str, second: str, servers: dict[str, Serve], tmp_path: Path
) -> None:
    store = tmp_path / "memory.jsonl"
    turned = anyio.run(
        replies_in_turn, servers[first](store), servers[second](store), [TOKYO, ADA, VISITS]
    )
    *_, alone = anyio.run(
        replies, servers[first](tmp_path / "alone.jsonl"), [TOKYO, ADA, VISITS, READ]
    )
    assert turned == [alone, alone]


def test_both_write_the_same_lines(servers: dict[str, Serve], tmp_path: Path) -> None:
    lines = []
    for name, serve in servers.items():
        store = tmp_path / f"{name}.jsonl"
        anyio.run(replies, serve(store), random_calls(4, 50))
        lines.append(store.read_text(encoding="utf-8").rstrip("\n").split("\n"))
    ours, theirs = lines
    assert ours == theirs


def test_a_lone_surrogate_that_the_reference_server_wrote_survives_our_write(
    node_packages: Path, servers: dict[str, Serve], tmp_path: Path
) -> None:
    store = tmp_path / "memory.jsonl"
    theirs = reference(node_packages, store)
    call_as_text(
        theirs,
        "create_entities",
        r'{"entities":[{"name":"\ud83d","entityType":"x","observations":["half \udc00 of it"]}]}',
    )
    written = store.read_bytes().rstrip(b"\n")
    assert rb"\ud83d" in written
    *_, read = anyio.run(replies, servers["polymnia"](store), [ADA, READ])
    assert "half \ufffd of it" in str(read)
    assert store.read_bytes().startswith(written + b"\n")
    assert r"\ud83d" in call_as_text(theirs, "read_graph", "{}")


@pytest.mark.parametrize("writer", ["polymnia", "reference"])
@pytest.mark.parametrize(
    ("query", "finders"),
    [(COMPOSED, {"polymnia"}), (DECOMPOSED, {"polymnia", "reference"}), ("cafe", {"reference"})],
    ids=["composed", "decomposed", "without accent"],
)
def test_a_decomposed_letter_is_found_by_its_accent_and_kept_as_it_was_written(
    writer: str, query: str, finders: set[str], servers: dict[str, Serve], tmp_path: Path
) -> None:
    """The reference server compares code points.

    We compare letters, however they are composed (decision 20).
    """
    store = tmp_path / "memory.jsonl"
    creation = Call("create_entities", {"entities": [entity(DECOMPOSED, "place")]})
    anyio.run(replies, servers[writer](store), [creation])
    search = Call("search_nodes", {"query": query})
    found = {
        name
        for name, serve in servers.items()
        if DECOMPOSED in str(anyio.run(replies, serve(store), [search]))
    }
    assert found == finders


def call_as_text(server: StdioServerParameters, tool: str, arguments: str) -> str:
    """Call a tool with arguments that no SDK can encode; return all replies as they are."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    lines = [
        f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{json.dumps(hello)}}}',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        f'{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}',
    ]
    command, environment = [server.command, *server.args], {**os.environ, **(server.env or {})}
    text = "".join(line + "\n" for line in lines)
    done = subprocess.run(
        command,
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return done.stdout


def parameters(command: Command) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=list(command[1:]))


def reference(packages: Path, store: Path) -> StdioServerParameters:
    program = packages / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
    return StdioServerParameters(
        command=install.node(), args=[str(program)], env={"MEMORY_FILE_PATH": str(store)}
    )


@asynccontextmanager
async def connected(server: StdioServerParameters) -> AsyncIterator[Client]:
    async with Client(server, mode="legacy", read_timeout_seconds=TIMEOUT_S) as client:
        yield client


async def replies(server: StdioServerParameters, calls: Iterable[Call]) -> list[Reply]:
    async with connected(server) as client:
        return [await reply(client, call) for call in calls]


async def replies_in_turn(
    first: StdioServerParameters, second: StdioServerParameters, writes: Iterable[Call]
) -> list[Reply]:
    """Return what both read after they have written in turn."""
    async with connected(first) as now, connected(second) as then:
        for write in writes:
            await reply(now, write)
            now, then = then, now
        return [await reply(now, READ), await reply(then, READ)]


async def until_they_part(
    ours: StdioServerParameters, theirs: StdioServerParameters, calls: Iterable[Call]
) -> tuple[tuple[Call, Reply], tuple[Call, Reply]]:
    """Return the first call that the two answer differently and both replies.

    Otherwise the last call.
    """
    async with connected(ours) as our_client, connected(theirs) as their_client:
        for call in calls:
            our_reply, their_reply = await reply(our_client, call), await reply(their_client, call)
            if our_reply != their_reply:
                break
    return (call, our_reply), (call, their_reply)


async def reply(client: Client, call: Call) -> Reply:
    result = await client.call_tool(call.tool, call.arguments)
    return parse_reply(result.model_dump(mode="json", by_alias=True, exclude_none=True))


async def listed_shapes(server: StdioServerParameters) -> dict[str, tuple[JSON, JSON]]:
    async with connected(server) as client:
        tools = (await client.list_tools()).tools
    return {
        tool.name: (shape(tool.input_schema), shape(tool.output_schema or {})) for tool in tools
    }


def shape(schema: JSON) -> JSON:
    """Return a schema without its descriptions."""
    return {
        "type": schema.get("type"),
        "required": sorted(schema.get("required", [])),
        "properties": {name: shape(inner) for name, inner in schema.get("properties", {}).items()},
        "items": shape(schema["items"]) if "items" in schema else None,
    }
