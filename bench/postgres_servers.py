"""Two server processes on one PostgreSQL database beside one, and who spends the processor time.

Every client sends its next call when it has the last reply. Servers, database and clients share the
cores of this machine: while two clients leave a core idle, the processes are the limit, and
otherwise the cores are.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import psycopg

from bench.figures import number
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

# How many servers, and how many clients they have together.
SETUPS = ((1, 1), (1, 2), (2, 2))
_ROUNDS = 7
_WARM_UP_S = 0.2
# The backends of a database on this machine. There are none, and no processor time, if it is on
# another.
_BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE application_name = 'polymnia' AND datname = current_database()
    AND coalesce(inet_server_addr() <<= '127.0.0.0/8', true)
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the servers of one turn did.

    How many calls in how many seconds, and the processor time of each party.
    """

    calls: int
    seconds: float
    servers: float
    database: float
    clients: float


@dataclass(frozen=True, slots=True)
class Process:
    """A running server."""

    port: int
    pid: int


def measure_servers(url: str, workspace: str, seconds: float) -> list[list[Turn]]:
    """Return the turns of each setup, taken alternately."""
    with TemporaryDirectory() as home, ExitStack() as stack:
        store = f"{url}?workspace={workspace}"
        servers = [
            stack.enter_context(_serving(store, Path(home) / f"{place}.log")) for place in range(2)
        ]
        database = stack.enter_context(psycopg.connect(url, autocommit=True))
        for server in servers:
            _take_turn([server], 2, database, _WARM_UP_S)
        rounds = [
            [
                _take_turn(servers[:count], clients, database, seconds / _ROUNDS)
                for count, clients in SETUPS
            ]
            for _ in range(_ROUNDS)
        ]
    return [list(turns) for turns in zip(*rounds, strict=True)]


def report_servers(turns: Sequence[Sequence[Turn]]) -> float:
    """Print what each setup did.

    Return how many times as many calls two servers answered, with a client each.
    """
    heads = [
        f"{count} server{'s' * (count > 1)}, {clients} client{'s' * (clients > 1)}"
        for count, clients in SETUPS
    ]
    print(f"\n| point reads | {' | '.join(heads)} |\n|---|{'---|' * len(SETUPS)}")
    rates = [median([item.calls / item.seconds for item in some]) for some in turns]
    print(f"| calls per second | {' | '.join([number(rate) for rate in rates])} |")
    for party in ("servers", "database", "clients"):
        print(
            f"| {party}: cores in use (processor ms of a call) | "
            f"{' | '.join([_usage(s, party) for s in turns])} |"
        )
    print()
    return rates[-1] / rates[0]


def _usage(turns: Sequence[Turn], party: str) -> str:
    spent = sum([getattr(turn, party) for turn in turns])
    cores = spent / sum([turn.seconds for turn in turns])
    return f"{cores:.2f} ({1e3 * spent / sum([turn.calls for turn in turns]):.2f})"


@contextmanager
def _serving(store: str, log: Path) -> Iterator[Process]:
    port = free_port()
    with running(polymnia_command(POLYMNIA, store, port), log) as process:
        await_port(port, process, log)
        yield Process(port, process.pid)


def _take_turn(
    servers: Sequence[Process],
    clients: int,
    database: psycopg.Connection[tuple[Any, ...]],
    seconds: float,
) -> Turn:
    with closing(Load([server.port for server in servers], clients, _requests())) as load:
        backends = [pid for (pid,) in database.execute(_BACKENDS)]
        pids = [server.pid for server in servers]
        before = (perf_counter(), _spent(pids), _spent(backends), process_time())
        calls = len(load.run(seconds))
        after = (perf_counter(), _spent(pids), _spent(backends), process_time())
    return Turn(calls, *[end - start for start, end in zip(before, after, strict=True)])


def _spent(pids: Sequence[int]) -> float:
    return sum([processor_seconds(pid) for pid in pids])


def _requests() -> Iterator[bytes]:
    headers = {"mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "open_nodes"}
    params = {"name": "open_nodes", "arguments": {"names": ["entity 1"]}, "_meta": META}
    for identifier in count(1):
        yield http_request(message(identifier, "tools/call", params), headers)
