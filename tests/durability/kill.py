"""Kill a server while it works and check what the store holds afterwards.

`python -m tests.durability.kill --runs 1000 --store db` does this a thousand times.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.durability.graphs import opened, read
from tests.durability.servers import ServerProcess, is_error, tool_call

CALLS_PER_SERVER = 40
SERVERS_PER_RUN = 2
# Iterations of an empty loop between the last reply and the kill: up to a few milliseconds.
MAX_DELAY_ITERATIONS = 100_000

Arguments = Mapping[str, Any]


class Lost(AssertionError):
    """A kill lost an acknowledged write or left half of one."""


@dataclass
class Expected:
    """The graph that the calls and replies so far imply."""

    entities: dict[str, list[str]] = field(default_factory=dict)
    relations: set[tuple[str, str, str]] = field(default_factory=set)

    def apply(self, step: "Step") -> None:
        """Apply a call."""
        getattr(self, f"_{step.tool}")(step.arguments)

    def _create_entities(self, arguments: Arguments) -> None:
        for argument in arguments["entities"]:
            self.entities[argument["name"]] = list(argument["observations"])

    def _add_observations(self, arguments: Arguments) -> None:
        for argument in arguments["observations"]:
            self.entities[argument["entityName"]] += argument["contents"]

    def _create_relations(self, arguments: Arguments) -> None:
        self.relations |= {
            (argument["from"], argument["to"], argument["relationType"])
            for argument in arguments["relations"]
        }

    def _delete_entities(self, arguments: Arguments) -> None:
        for name in arguments["entityNames"]:
            del self.entities[name]
            self.relations = {relation for relation in self.relations if name not in relation[:2]}


@dataclass(frozen=True)
class Step:
    """One tool call."""

    tool: str
    arguments: dict[str, Any]


def run(path: Path, seed: int) -> int:
    """Serve the store and kill the server, twice; return the number of acknowledged calls.

    Raises Lost.
    """
    random = Random(seed)
    expected = Expected()
    acknowledged = 0
    for life in range(SERVERS_PER_RUN):
        steps = list(_plan(random, deepcopy(expected), life))
        count = _kill_server(path, steps, random)
        expected = _check_store(path, expected, steps, count)
        acknowledged += count
    return acknowledged


def _plan(random: Random, expected: Expected, life: int) -> Iterator[Step]:
    """Yield calls of four tools; each is valid if all calls before it took effect."""
    makers: list[Callable[[Random, Expected, str], Step]] = [
        _creation,
        _creation,
        _addition,
        _addition,
        _relation,
        _deletion,
    ]
    for number in range(CALLS_PER_SERVER):
        maker = random.choice(makers) if len(expected.entities) > 3 else _creation
        step = maker(random, expected, f"{life}.{number}")
        expected.apply(step)
        yield step


def _creation(random: Random, expected: Expected, label: str) -> Step:
    names = [f"entity {label}.{place}" for place in range(random.randint(1, 3))]
    shapes = [
        {"name": name, "entityType": "thing", "observations": _texts(random, name)}
        for name in names
    ]
    return Step("create_entities", {"entities": shapes})


def _addition(random: Random, expected: Expected, label: str) -> Step:
    chosen = random.sample(sorted(expected.entities), 2)
    additions = [
        {"entityName": name, "contents": _texts(random, f"{name} in {label}")} for name in chosen
    ]
    return Step("add_observations", {"observations": additions})


def _relation(random: Random, expected: Expected, label: str) -> Step:
    ends = random.sample(sorted(expected.entities), 3)
    pairs = [(ends[0], ends[1]), (ends[1], ends[2])]
    relations = [
        {"from": source, "to": target, "relationType": f"by {label}"} for source, target in pairs
    ]
    return Step("create_relations", {"relations": relations})


def _deletion(random: Random, expected: Expected, label: str) -> Step:
    return Step("delete_entities", {"entityNames": random.sample(sorted(expected.entities), 1)})


def _texts(random: Random, about: str) -> list[str]:
    return [
        f"fact {place} about {about}" + "." * random.choice((0, 0, 200))
        for place in range(random.randint(1, 3))
    ]


def _kill_server(path: Path, steps: list[Step], random: Random) -> int:
    """Send all calls at once, kill the server, and return the number of acknowledged calls."""
    server = ServerProcess(path)
    server.send(tool_call(step.tool, step.arguments, number) for number, step in enumerate(steps))
    replies = server.replies(random.randrange(len(steps)))
    for _ in range(random.randrange(MAX_DELAY_ITERATIONS)):
        pass
    replies += server.kill()
    server.close()
    _refuse_errors(replies)
    return len(replies)


def _refuse_errors(replies: list[dict[str, Any]]) -> None:
    for number, reply in enumerate(replies):
        if is_error(reply) or reply["id"] != number:
            raise Lost(f"call {number} was answered with {reply}")


def _check_store(path: Path, before: Expected, steps: list[Step], count: int) -> Expected:
    """Return what the store holds: all acknowledged calls and possibly the whole of the next one.

    Raises Lost.
    """
    with opened(path) as memory:
        graph, problems = read(memory), memory.store.check()
    if [
        problem for problem in problems if "was not finished" not in problem
    ]:  # the next write cuts that off
        raise Lost(f"after {count} calls: {problems}")
    relations = {relation.key for relation in graph.relations}
    found = Expected({entity.name: list(entity.texts) for entity in graph.entities}, relations)
    acknowledged, with_next = _after(before, steps[:count]), _after(before, steps[: count + 1])
    if found not in (acknowledged, with_next):
        raise Lost(f"after {count} acknowledged calls: {_difference(acknowledged, found)}")
    return found


def _after(before: Expected, steps: list[Step]) -> Expected:
    expected = deepcopy(before)
    for step in steps:
        expected.apply(step)
    return expected


def _difference(wanted: Expected, found: Expected) -> str:
    missing = sorted(wanted.entities.keys() - found.entities.keys())
    unexpected = sorted(found.entities.keys() - wanted.entities.keys())
    both = wanted.entities.keys() & found.entities.keys()
    changed = sorted(name for name in both if wanted.entities[name] != found.entities[name])
    relations = sorted(wanted.relations ^ found.relations)
    return f"{missing=}, {unexpected=}, {changed=}, {relations=}"


def main() -> int:
    """Run many seeds; stop with status 1 at the first loss and print how to repeat it."""
    options = _options()
    acknowledged = 0
    for seed in range(options.first, options.first + options.runs):
        with tempfile.TemporaryDirectory() as directory:
            try:
                acknowledged += run(Path(directory) / f"memory.{options.store}", seed)
            except Lost as exc:
                print(
                    f"seed {seed}: {exc}\nrepeat with --store {options.store} --first {seed} "
                    "--runs 1"
                )
                return 1
    print(f"{options.runs} runs on .{options.store}: {acknowledged} calls acknowledged, none lost")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Kill servers while they work and check what their stores hold afterwards."
    )
    parser.add_argument(
        "--runs", type=int, default=1000, help="number of runs (default: %(default)s)"
    )
    parser.add_argument(
        "--first", type=int, default=0, help="seed of the first run (default: %(default)s)"
    )
    parser.add_argument(
        "--store", choices=("db", "jsonl", "mcpmem"), required=True, help="kind of store"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
