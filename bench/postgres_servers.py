"""Two server processes on one PostgreSQL database beside one, with the same clients, and who spends the processor time.

All of them share the cores of one machine, so the call is one whose cost is mostly in the server process. The processor
time of a call shows how many servers it takes to keep the database busy.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import psycopg

from bench.http.contestants import (
    META,
    NEWEST,
    await_port,
    free_port,
    message,
    polymnia_command,
    processor_seconds,
    running,
)
from bench.http.load import Load, http_request
from bench.servers import POLYMNIA

CONNECTIONS = 4
_ROUNDS = 5
_WARM_UP_S = 0.2
# The backends of a database on this machine. There are none, and no processor time, if it is on another.
_BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE application_name = 'polymnia' AND datname = current_database()
    AND coalesce(inet_server_addr() <<= '127.0.0.0/8', true)
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the servers of one turn did: how many calls in how many seconds, and the processor time of each party."""

    calls: int
    seconds: float
    servers: float
    database: float
    client: float


@dataclass(frozen=True, slots=True)
class Process:
    """A running server."""

    port: int
    pid: int


def measure_servers(url: str, workspace: str, seconds: float) -> tuple[list[Turn], list[Turn]]:
    """Return the turns of one server and of two, taken alternately."""
    with TemporaryDirectory() as home, ExitStack() as stack:
        store = f"{url}?workspace={workspace}"
        servers = [stack.enter_context(_serving(store, Path(home) / f"{place}.log")) for place in range(2)]
        database = stack.enter_context(psycopg.connect(url, autocommit=True))
        for each in servers:
            _take_turn([each], database, _WARM_UP_S)
        turns = [
            (_take_turn(servers[at % 2 :][:1], database, seconds), _take_turn(servers, database, seconds))
            for at in range(_ROUNDS)
        ]
    return [one for one, _ in turns], [two for _, two in turns]


def report_servers(one: Sequence[Turn], two: Sequence[Turn]) -> float:
    """Print what one server and two did. Return how many times as many calls two of them answered."""
    print("\n| | 1 server | 2 servers |\n|---|---|---|")
    rates = [median([each.calls / each.seconds for each in turns]) for turns in (one, two)]
    print(f"| calls per second, {CONNECTIONS} clients | {rates[0]:.0f} | {rates[1]:.0f} |")
    for party in ("servers", "database", "client"):
        spent = [sum([getattr(each, party) for each in turns]) for turns in (one, two)]
        busy = [value / sum([each.seconds for each in turns]) for value, turns in zip(spent, (one, two), strict=True)]
        calls = [value / sum([each.calls for each in turns]) for value, turns in zip(spent, (one, two), strict=True)]
        shown = [f"{cores:.2f} ({1e3 * cost:.2f})" for cores, cost in zip(busy, calls, strict=True)]
        print(f"| {party}: cores in use (processor ms of a call) | {' | '.join(shown)} |")
    print()
    return rates[1] / rates[0]


@contextmanager
def _serving(store: str, log: Path) -> Iterator[Process]:
    port = free_port()
    with running(polymnia_command(POLYMNIA, store, port), log) as process:
        await_port(port, process, log)
        yield Process(port, process.pid)


def _take_turn(servers: Sequence[Process], database: psycopg.Connection, seconds: float) -> Turn:
    with closing(Load([each.port for each in servers], CONNECTIONS, _requests())) as load:
        backends = [pid for (pid,) in database.execute(_BACKENDS)]
        pids = [each.pid for each in servers]
        before = (perf_counter(), _spent(pids), _spent(backends), process_time())
        calls = len(load.run(seconds))
        after = (perf_counter(), _spent(pids), _spent(backends), process_time())
    return Turn(calls, *[end - start for start, end in zip(before, after, strict=True)])


def _spent(pids: Sequence[int]) -> float:
    return sum([processor_seconds(pid) for pid in pids])


def _requests() -> Iterator[bytes]:
    """Yield reads of a whole workspace: rows become objects and JSON in the server."""
    headers = {"mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "read_graph"}
    for identifier in count(1):
        params = {"name": "read_graph", "arguments": {}, "_meta": META}
        yield http_request(message(identifier, "tools/call", params), headers)
