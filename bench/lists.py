"""How the verbs that take a list grow with its length: processor time per item, on SQLite."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.report import table
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge, move_facts
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import tag_entities
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import take_in
from polymnia.model import Entity, EntityDraft, FactAddition, Relation
from polymnia.stores import open_store

SIZES = (100, 1_000, 10_000)
# An item of the longest list may cost this many times an item of the list before it.
MAX_GROWTH = 1.3
# So many short lists make a round at most.
MAX_LISTS = 10
ACTOR = "bench"
HUB = "hub"

Verb = Callable[[Memory, int], object]


class Growth(Struct, frozen=True):
    """The microseconds per item of one verb, by the length of the list."""

    verb: str
    costs: dict[int, float]

    @property
    def factor(self) -> float:
        """How much more an item of the longest list costs than one of the list before it."""
        *_, shorter, longest = self.costs.values()
        return longest / shorter


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 1 if a verb grows faster than its list."""
    parser = argparse.ArgumentParser(prog="python -m bench.lists", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=list(VERBS), metavar="VERB")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    options = parser.parse_args(arguments)
    growths = []
    for verb in options.verbs:
        costs = {}
        for size in options.sizes:
            # A round has about as many items at each size: the least of short runs would be lower
            # than that of long ones, because other work disturbs them less.
            lists = min(MAX_LISTS, max(options.sizes) // size)
            costs[size] = _cost(verb, size, options.rounds, lists)
        growths.append(Growth(verb, costs))
    print(f"Processor time, the least of {options.rounds} rounds.\n\n" + _report(growths))
    return int(any(growth.factor > MAX_GROWTH for growth in growths))


def _cost(verb: str, size: int, rounds: int, lists: int) -> float:
    """Return the microseconds per item: the least of some rounds, each of several lists."""
    costs = []
    for _ in range(rounds):
        seconds = sum(_time_list(verb, size) for _ in range(lists))
        costs.append(seconds / (size * lists) * 1_000_000)
    return min(costs)


def _time_list(verb: str, size: int) -> float:
    """Return the processor time of a verb with one list, on a new file."""
    with TemporaryDirectory() as home, closing(open_store(str(Path(home) / "memory.db"))) as store:
        memory = Memory(store)
        _fill(memory, size)
        # Processor time: the machine may be busy with other work.
        start = time.process_time()
        VERBS[verb](memory, size)
        return time.process_time() - start


def _fill(memory: Memory, size: int) -> None:
    """Store a hub, and entities with two facts each and a relation to it."""
    drafts = [EntityDraft(HUB, "hub")]
    for number in range(size):
        drafts.append(EntityDraft(f"e{number}", "item", (f"fact {number}", "common")))
    entities.create(memory, drafts, by=ACTOR)
    relations.create(memory, _spokes(size), by=ACTOR)


def _names(size: int) -> list[str]:
    return [f"e{number}" for number in range(size)]


def _spokes(size: int) -> list[Relation]:
    return [Relation(name, HUB, "part_of") for name in _names(size)]


def _drafts(size: int) -> list[EntityDraft]:
    return [EntityDraft(f"new {number}", "item", (f"fact {number}",)) for number in range(size)]


def _create_relations(memory: Memory, size: int) -> object:
    return relations.create(memory, [Relation(HUB, name, "has") for name in _names(size)], by=ACTOR)


def _add_facts(memory: Memory, size: int) -> object:
    drafts = [FactAddition(name, ("another fact",)) for name in _names(size)]
    return facts.add(memory, drafts, by=ACTOR, skip_repeats=True)


def _add_to_one(memory: Memory, size: int) -> object:
    texts = tuple(f"text {number}" for number in range(size))
    return facts.add(memory, [FactAddition(HUB, texts)], by=ACTOR, skip_repeats=True)


def _remove_facts(memory: Memory, size: int) -> object:
    return facts.remove(memory, [(name, ("common",)) for name in _names(size)], by=ACTOR)


def _remember(memory: Memory, size: int) -> object:
    facts = (FactDraft("another fact"),)
    known = [EntityFacts(name=name, facts=facts) for name in _names(size)]
    return remember(memory, known, _spokes(size), by=ACTOR)


def _remember_new(memory: Memory, size: int) -> object:
    facts = (FactDraft("a fact"),)
    new = [EntityFacts(name=f"new {number}", facts=facts) for number in range(size)]
    return remember(memory, new, by=ACTOR)


def _move_facts(memory: Memory, size: int) -> object:
    return move_facts(memory, [(name, 1) for name in _names(size)], HUB, by=ACTOR)


def _import(memory: Memory, size: int) -> object:
    items = [Entity(f"new {number}", "item") for number in range(size)]
    return take_in(memory, [*items, *_spokes(size)], by=ACTOR)


# Every verb of the engine that takes a list.
VERBS: dict[str, Verb] = {
    "create_entities": lambda memory, size: entities.create(memory, _drafts(size), by=ACTOR),
    "upsert_entities": lambda memory, size: entities.upsert(memory, _drafts(size), by=ACTOR),
    "open_entities": lambda memory, size: entities.open_named(memory, _names(size)),
    "delete_entities": lambda memory, size: entities.delete(memory, _names(size), by=ACTOR),
    "add_observations": _add_facts,
    "add_observations of one": _add_to_one,
    "delete_observations": _remove_facts,
    "create_relations": _create_relations,
    "delete_relations": lambda memory, size: relations.delete(memory, _spokes(size), by=ACTOR),
    "remember": _remember,
    "remember new entities": _remember_new,
    "forget": lambda memory, size: forget(memory, Unwanted(entities=tuple(_names(size))), by=ACTOR),
    "tag_entities": lambda memory, size: tag_entities(memory, _names(size), add=("tag",), by=ACTOR),
    "merge_entities": lambda memory, size: merge(memory, _names(size), HUB, by=ACTOR),
    "move_observations": _move_facts,
    "undo": lambda memory, _: undo(memory, [1, 2], by=ACTOR),
    "import": _import,
}


def _report(growths: Sequence[Growth]) -> str:
    sizes = [f"{size:,}" for size in growths[0].costs]
    lines = []
    for growth in growths:
        costs = [f"{cost:.1f}" for cost in growth.costs.values()]
        lines.append([growth.verb, *costs, f"{growth.factor:.2f}"])
    return table(["µs per item", *sizes, "growth"], lines)


if __name__ == "__main__":
    sys.exit(main())
