"""The command `python -m bench`: its arguments and one run."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.budgets import EMPTY, MILLION, judge, judge_install
from bench.errors import BenchError
from bench.figures import Figures
from bench.install import measure_install
from bench.machine import describe_machine
from bench.measure import measure
from bench.report import as_json, tables
from bench.rounds import Limits
from bench.rows import ROWS
from bench.servers import POLYMNIA, SERVER_NAMES, open_servers
from bench.stage import open_stages

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (100,)
SECONDS = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables. Return 1 if a server fails."""
    options = parser().parse_args(arguments)
    machine = describe_machine()
    try:
        figures = run(options)
    except BenchError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    verdicts = (*judge(figures), *judge_install(measure_install()))
    print(tables(machine, figures, verdicts))
    if options.json is not None:
        options.json.write_bytes(as_json(machine, figures, verdicts))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    new = argparse.ArgumentParser(
        prog="python -m bench", description="Measure Polymnia beside its peers, over stdio."
    )
    new.add_argument(
        "--sizes",
        type=sizes,
        metavar="N,N",
        help="numbers of entities (default: 1000,10000,100000)",
    )
    new.add_argument(
        "--million",
        action="store_true",
        help="also 1,000,000 entities, in SQLite only; this adds some ten minutes",
    )
    new.add_argument(
        "--servers",
        type=server_names,
        default=SERVER_NAMES,
        metavar="NAME,NAME",
        help=f"which to measure (default: {','.join(SERVER_NAMES)})",
    )
    new.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="time for one row of one server (default: %(default)s)",
    )
    new.add_argument("--quick", action="store_true", help="a smoke run: few entities, few samples")
    new.add_argument(
        "--cache",
        type=Path,
        default=Path(".bench-cache"),
        help="where the npm server and the stores go (default: %(default)s)",
    )
    new.add_argument("--json", type=Path, help="also write all numbers to this file")
    new.add_argument(
        "--polymnia-command",
        type=shlex.split,
        default=POLYMNIA,
        help=argparse.SUPPRESS,
    )
    return new


def sizes(text: str) -> tuple[int, ...]:
    """Return the sizes of `--sizes`, in order."""
    given = sorted({int(part) for part in text.split(",")})
    if given[0] < 1:
        raise argparse.ArgumentTypeError("a size is at least 1")
    return tuple(given)


def server_names(text: str) -> tuple[str, ...]:
    """Return the servers of `--servers`, in the order of the tables."""
    given = set(text.split(","))
    if unknown := given - set(SERVER_NAMES):
        known = ", ".join(SERVER_NAMES)
        raise argparse.ArgumentTypeError(f"{unknown.pop()!r} is none of {known}")
    return tuple(name for name in SERVER_NAMES if name in given)


def run(options: argparse.Namespace) -> Figures:
    """Prepare the servers and measure them. Only the npm server remains on disk."""
    began = perf_counter()

    def say(what: str) -> None:
        print(f"{perf_counter() - began:6.1f} s  {what}", file=sys.stderr)

    cache = options.cache.resolve()
    say("preparing the servers")
    servers = open_servers(options.servers, cache=cache, polymnia=options.polymnia_command)
    cache.mkdir(parents=True, exist_ok=True)
    # Not in the system's temporary directory: that may be memory, where nothing is
    # durable and a commit is free.
    with (
        TemporaryDirectory(prefix="run-", dir=cache) as home,
        open_stages(servers, chosen_sizes(options), Path(home), say) as stages,
    ):
        figures = measure(ROWS, stages, limits(options), say)
    say("done")
    return figures


def chosen_sizes(options: argparse.Namespace) -> tuple[int, ...]:
    """Return the sizes to measure; an empty store is always among them."""
    chosen = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    return tuple(sorted({EMPTY, *chosen, *((MILLION,) if options.million else ())}))


def limits(options: argparse.Namespace) -> Limits:
    """Return how long each contestant is measured."""
    if options.quick:
        return Limits(least=2, most=5, seconds=0.2)
    return Limits(least=3, most=1000, seconds=options.seconds)


if __name__ == "__main__":
    sys.exit(main())
