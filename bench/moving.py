"""What moving in and out costs.

`python -m bench.moving` runs each command in a process of its own.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

import msgspec

from bench.budgets import Verdict, at_most
from bench.dataset import SEED, sentence, write_dataset
from bench.errors import BenchError
from bench.figures import Cost
from bench.machine import describe_machine
from bench.servers import clean_environment

_TURNS_PER_CHAT = 50
# Processor time and peak memory of the whole command at the full size.
_BUDGETS_S = {"import memory.jsonl": 5.0, "import chats": 15.0}
_BUDGET_MB = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.moving", description=__doc__)
    parser.add_argument(
        "--entities", type=int, default=50_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--turns", type=int, default=100_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--files",
        type=int,
        default=5_000,
        metavar="N",
        help="files of a folder (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print(
        f"{machine.cores} cores, load {machine.load_before} before the run, Python {machine.python}"
    )
    with TemporaryDirectory() as folder:
        costs = dict(_measure_all(Path(folder), options))
    for name, cost in costs.items():
        print(
            f"{name}: {cost.wall:.2f} s, {cost.processor:.2f} s of processor time, "
            f"peak memory {cost.peak:.0f} MB"
        )
    for item in _judge(costs):
        print(
            f"{item.what}: {item.measured}, budget {item.budget}: {'met' if item.met else 'missed'}"
        )
    return 0


def _measure_all(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, Cost]]:
    write_dataset(1, folder / "one.jsonl")
    _run(folder, "import", "one.jsonl", "--store", "one.db")  # writes bytecode
    write_dataset(options.entities, folder / "memory.jsonl")
    yield "import memory.jsonl", _run(folder, "import", "memory.jsonl", "--store", "graph.db")
    yield (
        "export document",
        _run(folder, "export", "--format", "json", "-o", "all.json", "--store", "graph.db"),
    )
    yield "import document", _run(folder, "import", "all.json", "--store", "copy.db")
    _write_chats(options.turns, folder / "conversations.json")
    yield "import chats", _run(folder, "import", "conversations.json", "--store", "chats.db")
    write_dataset(options.files, folder / "small.jsonl")
    _run(folder, "import", "small.jsonl", "--store", "small.db")
    yield (
        "export folder",
        _run(folder, "export", "--format", "markdown", "-o", "vault", "--store", "small.db"),
    )
    yield "sync folder", _run(folder, "sync", "vault", "--store", "small.db")
    yield "import folder", _run(folder, "import", "vault", "--store", "other.db")


def _write_chats(turns: int, path: Path) -> None:
    """Write a ChatGPT export of that many turns, without holding it.

    A child's peak memory begins with its parent's.
    """
    rng = Random(SEED)
    with path.open("wb") as file:
        for number in range(max(turns // _TURNS_PER_CHAT, 1)):
            file.write((b"," if number else b"[") + msgspec.json.encode(_chat(rng, number)))
        file.write(b"]")


def _chat(rng: Random, number: int) -> dict[str, object]:
    nodes: dict[str, object] = {}
    for turn in range(_TURNS_PER_CHAT):
        message = {
            "author": {"role": "assistant" if turn % 2 else "user"},
            "content": {
                "content_type": "text",
                "parts": [" ".join([sentence(rng) for _ in range(4)])],
            },
            "create_time": 1_700_000_000 + number * 1000 + turn,
        }
        nodes[f"n{turn}"] = {
            "id": f"n{turn}",
            "parent": f"n{turn - 1}" if turn else None,
            "message": message,
        }
    last = f"n{_TURNS_PER_CHAT - 1}"
    return {
        "conversation_id": f"c{number:06d}",
        "title": f"Chat {number}",
        "mapping": nodes,
        "current_node": last,
    }


def _run(folder: Path, *arguments: str) -> Cost:
    """Run a command and return what it cost. Raise BenchError if it fails."""
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "polymnia", *arguments],
        cwd=folder,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BenchError(f"polymnia {' '.join(arguments)} ended with {process.returncode}")
    return Cost(perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _judge(costs: dict[str, Cost]) -> Iterator[Verdict]:
    for name, budget in _BUDGETS_S.items():
        yield at_most(f"{name}, processor time", costs[name].processor, budget, " s")
    yield at_most("peak memory", max([cost.peak for cost in costs.values()]), _BUDGET_MB, " MB")


if __name__ == "__main__":
    sys.exit(main())
