"""Kill a process while it creates, uses, archives, restores and deletes projects, and check what is
left.

`python -m tests.directory.kill --runs 200` does this 200 times; the tests do it a few times. The
worker prints each move before and after it makes it. A finished move must have taken effect, an
unfinished one wholly or not at all.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from polymnia.engine.workspaces import Workspaces
from tests.directory.directories import names_in, on_disk, opened, write

PROJECTS = ("a", "b", "c")
# The moves that are possible in each state of a project, and the state after each.
MOVES = {
    "none": {"create": "active"},
    "active": {"write": "active", "archive": "archived", "delete": "none"},
    "archived": {"restore": "active", "delete": "none"},
}


class Expected:
    """The states and entities that one project may have, according to what the worker printed."""

    def __init__(self) -> None:
        self.states = {"none"}
        self.written: set[str] = set()
        self.begun: set[str] = set()

    def begin(self, move: str, name: str) -> None:
        (state,) = self.states
        self.states |= {MOVES[state][move]}
        if move == "write":
            self.begun.add(name)

    def done(self, move: str, name: str) -> None:
        self.states = {after for state in self.states if (after := MOVES.get(state, {}).get(move))}
        if move == "write":
            self.written.add(name)
        if move == "delete":
            self.written, self.begun = set(), set()


def work(directory: Path, seed: int) -> None:
    """Make random moves until killed."""
    source = random.Random(seed)
    workspaces = opened(directory)
    states = {name: _state(workspaces, name) for name in PROJECTS}
    number = 0
    while True:
        number += 1
        project = source.choice(PROJECTS)
        moves = MOVES[states[project]]
        move = source.choice([*moves, *(["write"] * 3 if "write" in moves else [])])
        entity = f"{seed}-{number}"
        print("begin", project, move, entity, flush=True)
        if move == "write":
            write(workspaces.memory(project), entity)
        else:
            getattr(workspaces, move)(project)
        states[project] = moves[move]
        print("done", project, move, entity, flush=True)


def run_once(directory: Path, expected: dict[str, Expected], seed: int) -> list[str]:
    """Run a worker for a while, kill it, and return what is wrong with the directory."""
    command = [
        sys.executable,
        "-m",
        "tests.directory.kill",
        "--work",
        str(directory),
        "--seed",
        str(seed),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for _ in range(random.Random(seed).randrange(1, 120)):
            _record(expected, worker.stdout.readline())
        worker.kill()
        for line in worker.stdout:
            _record(expected, line)
    return _problems(directory, expected)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work is not None:
        work(options.work, options.seed)
    wrong: list[str] = []
    with TemporaryDirectory() as home:
        expected = {name: Expected() for name in PROJECTS}
        for run in range(options.runs):
            wrong += run_once(Path(home) / "data", expected, options.seed + run)
    print(f"{options.runs} kills: {len(wrong)} problems")
    print("\n".join(wrong))
    return 1 if wrong else 0


def _record(expected: dict[str, Expected], line: str) -> None:
    if not line.endswith("\n"):
        return  # the kill cut the line off
    word, project, move, entity = line.split()
    if word == "begin":
        expected[project].begin(move, entity)
    else:
        expected[project].done(move, entity)


def _problems(directory: Path, expected: dict[str, Expected]) -> list[str]:
    workspaces = opened(directory)
    wrong = []
    for name, item in expected.items():
        state = _state(workspaces, name)
        if state not in item.states:
            wrong.append(f"{name} is {state}, not {item.states}")
        item.states = {state}
        if state == "none":
            item.written, item.begun = set(), set()
            continue
        wrong += _problems_inside(workspaces, name, item)
    homes = {"active": "projects", "archived": "archive"}
    right = sorted(f"{homes[found.status]}/{found.id}.db" for found in workspaces.find_all())
    workspaces.close()
    files = on_disk(directory)
    return wrong if files == right else [*wrong, f"files are {files}, not {right}"]


def _problems_inside(workspaces: Workspaces, name: str, expected: Expected) -> list[str]:
    """Return what is wrong inside a project; restore it first if it is archived."""
    archived = _state(workspaces, name) == "archived"
    if archived:
        workspaces.restore(name)
    found = set(names_in(workspaces, name))
    problems = workspaces.memory(name).store.check()
    if archived:
        workspaces.archive(name)
    lost, extra = expected.written - found, found - expected.begun
    expected.written, expected.begun = {*found}, {*found}
    return [
        *problems,
        *[f"{name} lost {item}" for item in lost],
        *[f"{name} has {item}" for item in extra],
    ]


def _state(workspaces: Workspaces, name: str) -> str:
    return next(
        (workspace.status for workspace in workspaces.find_all() if workspace.name == name), "none"
    )


if __name__ == "__main__":
    sys.exit(main())
