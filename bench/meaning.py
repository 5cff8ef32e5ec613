"""`python -m bench.meaning`: start, memory and exit of stdio servers that search by meaning.

A server is started, asked once and closed, as a client does it. "Cold" means that no process holds
the model yet, "warm" that another server has started it. The loop checks that every server ends
with status 0, also while other processes keep the machine busy; `--questions` kills the process
that holds the model in the middle of so many questions and checks that none is lost.
"""

import argparse
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.client import Session, open_session
from bench.errors import BenchError
from bench.pipe import Launch
from bench.servers import POLYMNIA, clean_environment
from polymnia.embedders import open_embedder
from polymnia.embedders.process import ProcessEmbedder
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import EntityDraft
from polymnia.stores import open_store

ROUNDS = 5
SERVERS = 10
MAX_WARM_SHARE = 0.35
MAX_MEGABYTES = 60
MAX_EXIT_S = 1.0
MEGABYTE = 1 << 20
# No word of the question is in the fact, so only meaning leads to it.
FACTS = ("Adopted a puppy from the shelter", "Plays chess on Tuesdays", "Grew up by the sea")
QUESTION = "Does she have a dog?"
ANSWER = "puppy"
BY_WORDS = "only words were searched"


@dataclass(frozen=True, slots=True)
class Visit:
    """One server: seconds to its first answer, megabytes it then held, and seconds to its end."""

    seconds: float
    megabytes: float
    exit_seconds: float
    status: int
    by_meaning: bool


class Bench:
    """A small memory that is embedded, and a runtime directory of its own."""

    def __init__(self, home: Path) -> None:
        self.runtime = home / "run"
        store = home / "memory.db"
        environment = clean_environment() | {
            "POLYMNIA_EMBEDDER": "local",
            "XDG_RUNTIME_DIR": str(self.runtime),
        }
        command = [*POLYMNIA, "serve", "--store", str(store)]
        self.launch = Launch("polymnia", command, environment, home / "server.log")
        memory_store = open_store(str(store))
        meaning = Meaning(SharedEmbedder("local"))
        entities.create(
            Memory(memory_store), [EntityDraft("Caroline", "person", FACTS)], by="bench"
        )
        meaning.index(memory_store)
        meaning.close()
        memory_store.close()

    def visit(self) -> Visit:
        """Start a server, ask it once and close it."""
        began = perf_counter()
        session = open_session(self.launch)
        by_meaning = ask(session)
        answered = perf_counter()
        megabytes = session.resident_bytes() / MEGABYTE
        closing = perf_counter()
        status = session.close()
        ended = perf_counter()
        return Visit(answered - began, megabytes, ended - closing, status, by_meaning)

    def process(self) -> ProcessEmbedder:
        """Return the process that holds the model; start it if there is none."""
        embedder = open_embedder("local", share_in=self.runtime / "polymnia")
        if not isinstance(embedder, ProcessEmbedder):
            raise BenchError("there is no process that holds the model")
        return embedder

    def end_process(self) -> None:
        """Kill the process that holds the model."""
        os.kill(self.process().pid, signal.SIGKILL)


def ask(session: Session) -> bool:
    """Ask the question. Return True if it was answered by meaning. Raise BenchError."""
    text = session.call("recall", {"query": QUESTION}).text
    by_meaning = BY_WORDS not in text
    if by_meaning and ANSWER not in text:
        raise BenchError(f"the answer is missing: {text}")
    return by_meaning


def measure(bench: Bench, rounds: int) -> list[tuple[str, float, float | None]]:
    """Return the rows: what, how much, and the budget if there is one."""
    cold: list[Visit] = []
    warm: list[Visit] = []
    for _ in range(rounds):
        bench.end_process()
        cold.append(bench.visit())
        warm.append(bench.visit())
    cold_seconds = median(visit.seconds for visit in cold)
    warm_seconds = median(visit.seconds for visit in warm)
    visits = [*cold, *warm]
    return [
        ("start to first recall by meaning, cold, s", cold_seconds, None),
        ("start to first recall by meaning, warm, s", warm_seconds, None),
        ("warm / cold", warm_seconds / cold_seconds, MAX_WARM_SHARE),
        ("answers by words alone", float(sum(not visit.by_meaning for visit in visits)), 0.0),
        (f"memory of server {SERVERS}, MB", memory_of_last(bench, SERVERS), MAX_MEGABYTES),
        ("exit, slowest, s", max(visit.exit_seconds for visit in visits), MAX_EXIT_S),
    ]


def memory_of_last(bench: Bench, count: int) -> float:
    """Return what the last of some servers holds while all of them run."""
    with ExitStack() as servers:
        megabytes = 0.0
        for _ in range(count):
            session = open_session(bench.launch)
            servers.callback(session.close)
            ask(session)
            megabytes = session.resident_bytes() / MEGABYTE
        return megabytes


def run_loop(bench: Bench, count: int) -> int:
    """Start, ask and close so many servers. Return how many did not end with status 0."""
    return sum(bench.visit().status != 0 for _ in range(count))


def kill_amid_questions(bench: Bench, count: int) -> int:
    """Ask one server so many questions and kill the process after half. Return how many failed."""
    lost = 0
    session = open_session(bench.launch)
    for number in range(count):
        if number == count // 2:
            bench.end_process()
        lost += ANSWER not in session.call("recall", {"query": f"{QUESTION} {ANSWER}"}).text
    session.close()
    return lost


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes busy during the block."""
    processes = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def _spin() -> None:
    while True:
        pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements and print them. Return 1 if a server fails."""
    options = parser().parse_args(arguments)
    failures = 0
    with TemporaryDirectory(prefix="pm") as home:
        bench = Bench(Path(home))
        try:
            if options.rounds:
                for title, value, budget in measure(bench, options.rounds):
                    verdict = "" if budget is None else "  met" if value <= budget else "  over"
                    print(f"{title:45} {value:8.2f}{verdict}")
            if options.loop:
                with busy(options.busy):
                    failed = run_loop(bench, options.loop)
                print(f"{options.loop} servers, {options.busy} busy processes: {failed} failed")
                failures += failed
            if options.questions:
                lost = kill_amid_questions(bench, options.questions)
                print(f"{options.questions} questions, process killed amid them: {lost} lost")
                failures += lost
            bench.end_process()
        except BenchError as exc:
            print(f"error: {exc}", file=sys.stderr)
            return 1
    return 1 if failures else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    new = argparse.ArgumentParser(
        prog="python -m bench.meaning",
        description="Measure start, memory and exit of stdio servers that search by meaning.",
    )
    new.add_argument(
        "--rounds", type=int, default=ROUNDS, help="starts of each kind (default: %(default)s)"
    )
    new.add_argument("--loop", type=int, default=0, help="start, ask and close so many servers")
    new.add_argument("--busy", type=int, default=0, help="busy processes beside the loop")
    new.add_argument(
        "--questions", type=int, default=0, help="questions amid which the process is killed"
    )
    return new


if __name__ == "__main__":
    sys.exit(main())
