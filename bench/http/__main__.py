"""Polymnia over HTTP beside a bare Starlette echo and a minimal server on the official SDK, in one
run.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from statistics import median

from bench.dataset import write_dataset
from bench.errors import BenchError
from bench.figures import number
from bench.http.contestants import (
    ECHO,
    POLYMNIA,
    SDK,
    STATELESS,
    WRITES,
    Contestant,
    await_port,
    free_port,
    polymnia_command,
    processor_seconds,
    reads,
    running,
    script_command,
    session_of,
    stateless_reads,
    writes,
)
from bench.http.load import Load
from bench.machine import describe_machine
from bench.report import machine_line, table
from bench.servers import load_by_import

CONNECTIONS = (1, 32)
BUDGET = 0.3
TITLES = {
    POLYMNIA: "polymnia, point read",
    STATELESS: "polymnia, point read, 2026-07-28",
    WRITES: "polymnia, create_entities x1, durable",
    ECHO: "a bare Starlette echo",
    SDK: "a canned tool on the official SDK",
}

# By contestant and connections, for each turn: responses per second, the median seconds of one, and
# the seconds of processor time that the server spent on one.
Rates = dict[tuple[str, int], list[tuple[float, float, float]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 1 if a server fails."""
    options = parse(arguments)
    machine = describe_machine()
    try:
        with tempfile.TemporaryDirectory() as home, contestants(options, Path(home)) as found:
            rates = measure(found, options)
    except BenchError as exc:
        print(exc, file=sys.stderr)
        return 1
    print(machine_line(machine) + "\n\n" + report(rates))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m bench.http", description=__doc__)
    parser.add_argument(
        "--entities", type=int, default=1000, help="entities in the store (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="seconds of a turn (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=7, help="turns of each contestant (default: %(default)s)"
    )
    parser.add_argument(
        "--polymnia-command",
        default=f"{sys.executable} -m polymnia",
        help="command that starts Polymnia",
    )
    return parser.parse_args(arguments)


@contextmanager
def contestants(options: argparse.Namespace, home: Path) -> Iterator[list[Contestant]]:
    """Start the servers for the length of the block. Polymnia's three contestants share one."""
    polymnia = options.polymnia_command.split()
    dataset, store = write_dataset(options.entities, home / "dataset.jsonl"), home / "memory.db"
    load_by_import(polymnia)(dataset.path, store)
    ports = {name: free_port() for name in (POLYMNIA, ECHO, SDK)}
    commands = {
        POLYMNIA: polymnia_command(polymnia, store, ports[POLYMNIA]),
        ECHO: script_command("echo", ports[ECHO]),
        SDK: script_command("sdk", ports[SDK]),
    }
    with ExitStack() as stack:
        pids = {}
        for name, command in commands.items():
            process = stack.enter_context(running(command, home / f"{name}.log"))
            await_port(ports[name], process, home / f"{name}.log")
            pids[name] = process.pid
        session, foreign = session_of(ports[POLYMNIA]), session_of(ports[SDK])
        yield [
            Contestant(POLYMNIA, ports[POLYMNIA], pids[POLYMNIA], reads(options.entities, session)),
            Contestant(
                STATELESS, ports[POLYMNIA], pids[POLYMNIA], stateless_reads(options.entities)
            ),
            Contestant(WRITES, ports[POLYMNIA], pids[POLYMNIA], writes(session)),
            Contestant(ECHO, ports[ECHO], pids[ECHO], reads(options.entities, session)),
            Contestant(SDK, ports[SDK], pids[SDK], reads(options.entities, foreign)),
        ]


def measure(found: Sequence[Contestant], options: argparse.Namespace) -> Rates:
    """Take turns in random order. Return responses per second and the median seconds of one."""
    rng = Random(0)
    rates: Rates = {}
    turns = [(item, connections) for item in found for connections in CONNECTIONS]
    for _ in range(options.rounds):
        for each, connections in rng.sample(turns, len(turns)):
            with closing(Load([each.port], connections, each.requests)) as load:
                before = processor_seconds(each.pid)
                taken = load.run(options.seconds)
                spent = (processor_seconds(each.pid) - before) / len(taken)
            turn = (len(taken) / options.seconds, median(taken), spent)
            rates.setdefault((each.name, connections), []).append(turn)
    return rates


def report(rates: Rates) -> str:
    """Return a table of medians and whether the budget is met."""
    heads = [
        "",
        *(f"{connection} conn., req/s" for connection in CONNECTIONS),
        *(f"{connection} conn., x echo" for connection in CONNECTIONS),
    ]
    heads += [f"{connection} conn., median ms" for connection in CONNECTIONS]
    heads += [f"{connection} conn., CPU us" for connection in CONNECTIONS]
    lines = []
    for name, title in TITLES.items():
        speeds = [
            median(rate for rate, _, _ in rates[name, connection]) for connection in CONNECTIONS
        ]
        echoes = [
            median(rate for rate, _, _ in rates[ECHO, connection]) for connection in CONNECTIONS
        ]
        waits = [
            median(wait for _, wait, _ in rates[name, connection]) * 1e3
            for connection in CONNECTIONS
        ]
        spent = [
            median(cpu for _, _, cpu in rates[name, connection]) * 1e6 for connection in CONNECTIONS
        ]
        times = [f"{speed / echo:.2f}" for speed, echo in zip(speeds, echoes, strict=True)]
        lines.append(
            [title, *map(number, speeds), *times, *map(number, waits), *map(number, spent)]
        )
    return (
        table(heads, lines)
        + "\n\n"
        + "\n".join(_budget(rates, name) for name in (POLYMNIA, STATELESS))
    )


def _budget(rates: Rates, name: str) -> str:
    """Return whether the point reads of one era meet the budget."""
    echo = median(rate for rate, _, _ in rates[ECHO, 32])
    ratio = median(rate for rate, _, _ in rates[name, 32]) / echo
    verdict = "met" if ratio >= BUDGET else "NOT met"
    return (
        f"Budget: {TITLES[name]} at 32 connections >= {BUDGET}x the echo: {ratio:.2f}, {verdict}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
