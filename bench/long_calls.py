"""Which tools take long on a large store, whether they report progress, and how soon they stop when
cancelled.
"""

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode

from bench.dataset import entity, entity_name, token, write_dataset
from bench.machine import describe_machine
from bench.report import machine_line, table
from bench.servers import load_by_import
from polymnia.dialects.base import Client, ServerRules
from polymnia.dialects.registry import open_dialect
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import OWNER
from polymnia.stores import open_store

# From here on a call must report progress and end soon after it is cancelled.
LONG_S = 0.1
# A call is cancelled after this long.
CANCEL_AFTER_S = 0.05
# No call is waited for longer.
TIMEOUT_S = 20.0

Arguments = dict[str, Any]


class Cost(Struct, frozen=True):
    """What one tool took, how often it reported progress, and how long it went on after it was
    cancelled.
    """

    dialect: str
    tool: str
    seconds: float
    reports: int
    late: float | None
    size: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print.

    Return 1 if a long call reports nothing, or goes on for long after it was cancelled.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.long_calls", description=__doc__)
    parser.add_argument(
        "--entities", type=int, default=100_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--store", metavar="FILE", help="a store of that many entities that exists already"
    )
    parser.add_argument("--dialects", metavar="NAMES", help="only these, separated by commas")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as home:
        path = Path(options.store or f"{home}/memory.db")
        if not options.store:
            load_by_import([sys.executable, "-m", "polymnia"])(
                write_dataset(options.entities, Path(home) / "dataset.jsonl").path, path
            )
        calls = calls_of(options.entities)
        chosen = options.dialects.split(",") if options.dialects else list(calls)
        costs = [item for name in chosen for item in _measure(path, name, calls[name])]
    print(machine_line(describe_machine()) + "\n\n" + _report(costs))
    return int(any(_is_bad(cost) for cost in costs))


def calls_of(size: int) -> Mapping[str, Mapping[str, Arguments]]:
    """Return the calls of each dialect that read or write much."""
    first, last = entity_name(0), entity_name(size - 1)
    word = "to"  # in nearly every observation
    new = [entity_of(number) for number in range(5_000)]
    rows = [
        {"name": item["name"], "type": item["entityType"], "facts": item["observations"]}
        for item in new
    ]
    return {
        "reference": {
            "read_graph": {},
            "search_nodes": {"query": word},
            "create_entities": {"entities": new},
            "delete_entities": {"entityNames": [item["name"] for item in new]},
        },
        "graph": {
            "read_graph": {"limit": 1000},
            "search_nodes": {"query": word, "limit": 1000},
            "graph_stats": {},
            "search_relations": {"relationType": "knows"},
            "find_path": {"from": first, "to": last},
            "find_all_paths": {"from": first, "to": last, "maxDepth": 6},
            "extract_subgraph": {"names": [first], "depth": 6},
            "get_neighbors": {"name": first, "depth": 6},
            "list_entity_types": {},
            "list_relation_types": {},
            "export_graph": {},
        },
        "project": {"read_graph": {}, "search_nodes": {"query": word}},
        "native": {
            "recall": {"query": "what do people need to know about projects and places"},
            "open": {"names": [first]},
            "explore": {"name": first, "depth": 4},
            "history": {},
            "undo": {"since": "2000-01-01", "dry_run": True},
            "review": {},
            "briefing": {},
            "export": {},
            "stats": {},
            "trash_can": {},
            "search": {"query": word},
            "find_notes": {},
            "remember": {"entities": rows},
        },
        "vault": {"search_memories": {"query": word}},
        "workspace": {
            "get_nodes_by_type": {"entity_type": "person"},
            "get_recently_modified": {"days": 3650, "limit": 1000},
            "get_neighborhood": {"name": first, "depth": 4},
            "get_path": {"from_entity": first, "to_entity": last},
            "get_orphans": {},
            "get_relation_gaps": {},
            "search_nodes": {"query": word, "limit": 50},
            "get_consolidation_report": {},
            "get_pending_consolidation": {},
            "get_stats": {},
        },
    }


def entity_of(number: int) -> Arguments:
    """Return a new entity with three observations."""
    return entity(Random(number), f"new-{number}", token(number))


def _measure(path: Path, dialect: str, calls: Mapping[str, Arguments]) -> Iterator[Cost]:
    with _session(path, dialect) as session:
        for tool, arguments in calls.items():
            print(f"{dialect} {tool}", file=sys.stderr)
            session.outbox.clear()
            seconds, size = _call(session, tool, arguments)
            reports = len(session.outbox)
            late = _cancel(session, tool, arguments) if seconds > LONG_S else None
            yield Cost(dialect, tool, seconds, reports, late, size)


@contextmanager
def _session(path: Path, dialect: str) -> Iterator[Session]:
    store = open_store(str(path))
    try:
        rules = ServerRules(toolsets=("all",)) if dialect == "native" else ServerRules()
        workspaces = one_workspace(Memory(store))
        server = Server(open_dialect(dialect, rules), workspaces)
        session = Session(server, client=Client(principal=OWNER, workspace=workspaces.sole))
        session.handle(
            _message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        )
        yield session
        session.close()
    finally:
        store.close()


def _call(session: Session, tool: str, arguments: Arguments) -> tuple[float, int]:
    message = _message(
        "tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}}
    )
    began = time.perf_counter()
    body, _ = _handle(session, message, cancel_after=TIMEOUT_S)
    seconds = time.perf_counter() - began
    reply = decode(body or b"{}")
    if "result" not in reply:
        print(f"{tool}: {(body or b'cancelled')[:200]!r}", file=sys.stderr)
    elif reply["result"].get("isError"):
        print(f"{tool}: {reply['result']['content'][0]['text'][:200]}", file=sys.stderr)
    return seconds, len(body or b"")


def _cancel(session: Session, tool: str, arguments: Arguments) -> float:
    """Return for how long a call goes on after it was cancelled."""
    message = _message("tools/call", {"name": tool, "arguments": arguments})
    _, late = _handle(session, message, cancel_after=CANCEL_AFTER_S)
    return late


def _handle(session: Session, message: bytes, *, cancel_after: float) -> tuple[bytes | None, float]:
    """Return the reply to a request that is cancelled after some seconds, and for how long it went
    on after that.
    """
    cancelled_at: list[float] = []

    def cancel() -> None:
        cancelled_at.append(time.perf_counter())
        session.handle(
            encode(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            )
        )

    timer = threading.Timer(cancel_after, cancel)
    timer.start()
    body = session.handle(message).body
    ended = time.perf_counter()
    timer.cancel()
    timer.join()
    return body, max(ended - cancelled_at[0], 0.0) if cancelled_at else 0.0


def _message(method: str, params: Arguments) -> bytes:
    return encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _is_bad(cost: Cost) -> bool:
    return cost.late is not None and (not cost.reports or cost.late > LONG_S)


def _report(costs: Sequence[Cost]) -> str:
    heads = ["dialect", "tool", "ms", "reply KB", "progress", "ms after cancellation", ""]
    rows = [
        [
            item.dialect,
            item.tool,
            f"{item.seconds * 1e3:.0f}",
            f"{item.size / 1000:.0f}",
            str(item.reports) if item.late is not None else "",
            f"{item.late * 1e3:.0f}" if item.late is not None else "",
            "NOT within bounds" if _is_bad(item) else "",
        ]
        for item in sorted(costs, key=lambda cost: -cost.seconds)
    ]
    return table(heads, rows)


if __name__ == "__main__":
    raise SystemExit(main())
