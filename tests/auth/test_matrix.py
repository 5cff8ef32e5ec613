"""Who may do what, for every tool of every dialect: token x workspace x tool x transport.

No tool is listed by hand.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import Struct

from polymnia.arguments import json_schema
from polymnia.auth.tokens import file_tokens
from polymnia.dialects import DIALECTS, open_dialect
from polymnia.dialects.base import Tool
from polymnia.dialects.project import tools as projects
from polymnia.model import CAPABILITIES, ChangeQuery
from polymnia.stores.sqlite.store import SqliteStore
from tests.auth.arguments import made_for, sensible
from tests.auth.ways import REFUSED, WAYS, Opened, Way
from tests.groups import mostly_matrix
from tests.transports.running import Running, call, is_refused, request, text_of

OWN, FOREIGN, MISSING = "default", "sales", "nowhere"
TOKENS: dict[str, dict[str, Any]] = {
    "reader": {"can": "read"},
    "writer": {"can": "write"},
    "boss": {"can": "admin"},
    "reader here": {"can": "read", "workspaces": [OWN]},
    "writer here": {"can": "write", "workspaces": [OWN]},
    "boss elsewhere": {"can": "admin", "workspaces": [FOREIGN]},
    "revoked": {"can": "admin"},
}
NONE = "none"
KNOWN, NEW = "known", "new"
# A way in treats all dialects alike, so two of them go all ways and the others two.
EVERY_WAY = pytest.mark.parametrize(
    ("place", "kind"),
    mostly_matrix(
        [
            (dialect, kind)
            for dialect in sorted(DIALECTS)
            for kind in WAYS
            if dialect in ("native", "workspace") or kind in ("session", "tcp")
        ],
        unmarked=[("native", "session"), ("reference", "tcp")],
    ),
    indirect=["place"],
)
# Tools that are about workspaces, not about what is in the client's own.
ABOUT_WORKSPACES = {var.name for var in vars(projects).values() if isinstance(var, Tool)}


class Place(Struct):
    """A dialect over a store, served over HTTP and TCP, with all tokens."""

    tools: Mapping[str, Tool]
    path: str
    http: int
    tcp: int
    store: Path
    tokens: dict[str, str | None]

    def way(self, kind: str, token: str, workspace: str | None) -> Opened:
        port = self.tcp if kind == "tcp" else self.http
        return Opened(WAYS[kind](port, self.tokens[token], workspace, self.path))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Place]]:
    """Yield what serves a dialect, each once for the whole module."""
    with ExitStack() as servers:
        yield cache(lambda name: serve_dialect(name, tmp_path_factory.mktemp("matrix"), servers))


@pytest.fixture
def place(request: pytest.FixtureRequest, places: Callable[[str], Place]) -> Place:
    return places(request.param)


def serve_dialect(name: str, directory: Path, servers: ExitStack) -> Place:
    store = directory / "memory.db"
    tokens = file_tokens(directory / "memory.db.tokens")
    made: dict[str, str | None] = {
        name: tokens.create(name, **about) for name, about in TOKENS.items()
    }
    tokens.revoke("revoked")
    made[NONE] = None
    # The generated arguments have embeddings of one number.
    short = {"POLYMNIA_EMBEDDING_DIMENSION": "1"}
    http = servers.enter_context(Running(store, dialect=name, settings=short))
    tcp = servers.enter_context(Running(store, transport="tcp", dialect=name, settings=short))
    return Place(open_dialect(name).tools, f"/{name}/mcp", http.port, tcp.port, store, made)


def contents(store: Path) -> list[Any]:
    """Return every row of every table, including the change log but not the indexes."""
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute(
            "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' ORDER BY name"
        ).fetchall()
        indexes = tuple(f"{name}_" for name, rootpage in found if not rootpage)
        tables = [
            name for name, rootpage in found if rootpage and not str(name).startswith(indexes)
        ]
        return [(name, connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name in tables]
    finally:
        connection.close()


def ordered(place: Place) -> list[Tool]:
    """Return the tools; those that may change the client's workspace come last."""
    return sorted(place.tools.values(), key=lambda tool: tool.name in ABOUT_WORKSPACES)


def calls(tool: Tool) -> list[dict[str, Any]]:
    """Return two calls with all arguments.

    About something that exists and something that does not.
    """
    if tool.brief:  # their arguments exclude one another, or are times and cursors
        return [
            call(tool.name, number, **sensible(tool.name, text))
            for number, text in enumerate((KNOWN, NEW))
        ]
    schema = json_schema(tool.arguments)
    return [
        call(tool.name, number, **made_for(schema, text))
        for number, text in enumerate((KNOWN, NEW))
    ]


def expected(token: str, workspace: str, tool: Tool) -> set[str | None]:
    """Return words of the expected error; None for a call that succeeds."""
    if token in (NONE, "revoked"):
        return {"refused"}
    about = TOKENS[token]
    if CAPABILITIES.index(about["can"]) < CAPABILITIES.index(tool.needs):
        return {"may only"}
    limited = about.get("workspaces") is not None
    if (
        tool.name in ABOUT_WORKSPACES
    ):  # they name a workspace in their arguments, here one that no token allows
        return {None, "no such", "may not use the workspace"} if limited else {None, "no such"}
    if limited and workspace not in about["workspaces"]:
        return {"may not use the workspace"}
    return {None} if workspace == OWN else {"no such"}


def outcome(reply: Any) -> str | None:
    """Return the same for an actual reply."""
    if reply is REFUSED or reply.get("error", {}).get("code") == -32001:
        return "refused"
    text = text_of(reply) if is_refused(reply) else ""
    if "there is no workspace" in text or "There is no project" in text:
        return "no such"
    return next((item for item in ("may only", "may not use the workspace") if item in text), None)


@EVERY_WAY
@pytest.mark.parametrize("token", [*TOKENS, NONE])
@pytest.mark.parametrize("workspace", [OWN, FOREIGN, MISSING])
def test_every_call_succeeds_or_is_rejected_for_the_right_reason(
    place: Place, token: str, workspace: str, kind: str
) -> None:
    with place.way(kind, token, workspace) as way:
        got = {
            tool: {outcome(way.ask(message)) for message in calls(tool)} for tool in ordered(place)
        }
    wrong = {
        tool.name: found
        for tool, found in got.items()
        if not found <= expected(token, workspace, tool)
    }
    assert wrong == {}


@EVERY_WAY
@pytest.mark.parametrize("token", ["reader", "reader here", "boss elsewhere", "revoked", NONE])
def test_a_client_that_may_not_write_changes_no_row(place: Place, token: str, kind: str) -> None:
    fill(place)
    before = contents(place.store)
    for workspace in (OWN, FOREIGN, MISSING):
        with place.way(kind, token, workspace) as way:
            for tool in place.tools.values():
                for message in calls(tool):
                    way.ask(message)
            attempt_everything_else(way)
    assert contents(place.store) == before


def fill(place: Place) -> None:
    """Write something that can be changed."""
    with place.way("session", "writer", OWN) as way:
        for tool in place.tools.values():
            if not tool.destructive:
                way.ask(calls(tool)[0])


def attempt_everything_else(way: Way) -> None:
    """Call the methods other than tools/call."""
    way.ask(request("resources/list"))
    way.ask(request("resources/read", uri="memory://knowledge-graph"))
    way.ask(request("prompts/list"))
    way.ask(request("prompts/get", name="x", arguments={}))
    reference = {"type": "ref/resource", "uri": "memory://entity/{name}"}
    way.ask(request("completion/complete", ref=reference, argument={"name": "name", "value": "k"}))
    way.ask(request("logging/setLevel", level="debug"))


@pytest.mark.parametrize(
    "place", mostly_matrix(sorted(DIALECTS), unmarked=["native", "reference"]), indirect=True
)
def test_the_same_calls_do_change_something_where_that_is_allowed(place: Place) -> None:
    writers = [tool for tool in place.tools.values() if tool.needs != "read"]
    changed = set()
    with place.way("session", "boss", OWN) as way:
        for tool in writers:
            fill(place)
            before = contents(place.store)
            for message in calls(tool):
                way.ask(message)
            if contents(place.store) != before:
                changed.add(tool.name)
    assert len(changed) >= len(writers) / 3, changed


@EVERY_WAY
@pytest.mark.parametrize("token", ["reader", "writer", "boss", "reader here", "boss elsewhere"])
def test_a_client_sees_exactly_the_tools_it_may_call(place: Place, token: str, kind: str) -> None:
    with place.way(kind, token, None) as way:
        listed = [tool["name"] for tool in way.ask(request("tools/list"))["result"]["tools"]]
    may = CAPABILITIES.index(TOKENS[token]["can"])
    assert listed == [
        tool.name for tool in place.tools.values() if CAPABILITIES.index(tool.needs) <= may
    ]


@EVERY_WAY
def test_the_change_log_names_the_client_and_its_token(place: Place, kind: str) -> None:
    """The last change is attributed to the token that made it, for any set of tools."""
    for token in ("writer", "boss"):
        with place.way(kind, token, OWN) as way:
            before = contents(place.store)
            for tool in place.tools.values():
                for message in calls(tool):
                    way.ask(message)
        assert contents(place.store) != before
        store = SqliteStore(str(place.store), read_only=True)
        # The server itself deletes session notes at the end of a conversation.
        with store.reading() as read:
            last = [
                change
                for change in read.history.changes(ChangeQuery(limit=None))[::-1]
                if change.operation != "end_session"
            ][-1]
        store.close()
        assert last.actor.endswith(f"(token {token})")
        assert last.actor.startswith("tester 1" if kind != "sse" else "unknown client")


@EVERY_WAY
def test_resources_of_another_workspace_cannot_be_read(place: Place, kind: str) -> None:
    if not open_dialect(place.path.split("/")[1]).resources:
        return  # a dialect without resources has none to protect
    for token, workspace in (
        ("reader here", FOREIGN),
        ("boss elsewhere", OWN),
        ("reader", MISSING),
    ):
        with place.way(kind, token, workspace) as way:
            reply = way.ask(request("resources/read", uri="memory://knowledge-graph"))
        assert "error" in reply
        assert KNOWN not in str(reply)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_tool_declares_what_it_needs(name: str) -> None:
    undeclared = [
        tool.name for tool in open_dialect(name).tools.values() if tool.needs not in CAPABILITIES
    ]
    assert undeclared == []


@pytest.mark.parametrize("name", DIALECTS)
def test_a_tool_that_needs_only_read_is_not_destructive(name: str) -> None:
    assert [
        tool.name
        for tool in open_dialect(name).tools.values()
        if tool.needs == "read" and tool.destructive
    ] == []


def test_a_tool_must_declare_what_it_needs() -> None:
    from polymnia.dialects.base import tool

    class Arguments(Struct):
        pass

    with pytest.raises(TypeError, match="needs"):
        tool(Arguments)  # type: ignore[call-arg]  # that is the point
