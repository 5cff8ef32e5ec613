"""`python -m bench.agents`: what the hooks of a coding agent cost, and how fast transcripts are
imported.

Each hook is a process of its own, as an agent runs it, on a memory of the given size. Hooks and a
bare interpreter take turns, so that a busy machine slows all of them alike. The processor time
tells what a calm machine would need.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

from bench.servers import POLYMNIA, clean_environment
from polymnia.engine.transfer.intake import take_in
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import Entity, Fact

ENTITIES = 20_000
FACTS = 5
TURNS = 100_000
TURNS_OF_A_SESSION = 200
HOOK_BUDGET_MS = 150
IMPORT_BUDGET_S = 15
HOOKS = (
    "SessionStart, no store",
    "SessionStart",
    "UserPromptSubmit",
    "Stop, nothing new",
    "Stop, one new turn",
)
PROMPTED = "UserPromptSubmit"
# How long the process with the model may take to start.
WARM_UP_S = 60
PROMPT = "write down fact 3 of thing 77 and the facts of thing 78"
BARE = "bare interpreter"
IMPORT = "import of transcripts"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock and of processor time."""

    wall: float
    processor: float


class Bench:
    """A project with a memory, a growing transcript, and an environment of its own."""

    def __init__(self, home: Path, entities: int) -> None:
        self.project = home / "shop"
        (self.project / ".git").mkdir(parents=True)
        self.transcript = home / "session.jsonl"
        self._home = home
        self._store = f"{home}/workspaces/"
        self._turns = 0
        self._environment = {
            **clean_environment(),
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_RUNTIME_DIR": str(home),
        }
        with closing(open_workspaces(self._store)) as workspaces:
            workspaces.create("shop", str(self.project))
            take_in(workspaces.memory("shop"), _entities(entities), by="bench")

    def warm_up(self, embedder: str) -> None:
        """Give every fact a vector, and start the process that holds the model for all hooks."""
        self._environment["POLYMNIA_EMBEDDER"] = embedder
        index = ["index", "--store", self._store, "--workspace", "shop"]
        self._run([*POLYMNIA, *index])
        self.run_hook(PROMPTED)  # finds nobody and starts the process
        deadline = perf_counter() + WARM_UP_S
        while perf_counter() < deadline and not list(self._home.rglob("*.socket")):
            sleep(0.1)

    def run_hook(self, name: str) -> Cost:
        """Run one of the hooks, or the bare interpreter."""
        if name == BARE:
            return self._run([sys.executable, "-c", "pass"])
        event, _, condition = name.partition(", ")
        if condition == "one new turn":
            self._turns += 1
            with self.transcript.open("a", encoding="utf-8") as file:
                file.write(_line("5e55", self._turns))
        store = str(self._home / "missing.db") if condition == "no store" else self._store
        return self._run([*POLYMNIA, "hook", event, "--store", store])

    def import_transcripts(self, turns: int) -> Cost:
        """Import a folder of sessions into a new store."""
        folder = self._home / "sessions"
        folder.mkdir()
        for number in range(0, turns, TURNS_OF_A_SESSION):
            lines = [
                _line(f"{number:08}", turn)
                for turn in range(min(TURNS_OF_A_SESSION, turns - number))
            ]
            (folder / f"{number:08}.jsonl").write_text("".join(lines), "utf-8")
        return self._run(
            [*POLYMNIA, "import", str(folder), "--store", str(self._home / "imported.db")]
        )

    def _run(self, command: Sequence[str]) -> Cost:
        given = json.dumps(
            {
                "cwd": str(self.project),
                "transcript_path": str(self.transcript),
                "session_id": f"session-{self._turns}",
                "prompt": PROMPT,
            }
        ).encode()
        before, began = _children_seconds(), perf_counter()
        subprocess.run(
            command, input=given, env=self._environment, stdout=subprocess.DEVNULL, check=True
        )
        return Cost(perf_counter() - began, _children_seconds() - before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    options = _parser().parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="agents-", dir=options.cache.resolve()) as home:
        bench = Bench(Path(home), options.entities)
        print(
            f"{options.entities:,} entities with {options.entities * FACTS:,} facts; "
            f"load {os.getloadavg()[0]:.1f}"
        )
        print(
            f"{'hook':<24} {'clock, ms':>10} {'95 of 100':>10} {'processor, ms':>14}  "
            f"(medians; budget {HOOK_BUDGET_MS})"
        )
        if options.embedder:
            bench.warm_up(options.embedder)
        for name, costs in _rounds(bench, options.rounds).items():
            wall, processor = (
                median([getattr(cost, part) for cost in costs]) for part in ("wall", "processor")
            )
            verdict = "" if name == BARE else _verdict(wall * 1000, HOOK_BUDGET_MS)
            slow = sorted(cost.wall for cost in costs)[len(costs) * 95 // 100]
            clock = f"{wall * 1000:>10.0f} {slow * 1000:>10.0f}"
            print(f"{name:<24} {clock} {processor * 1000:>14.0f}{verdict}")
        cost = bench.import_transcripts(options.turns)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        verdict = _verdict(cost.wall, IMPORT_BUDGET_S)
        print(
            f"{IMPORT}: {options.turns:,} turns in {cost.wall:.1f} s, "
            f"{cost.processor:.1f} s of processor time, "
            f"at most {peak:.0f} MB (budget {IMPORT_BUDGET_S} s){verdict}"
        )
    return 0


def _rounds(bench: Bench, rounds: int) -> dict[str, list[Cost]]:
    names = (BARE, *HOOKS)
    for name in names:
        bench.run_hook(name)  # fills the caches
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            costs[name].append(bench.run_hook(name))
    return costs


def _verdict(measured: float, budget: float) -> str:
    return "  met" if measured <= budget else "  over"


def _entities(count: int) -> Iterator[Entity]:
    for number in range(count):
        facts = [Fact(item, f"fact {item} of thing {number}") for item in range(1, FACTS + 1)]
        yield Entity(f"thing {number}", "thing", tuple(facts), next_ordinal=FACTS + 1)


def _line(session: str, number: int) -> str:
    """Return a turn as Claude Code writes it."""
    speaker = "assistant" if number % 2 else "user"
    text = (
        f"Turn {number} says that the deployment of service {number % 97} "
        f"needs {number % 13} steps, and why."
    )
    day = number // 86400 % 28 + 1
    time_of_day = f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
    at = f"2026-03-{day:02}T{time_of_day}Z"
    message = {"role": speaker, "content": [{"type": "text", "text": text}]}
    return (
        json.dumps({"type": speaker, "sessionId": session, "timestamp": at, "message": message})
        + "\n"
    )


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.agents", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--embedder", default="", metavar="URL", help="index the facts with it, and keep it warm"
    )
    parser.add_argument(
        "--entities", type=int, default=ENTITIES, help="in the memory (default: %(default)s)"
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="to import (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=15, help="of each hook (default: %(default)s)"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(".bench-cache"), help="where the stores go"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
