"""The command `python -m tests.dialects.isolation`: no reply contains another workspace's text.

Clients with tokens of different rights call random tools over HTTP in workspaces whose nodes have
the same names. Every text has the mark of its workspace, so a foreign mark in a reply is a leak.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

from polymnia.auth.tokens import file_tokens
from polymnia.engine.workspaces import open_workspaces
from tests.embedders.ollama import serve_ollama
from tests.processes import TIMEOUT_S
from tests.transports.process import POLYMNIA, Process
from tests.transports.web import Web

WORKSPACES = tuple(f"team-{number:02}" for number in range(20))
_MARK = re.compile(r"mark\d\dmark")
_NODES = tuple(f"node {number}" for number in range(12))
_WORDS = ("billing", "search", "gateway", "puppy", "marathon", "index", "customer", "release")
_META = "io.modelcontextprotocol/"
_CLIENTS = 4


class Caller:
    """An HTTP client that names its workspace in a header, without a session until one is begun."""

    def __init__(self, host: str, token: str, workspace: str) -> None:
        self.workspace = workspace
        self._connection = HTTPConnection(host, timeout=TIMEOUT_S)
        self._token = token
        self._session = ""

    def begin_session(self) -> "Caller":
        """Open a session with `initialize`, in the era that has sessions."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        _, headers = self._post({"method": "initialize", "params": params}, {})
        self._session = headers["mcp-session-id"]
        return self

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        """Return whether the call failed, and its message if so, else the whole result as JSON."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        headers = {"Mcp-Session-Id": self._session, "Mcp-Protocol-Version": "2025-11-25"}
        if not self._session:
            params["_meta"] = {
                f"{_META}protocolVersion": "2026-07-28",
                f"{_META}clientCapabilities": {},
                f"{_META}clientInfo": {"name": "test", "version": "1"},
            }
            headers = {
                "Mcp-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": tool,
            }
        reply, _ = self._post({"method": "tools/call", "params": params}, headers)
        result = reply["result"]
        is_error = bool(result.get("isError"))
        return is_error, result["content"][0]["text"] if is_error else json.dumps(result)

    def _post(self, message: dict[str, Any], headers: dict[str, str]) -> tuple[Any, dict[str, str]]:
        common = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        common["Authorization"] = f"Bearer {self._token}"
        if self.workspace:
            common["X-Memory-Workspace"] = self.workspace
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **message})
        self._connection.request("POST", "/mcp", body, {**common, **headers})
        response = self._connection.getresponse()
        text = response.read().decode()
        assert response.status == 200, text
        return json.loads(text), {name.lower(): value for name, value in response.getheaders()}


class _LongProcess(Process):
    lifetime_s = 24 * 3600.0


class Report:
    """What was called, and which replies had a foreign mark."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.leaks: list[str] = []
        self._lock = Lock()

    def add(self, tool: str, workspace: str, allowed: bool, is_error: bool, text: str) -> None:
        own = {mark_of(workspace)} if allowed and workspace in WORKSPACES else set()
        foreign = set(_MARK.findall(text)) - own
        with self._lock:
            self.calls[f"{tool}, refused" if is_error else tool] += 1
            if foreign or (not allowed and not is_error):
                self.leaks.append(f"{tool} in {workspace!r}: {text[:300]}")


def mark_of(workspace: str) -> str:
    return f"mark{workspace[-2:]}mark"


def run(directory: Path, operations: int, seed: int, store: str | None = None) -> Report:
    """Make that many calls from several clients at once, to a data directory or to an empty
    PostgreSQL database.
    """
    report = Report()
    with _serving(directory, store or f"{directory}/data/") as (host, tokens):
        threads = [
            Thread(
                target=_play,
                args=(host, tokens, operations // _CLIENTS, random.Random(seed + number), report),
            )
            for number in range(_CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return report


@contextmanager
def _serving(directory: Path, store: str) -> Iterator[tuple[str, dict[str, frozenset[str]]]]:
    """Yield the address of a server, and tokens with the workspaces that each may use."""
    workspaces = open_workspaces(store)
    for name in WORKSPACES:
        workspaces.create(name)
    workspaces.close()
    file = file_tokens(directory / "tokens.json")
    rights = [frozenset([name]) for name in WORKSPACES]
    rights += [frozenset(WORKSPACES[start : start + 5]) for start in range(0, 20, 5)]
    tokens = {
        file.create(f"token-{number}", can="write", workspaces=sorted(names), lifetime=None): names
        for number, names in enumerate(rights)
    }
    tokens[file.create("everything", can="write", workspaces=None, lifetime=None)] = frozenset(
        WORKSPACES
    )
    with serve_ollama() as ollama:
        options = ("--dialect", "workspace", "--transport", "http", "--port", "0")
        more = (
            "--tokens",
            str(directory / "tokens.json"),
            "--embedder",
            f"ollama:bag@{ollama.url}",
        )
        command = (*POLYMNIA, store, *options, *more)
        process = _LongProcess(command, directory, stdin=DEVNULL, stdout=DEVNULL)
        try:
            yield Web(process).host, tokens
        finally:
            process.end()


def _play(
    host: str, tokens: dict[str, frozenset[str]], count: int, chance: random.Random, report: Report
) -> None:
    callers = {token: Caller(host, token, "") for token in tokens}
    for token in list(callers)[::2]:
        callers[
            token
        ].begin_session()  # half of them have sessions, which are bound to no workspace
    for _ in range(count):
        token = chance.choice(list(callers))
        workspace = _choose_workspace(chance, tokens[token])
        tool, arguments = _choose_call(chance, workspace)
        callers[token].workspace = workspace
        is_error, text = callers[token].call(tool, arguments)
        report.add(tool, workspace, workspace in tokens[token], is_error, text)


def _choose_workspace(chance: random.Random, allowed: frozenset[str]) -> str:
    """Return mostly a workspace that the token may use, sometimes any, one that does not exist, or
    none.
    """
    kind = chance.random()
    if kind < 0.85:
        return chance.choice(sorted(allowed))
    return chance.choice(WORKSPACES) if kind < 0.95 else chance.choice(("", "nowhere"))


def _choose_call(chance: random.Random, workspace: str) -> tuple[str, dict[str, Any]]:
    node, other, word = chance.choice(_NODES), chance.choice(_NODES), chance.choice(_WORDS)
    text = (
        f"{mark_of(workspace)} {word} {chance.randrange(1000)} {other}"
        if workspace in WORKSPACES
        else "nothing"
    )
    relation = {
        "from_entity": node,
        "to_entity": other,
        "relation_type": chance.choice(("uses", "knows")),
    }
    created = {
        "name": node,
        "entity_type": "thing",
        "observations": [text],
        "summary": text,
        "tags": [text],
    }
    calls: dict[str, dict[str, Any]] = {
        "create_entities": {"entities": [created]},
        "add_observations": {"observations": [{"entity_name": node, "contents": [text]}]},
        "create_relations": {"relations": [relation]},
        "set_summary": {"name": node, "summary": text},
        "set_tags": {"name": node, "tags": [text]},
        "replace_observation": {
            "entity_name": node,
            "ordinal": chance.randrange(1, 5),
            "new_content": text,
        },
        "delete_observations": {
            "deletions": [{"entity_name": node, "ordinals": [chance.randrange(1, 20)]}]
        },
        "delete_entities": {"entity_names": [node]},
        "delete_relations": {"relations": [relation]},
        "update_relation_type": {
            "from_entity": node,
            "to_entity": other,
            "old_type": "uses",
            "new_type": mark_of(workspace) if workspace in WORKSPACES else "x",
        },
        "open_nodes": {"names": [node, other]},
        "get_nodes_by_type": {"entity_type": "thing"},
        "get_recently_modified": {},
        "query_observations": {
            "entity_name": node,
            "query": word,
            "mode": chance.choice(("embedding", "text")),
        },
        "search_nodes": {"query": f"{word} mark", "mode": chance.choice(("embedding", "text"))},
        "get_relations_between": {"entity_a": node, "entity_b": other},
        "get_neighborhood": {"name": node, "depth": 2},
        "get_path": {"from_entity": node, "to_entity": other},
        "get_orphans": {},
        "get_relation_gaps": {},
        "find_similar_nodes": {"min_score": 0.1},
        "get_consolidation_report": {},
        "get_pending_consolidation": {},
        "get_stats": {},
    }
    tools = list(calls)
    weights = [
        0.1 if tool in _HEAVY else 4 if tool in ("create_entities", "add_observations") else 1
        for tool in tools
    ]
    tool = chance.choices(tools, weights)[0]
    return tool, calls[tool]


_HEAVY = ("get_relation_gaps", "find_similar_nodes", "get_consolidation_report")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print what was called; 1 if a reply had a foreign mark."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.dialects.isolation", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--operations", type=int, default=100_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--store", metavar="URL", help="an empty database (default: a data directory)"
    )
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as directory:
        report = run(Path(directory), options.operations, options.seed, options.store)
    for tool, count in report.calls.most_common():
        print(f"{count:8,}  {tool}")
    print(f"{report.calls.total():8,}  calls, {len(report.leaks)} leaks")
    print("\n".join(report.leaks[:20]))
    return 1 if report.leaks else 0


if __name__ == "__main__":
    sys.exit(main())
