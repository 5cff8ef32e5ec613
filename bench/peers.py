"""Polymnia beside other memory servers: `python -m bench.peers`.

    python -m bench.peers [--sizes 1000,10000] [--only NAME,NAME] [--page docs/benchmarks.md]

Every server is started over stdio with its own tools, stores the same facts, one call for each
entity with ten facts, and is asked the same questions. The servers are installed from PyPI and npm
into environments of their own in `.bench-cache/peers`. What cannot be installed, or is not done
with storing in time, stands in the table with the reason.

Processor time is that of all processes of a server, also of work that goes on after the reply.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep
from typing import NamedTuple

from bench.__main__ import sizes
from bench.client import Session, open_session
from bench.dataset import SEED, WORDS
from bench.errors import BenchError
from bench.figures import number
from bench.machine import describe_machine
from bench.memory_servers import Entity, Peer, Question, peers
from bench.pipe import Launch
from bench.plot import Series, chart
from bench.report import ROOT, commit, machine_line, replace_between, table
from bench.servers import clean_environment

BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

NONE = "-"  # a figure that was not taken
QUESTIONS = 200
FACTS_PER_ENTITY = 10
STARTS = 3
# A fact and the question about it.
TEMPLATES = (
    ("works as a {0} for {1}", "What does {name} work as?"),
    ("grew up in a village called {0}", "Where did {name} grow up?"),
    ("is allergic to {0} and avoids {1}", "What is {name} allergic to?"),
    ("plays the {0} every Thursday", "Which instrument does {name} play?"),
    ("drives a green {0} from 1998", "Which car does {name} drive?"),
    ("studied {0} at the university of {1}", "What did {name} study?"),
    ("has a dog called {0}", "What is the name of {name}'s dog?"),
    ("drinks {0} tea in the morning", "Which tea does {name} drink?"),
    ("is writing a book about {0}", "What is the book of {name} about?"),
    ("broke a leg while skiing near {0}", "Where did {name} break a leg?"),
)


def entities(facts: int) -> list[Entity]:
    """Return invented people with so many facts in all, the same in every run."""
    random = Random(SEED)
    found: dict[str, Entity] = {}
    while len(found) * FACTS_PER_ENTITY < facts:
        # First names repeat, as they do.
        name = f"{random.choice(WORDS[:60])} {random.choice(WORDS)}".title()
        texts = [
            fact.format(random.choice(WORDS).title(), random.choice(WORDS).title())
            for fact, _ in TEMPLATES
        ]
        found.setdefault(name, Entity(name, texts))
    return list(found.values())


def questions(people: Sequence[Entity]) -> list[Question]:
    """Return the questions, each about one fact."""
    random = Random(SEED)
    asked = []
    for _ in range(QUESTIONS):
        entity = random.choice(people)
        place = random.randrange(len(TEMPLATES))
        text = TEMPLATES[place][1].format(name=entity.name)
        asked.append(Question(text, entity.name, entity.facts[place]))
    return asked


@dataclass(slots=True)
class Contestant:
    """A server with its store, and what was measured."""

    peer: Peer
    launch: Launch
    home: Path
    empty_bytes: int  # of the home before the first start: a model
    stored: int = 0
    store_seconds: float = 0
    store_cpu: float = 0
    disk_bytes: int = 0
    memory_bytes: int = 0
    starts: list[float] = field(default_factory=list)
    first_recalls: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    recall_cpu: float = 0
    answered: int = 0
    problem: str = ""

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Start the server; at the end nothing of it runs."""
        session = open_session(self.launch)
        try:
            yield session
        finally:
            session.close()
            for pid in self.processes():
                with suppress_gone():
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Return the processes of the server, also those that outlive it.

        Each has the path of the home in a variable that it inherited, or in its command line.
        """
        mark = f"{self.home}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress_gone():
                texts = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
                if mark in texts:
                    found.append(int(folder.name))
        return found

    def cpu_seconds(self) -> float:
        """Return the processor time of its processes, with that of children that ended."""
        total = 0
        for pid in self.processes():
            with suppress_gone():
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(int(ticks) for ticks in fields[11:15])
        return total / TICKS_PER_SECOND

    def proportional_bytes(self) -> int:
        """Return the memory of its processes; what they share is counted once."""
        total = 0
        for pid in self.processes():
            with suppress_gone():
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total * 1024

    def settle(self, deadline: float) -> bool:
        """Wait until no work goes on in the background. Return False at the deadline."""
        before, quiet = self.cpu_seconds(), 0
        while quiet < 3 and monotonic() < deadline:
            sleep(0.4)
            now = self.cpu_seconds()
            quiet = quiet + 1 if now - before < 0.03 else 0
            before = now
        return quiet >= 3


@contextmanager
def suppress_gone() -> Iterator[None]:
    """Ignore that a process has ended meanwhile, or belongs to another user."""
    try:
        yield
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        pass


def enter(peer: Peer, cache: Path, folder: Path) -> Contestant:
    """Install a server and give it an empty home. Raise BenchError."""
    home = folder / peer.name
    home.mkdir()
    command = [part.replace("HOME", str(home)) for part in peer.install(cache)]
    peer.prepare(cache, home)
    variables = {key: value.replace("HOME", str(home)) for key, value in peer.variables.items()}
    environment = {**clean_environment(), "HOME": str(home), **variables}
    launch = Launch(peer.title, command, environment, folder / f"{peer.name}.log")
    return Contestant(peer, launch, home, empty_bytes=size_of(home))


def fill(contestant: Contestant, people: Sequence[Entity], limit: float) -> None:
    """Store the facts, for `limit` seconds at most, and wait for work in the background."""
    with contestant.session() as session:
        cpu, began = contestant.cpu_seconds(), perf_counter()
        deadline = monotonic() + limit
        for entity in people:
            for tool, arguments in contestant.peer.store(entity):
                session.call(tool, arguments)
            contestant.stored += len(entity.facts)
            if monotonic() > deadline:
                break
        contestant.store_seconds = perf_counter() - began
        is_settled = contestant.settle(monotonic() + 3 * limit)
        contestant.store_cpu = contestant.cpu_seconds() - cpu
    contestant.disk_bytes = size_of(contestant.home) - contestant.empty_bytes
    if contestant.stored < len(people) * FACTS_PER_ENTITY:
        contestant.problem = (
            f"stored {contestant.stored:,} facts in {limit:.0f} s and was not asked at this size"
        )
    elif not is_settled:
        contestant.problem = (
            f"still worked {3 * limit:.0f} s after the last fact, and was not asked"
        )


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def start(contestant: Contestant, question: Question) -> None:
    """Measure one start: until `initialize` and until a first question are answered."""
    began = perf_counter()
    with contestant.session() as session:
        contestant.starts.append(perf_counter() - began)
        session.call(*contestant.peer.ask(question))
        contestant.first_recalls.append(perf_counter() - began)


def ask(contestant: Contestant, asked: Sequence[Question]) -> None:
    """Ask every question, after a few that warm models and caches."""
    with contestant.session() as session:
        for question in asked[:5]:
            session.call(*contestant.peer.ask(question))
        contestant.settle(monotonic() + 5)
        cpu = contestant.cpu_seconds()
        for question in asked:
            answer = session.call(*contestant.peer.ask(question))
            contestant.recalls.append(answer.seconds)
            contestant.answered += contestant.peer.answer(question) in answer.text
        contestant.recall_cpu = contestant.cpu_seconds() - cpu
        contestant.memory_bytes = contestant.proportional_bytes()


class Measure(NamedTuple):
    """A row of the table: its title, its figure, and the label of its bars in the plot."""

    title: str
    value: Callable[[Contestant], float]
    label: str = ""
    needs_all: bool = True  # not for a server that was not done with storing

    def of(self, contestant: Contestant) -> float | None:
        if self.needs_all and contestant.problem:
            return None
        return self.value(contestant)


MEASURES = (
    Measure("start to `initialize`, s", lambda one: median(one.starts), "start"),
    Measure("start to the first answer, s", lambda one: median(one.first_recalls)),
    Measure(
        "store, ms a fact",
        lambda one: one.store_seconds / one.stored * 1e3,
        "store, time",
        needs_all=False,
    ),
    Measure(
        "store, ms of CPU a fact",
        lambda one: one.store_cpu / one.stored * 1e3,
        "store, CPU",
        needs_all=False,
    ),
    Measure("recall, ms", lambda one: median(one.recalls) * 1e3, "recall, time"),
    Measure("recall, ms of CPU", lambda one: one.recall_cpu / QUESTIONS * 1e3, "recall, CPU"),
    Measure("memory, MB", lambda one: one.memory_bytes / 1e6, "memory"),
    Measure(
        "disk, bytes a fact, with fixed parts", lambda one: one.disk_bytes / one.stored, "disk"
    ),
)


def measure(
    size: int,
    chosen: Sequence[Peer],
    cache: Path,
    limit: float,
    pace: dict[str, float],
    say: Callable[[str], None],
) -> tuple[list[Contestant], dict[str, str]]:
    """Return the contestants of one size, and why others did not take part.

    `pace` has the seconds that each took for a fact at an earlier size.
    """
    people = entities(size)
    asked = questions(people)
    contestants, absent = [], {}
    # On a disk: a temporary directory may be memory.
    with TemporaryDirectory(prefix="run-", dir=cache) as folder:
        for peer in chosen:
            expected = pace.get(peer.name, 0.0) * size
            if expected > 2 * limit:
                absent[peer.title] = f"storing would take {expected:.0f} s at its earlier pace"
                continue
            say(f"{size:,} facts: {peer.title} stores")
            try:
                contestant = enter(peer, cache, Path(folder))
                fill(contestant, people, limit)
            except BenchError as exc:
                say(str(exc))
                absent[peer.title] = str(exc).splitlines()[0]
                continue
            pace[peer.name] = contestant.store_seconds / contestant.stored
            contestants.append(contestant)
        full = [contestant for contestant in contestants if not contestant.problem]
        for turn in range(STARTS):
            say(f"{size:,} facts: start {turn + 1} of {STARTS}")
            for contestant in full:
                start(contestant, asked[turn])
        for contestant in full:
            say(f"{size:,} facts: {contestant.peer.title} is asked")
            ask(contestant, asked)
    return contestants, absent


def section(contestants: Sequence[Contestant], absent: Mapping[str, str], size: int) -> str:
    """Return the table of one size, with what is to be known about it."""
    absences = [f"{title} did not take part: {reason}." for title, reason in absent.items()]
    if not contestants:
        return "\n\n".join([f"**{size:,} facts**", *absences])
    first, *others = contestants
    heads = ["", *(contestant.peer.title for contestant in contestants)]
    lines = []
    for row in MEASURES:
        base = row.of(first)
        cells = [row.title, NONE if base is None else number(base)]
        for contestant in others:
            value = row.of(contestant)
            if value is None:
                cells.append(NONE)
            elif base is None:
                cells.append(number(value))
            else:
                cells.append(f"{number(value)} ({number(value / base)}x)")
        lines.append(cells)
    answered = [
        NONE if contestant.problem else f"{contestant.answered / QUESTIONS:.0%}"
        for contestant in contestants
    ]
    lines.append(["replies with the fact asked for", *answered])
    notes = [f"{each.peer.title} {each.problem}." for each in contestants if each.problem]
    return "\n\n".join([f"**{size:,} facts**", table(heads, lines), *notes, *absences])


def plot(contestants: Sequence[Contestant], size: int) -> str:
    """Return the chart of one size: each figure as a multiple of the first contestant's."""
    first, *others = contestants
    ratios = {}
    for row in MEASURES:
        base = row.of(first)
        for contestant in others:
            value = row.of(contestant)
            if row.label and value is not None and base is not None:
                ratios[row.label, contestant.peer.name] = value / base
    series = {one.peer.name: Series(one.peer.title, one.peer.color) for one in others}
    rows = {row.label: row.label for row in MEASURES if row.label}
    title = f"Multiples of {first.peer.title}, {size:,} facts (less is better)"
    return chart(title, rows, series, ratios, lowest=1e-3, highest=1e3)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--sizes", type=sizes, default=(1_000, 10_000), metavar="N,N")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="only these servers")
    parser.add_argument(
        "--limit", type=float, default=90, help="seconds that a server may store (%(default)s)"
    )
    parser.add_argument("--cache", type=Path, default=Path(".bench-cache"))
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args(arguments)
    if BEGIN not in options.page.read_text("utf-8"):
        parser.error(f"{options.page} lacks {BEGIN}")
    began = perf_counter()

    def say(what: str) -> None:
        print(f"{perf_counter() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    machine = describe_machine()
    cache = (options.cache / "peers").resolve()
    cache.mkdir(parents=True, exist_ok=True)
    names = options.only.split(",") if options.only else [peer.name for peer in peers()]
    chosen = [peer for peer in peers() if peer.name in names]
    plots = options.page.parent / "benchmarks"
    plots.mkdir(exist_ok=True)
    parts = [f"Commit {commit()}, {machine.date[:10]}. {machine_line(machine)}"]
    pace: dict[str, float] = {}
    for size in options.sizes:
        contestants, absent = measure(size, chosen, cache, options.limit, pace, say)
        if not (contestants or pace):
            print(f"error: no server could be measured: {absent}", file=sys.stderr)
            return 1
        parts.append(section(contestants, absent, size))
        if not contestants:
            continue
        (plots / f"peers-{size}.svg").write_text(plot(contestants, size), "utf-8")
        parts.append(f"![Multiples of Polymnia at {size:,} facts](benchmarks/peers-{size}.svg)")
    text = "\n\n".join(parts)
    print(text)
    say("done")
    return replace_between(options.page, BEGIN, END, text)


if __name__ == "__main__":
    sys.exit(main())
