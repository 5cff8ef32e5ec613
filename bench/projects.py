"""Many projects beside few.

`python -m bench.projects` lists, switches and reads in directories of several sizes.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from bench.client import Session, open_session
from bench.errors import BenchError
from bench.figures import number
from bench.pipe import Launch
from bench.rounds import Limits, take_rounds
from bench.servers import POLYMNIA, POLYMNIA_VARIABLES, clean_environment
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft

# A switch opens the project, and a server keeps some projects open: compare directories with more
# than those.
SIZES = (100, 1000)
# Switching among the most may take this many times as long as among the fewest.
BUDGET = 2.0

Sampler = Callable[[Session, Random, int], float]


def list_projects(session: Session, rng: Random, size: int) -> float:
    """List all projects. The reply grows with their number."""
    answer = session.call("list_projects", {})
    if answer.text.count('"active"') != size:
        raise session.failure(f"listed other than {size} projects")
    return answer.seconds


def switch(session: Session, rng: Random, size: int) -> float:
    """Switch to a random project."""
    return session.call("switch_project", {"name": _name(rng, size)}).seconds


def switch_and_read(session: Session, rng: Random, size: int) -> float:
    """Switch to a random project and read one entity in it, which opens it if necessary."""
    name = _name(rng, size)
    seconds = session.call("switch_project", {"name": name}).seconds
    return seconds + _read(session, name)


def read_again(session: Session, rng: Random, size: int) -> float:
    """Read one entity of the current project."""
    name = _name(rng, size)
    session.call("switch_project", {"name": name})
    _read(session, name)
    return _read(session, name)


ROWS: dict[str, Sampler] = {
    "list_projects": list_projects,
    "switch_project": switch,
    "switch_project, then open_nodes": switch_and_read,
    "open_nodes in the same project": read_again,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table. Return 1 if switching exceeds the budget or a server fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.projects", description=__doc__)
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, metavar="N,N", help="numbers of projects"
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="time for each figure (default: %(default)s)"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(".bench-cache"), help="where the directories go"
    )
    options = parser.parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix="projects-", dir=options.cache.resolve()) as home:
            return _report(*_measure(options.sizes, Path(home), options.seconds))
    except BenchError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1


def _measure(
    sizes: Sequence[int], home: Path, seconds: float
) -> tuple[dict[tuple[str, int], float], dict[int, int]]:
    """Return the medians in seconds by row and size, and how many files each server has open at the
    end.
    """
    figures: dict[tuple[str, int], float] = {}
    limits = Limits(least=5, most=1000, seconds=seconds)
    with ExitStack() as stack:
        sessions = {size: stack.enter_context(_serve(home, size)) for size in sizes}
        for title, row in ROWS.items():
            samplers = {size: _sampler(row, session, size) for size, session in sessions.items()}
            for size, samples in take_rounds(samplers, limits).items():
                figures[title, size] = median(samples)
        return figures, {size: session.open_files() for size, session in sessions.items()}


def _report(figures: dict[tuple[str, int], float], handles: dict[int, int]) -> int:
    sizes = sorted(handles)
    print(f"| ms, median | {' | '.join(f'{size:,} projects' for size in sizes)} | most / fewest |")
    print(f"|---|{'---|' * (len(sizes) + 1)}")
    growth = {title: figures[title, sizes[-1]] / figures[title, sizes[0]] for title in ROWS}
    for title in ROWS:
        shown = " | ".join(number(figures[title, size] * 1e3) for size in sizes)
        print(f"| {title} | {shown} | {growth[title]:.2f} |")
    print(f"| open files | {' | '.join(str(handles[size]) for size in sizes)} | |")
    met = growth["switch_project"] <= BUDGET
    verdict = "met" if met else "missed"
    print(
        f"\nswitching among {sizes[-1]:,}: {growth['switch_project']:.2f}x (budget {BUDGET}x): "
        f"{verdict}"
    )
    return 0 if met else 1


@contextmanager
def _serve(home: Path, size: int) -> Iterator[Session]:
    """Run a server over a new directory of `size` projects, each with one entity of its name."""
    directory = home / str(size)
    workspaces = open_workspaces(f"{directory}/")
    for place in range(size):
        name = f"project-{place}"
        workspaces.create(name)
        entities.create(
            workspaces.memory(name), [EntityDraft(name, "project", ("one fact",))], by="bench"
        )
    workspaces.close()
    command = (*POLYMNIA, "serve", "--dialect", "project", "--data-dir", str(directory))
    environment = {**clean_environment(), **POLYMNIA_VARIABLES}
    launch = Launch(f"{size} projects", command, environment, home / f"{size}.log")
    with closing(open_session(launch)) as session:
        yield session


def _sampler(row: Sampler, session: Session, size: int) -> Callable[[], float]:
    rng = Random(size)
    return lambda: row(session, rng, size)


def _read(session: Session, name: str) -> float:
    answer = session.call("open_nodes", {"names": [name]})
    if f'"{name}"' not in answer.text:
        raise session.failure(f"did not find {name} in its project")
    return answer.seconds


def _name(rng: Random, size: int) -> str:
    return f"project-{rng.randrange(size)}"


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.split(",")}))


if __name__ == "__main__":
    sys.exit(main())
