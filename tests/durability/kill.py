"""Kill a server in the middle of its work and look what is left.

`python -m tests.durability.kill --runs 1000 --store db` does it a thousand times.
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

_CALLS = 40
_LIVES = 2
# Rounds of an empty loop between the last reply that is read and the kill: up to a few milliseconds.
_LONGEST_DELAY = 100_000

Arguments = Mapping[str, Any]


class Lost(AssertionError):
    """A kill has cost something that was acknowledged, or left something half done."""


@dataclass
class Picture:
    """What the memory must hold, as somebody who only saw calls and replies works it out."""

    entities: dict[str, list[str]] = field(default_factory=dict)
    relations: set[tuple[str, str, str]] = field(default_factory=set)

    def take(self, step: "Step") -> None:
        """What the call does to the memory."""
        getattr(self, f"_{step.tool}")(step.arguments)

    def _create_entities(self, arguments: Arguments) -> None:
        for each in arguments["entities"]:
            self.entities[each["name"]] = list(each["observations"])

    def _add_observations(self, arguments: Arguments) -> None:
        for each in arguments["observations"]:
            self.entities[each["entityName"]] += each["contents"]

    def _create_relations(self, arguments: Arguments) -> None:
        self.relations |= {(each["from"], each["to"], each["relationType"]) for each in arguments["relations"]}

    def _delete_entities(self, arguments: Arguments) -> None:
        for name in arguments["entityNames"]:
            del self.entities[name]
            self.relations = {each for each in self.relations if name not in each[:2]}


@dataclass(frozen=True)
class Step:
    """One call of the plan."""

    tool: str
    arguments: dict[str, Any]


def run(path: Path, seed: int) -> int:
    """Serve the store and kill the server, twice; gives how many calls were acknowledged. Raises Lost."""
    random = Random(seed)
    held = Picture()
    acknowledged = 0
    for life in range(_LIVES):
        steps = list(_plan(random, deepcopy(held), life))
        count = _killed(path, steps, random)
        held = _survived(path, held, steps, count)
        acknowledged += count
    return acknowledged


def _plan(random: Random, picture: Picture, life: int) -> Iterator[Step]:
    """Calls that mix four verbs; each makes sense when all before it were carried out."""
    makers: list[Callable[[Random, Picture, str], Step]] = [_creating, _creating, _adding, _adding, _linking, _deleting]
    for number in range(_CALLS):
        maker = random.choice(makers) if len(picture.entities) > 3 else _creating
        step = maker(random, picture, f"{life}.{number}")
        picture.take(step)
        yield step


def _creating(random: Random, picture: Picture, label: str) -> Step:
    names = [f"entity {label}.{place}" for place in range(random.randint(1, 3))]
    shapes = [{"name": name, "entityType": "thing", "observations": _texts(random, name)} for name in names]
    return Step("create_entities", {"entities": shapes})


def _adding(random: Random, picture: Picture, label: str) -> Step:
    chosen = random.sample(sorted(picture.entities), 2)
    additions = [{"entityName": name, "contents": _texts(random, f"{name} in {label}")} for name in chosen]
    return Step("add_observations", {"observations": additions})


def _linking(random: Random, picture: Picture, label: str) -> Step:
    ends = random.sample(sorted(picture.entities), 3)
    pairs = [(ends[0], ends[1]), (ends[1], ends[2])]
    relations = [{"from": source, "to": target, "relationType": f"by {label}"} for source, target in pairs]
    return Step("create_relations", {"relations": relations})


def _deleting(random: Random, picture: Picture, label: str) -> Step:
    return Step("delete_entities", {"entityNames": random.sample(sorted(picture.entities), 1)})


def _texts(random: Random, about: str) -> list[str]:
    return [f"fact {place} about {about}" + "." * random.choice((0, 0, 200)) for place in range(random.randint(1, 3))]


def _killed(path: Path, steps: list[Step], random: Random) -> int:
    """How many of the pipelined calls a server acknowledged before it was killed."""
    server = ServerProcess(path)
    server.send(tool_call(step.tool, step.arguments, number) for number, step in enumerate(steps))
    replies = server.replies(random.randrange(len(steps)))
    for _ in range(random.randrange(_LONGEST_DELAY)):
        pass
    replies += server.kill()
    server.close()
    _refuse_errors(replies)
    return len(replies)


def _refuse_errors(replies: list[dict[str, Any]]) -> None:
    for number, reply in enumerate(replies):
        if is_error(reply) or reply["id"] != number:
            raise Lost(f"call {number} was answered with {reply}")


def _survived(path: Path, before: Picture, steps: list[Step], count: int) -> Picture:
    """What the store holds: what was acknowledged and, at most, the whole of the call that was under way."""
    with opened(path) as memory:
        graph, problems = read(memory), memory.store.check()
    if [each for each in problems if "was not finished" not in each]:  # the next write cuts that off
        raise Lost(f"after {count} calls: {problems}")
    relations = {relation.key for relation in graph.relations}
    found = Picture({entity.name: list(entity.texts) for entity in graph.entities}, relations)
    surely, perhaps = _after(before, steps[:count]), _after(before, steps[: count + 1])
    if found not in (surely, perhaps):
        raise Lost(f"after {count} acknowledged calls: {_difference(surely, found)}")
    return found


def _after(before: Picture, steps: list[Step]) -> Picture:
    picture = deepcopy(before)
    for step in steps:
        picture.take(step)
    return picture


def _difference(wanted: Picture, found: Picture) -> str:
    missing = sorted(wanted.entities.keys() - found.entities.keys())
    unexpected = sorted(found.entities.keys() - wanted.entities.keys())
    both = wanted.entities.keys() & found.entities.keys()
    changed = sorted(name for name in both if wanted.entities[name] != found.entities[name])
    relations = sorted(wanted.relations ^ found.relations)
    return f"{missing=}, {unexpected=}, {changed=}, {relations=}"


def main() -> int:
    """Run many seeds; 1 as soon as one of them has lost something, with how to repeat it."""
    options = _options()
    acknowledged = 0
    for seed in range(options.first, options.first + options.runs):
        with tempfile.TemporaryDirectory() as directory:
            try:
                acknowledged += run(Path(directory) / f"memory.{options.store}", seed)
            except Lost as exc:
                print(f"seed {seed}: {exc}\nrepeat with --store {options.store} --first {seed} --runs 1")
                return 1
    print(f"{options.runs} runs on .{options.store}: {acknowledged} calls acknowledged, none lost")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Kill servers in the middle of their work and look what is left.")
    parser.add_argument("--runs", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first (default: %(default)s)")
    parser.add_argument("--store", choices=("db", "jsonl", "mcpmem"), required=True, help="the kind of store")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
