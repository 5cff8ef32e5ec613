"""What curation costs in a large workspace.

`python -m bench.curation` runs each verb in a process of its own.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np

from bench.budgets import Verdict, at_most
from bench.figures import Cost
from bench.machine import describe_machine
from polymnia.engine.curation.clusters import clusters
from polymnia.engine.curation.findings import orphans, pending, relation_gaps
from polymnia.engine.curation.report import consolidation_report
from polymnia.engine.curation.similar import duplicate_names, similar_pairs
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store
from polymnia.stores.contract import Store

ME = "bench"
_PER_ENTITY = 5
_VOCABULARY, _WORDS = 30_000, 18
# Entities lie around this many topics, and the observations of an entity around it.
_ENTITIES_PER_TOPIC = 20
_DIMENSION, _SPREAD = 384, 0.6
_BATCH = 1_000
# Most of the memory holds the vectors: 4 bytes for each number of an observation's vector while it
# is read.
_BUDGET_MB = 600

VERBS: dict[str, Callable[[Memory], object]] = {
    "orphans": orphans,
    "pending summaries": pending,
    "duplicate names": duplicate_names,
    "relation gaps": relation_gaps,
    "similar pairs": similar_pairs,
    "clusters": clusters,
    "consolidation report": consolidation_report,
}
_BUDGETS_S = {"relation gaps": 5.0, "similar pairs": 5.0, "consolidation report": 10.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.curation", description=__doc__)
    parser.add_argument(
        "--entities", type=int, default=20_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--store", metavar="URL", help="a store to keep, which is filled if it is empty"
    )
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print(
        f"{machine.cores} cores, load {machine.load_before} before the run, Python {machine.python}"
    )
    with TemporaryDirectory() as folder:
        url = options.store or str(Path(folder) / "memory.db")
        _fill(url, options.entities)
        costs = {name: _measure(url, name) for name in VERBS}
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


def _judge(costs: dict[str, Cost]) -> Iterator[Verdict]:
    for name, seconds in _BUDGETS_S.items():
        yield at_most(name, costs[name].wall, seconds, " s")
    yield at_most(
        "highest memory of any", max(cost.peak for cost in costs.values()), _BUDGET_MB, " MB"
    )


def _measure(url: str, name: str) -> Cost:
    """Run the verb in a new process: memory is never given back to the system."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_run, url, name).result()


def _run(url: str, name: str) -> Cost:
    memory = Memory(open_store(url))
    wall, processor = perf_counter(), process_time()
    VERBS[name](memory)
    wall, processor = perf_counter() - wall, process_time() - processor
    memory.store.close()
    return Cost(wall, processor, _peak_megabytes())


def _peak_megabytes() -> float:
    """Return the highest resident memory of this process alone.

    `getrusage` also counts that of its parent.
    """
    status = Path("/proc/self/status").read_text("utf-8")
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


def _fill(url: str, count: int) -> None:
    began = perf_counter()
    store = open_store(url)
    memory = Memory(store)
    with memory.reading() as read:
        if read.counts().entities:
            store.close()
            return
    names = _fill_text(memory, count)
    source = random.Random(3)
    pairs = [_related_pair(source, names) for _ in range(2 * count)]
    for start in range(0, len(pairs), _BATCH):
        batch = [Relation(a, b, "relates to") for a, b in pairs[start : start + _BATCH]]
        relations.create(memory, batch, by=ME)
    _fill_vectors(store, names)
    store.close()
    print(
        f"{count} entities, {_PER_ENTITY * count} observations of {_WORDS} words and their vectors",
        end=" ",
    )
    print(f"written in {perf_counter() - began:.0f} s")


def _related_pair(source: random.Random, names: Sequence[str]) -> tuple[str, str]:
    """Return two entities, which are of the same topic more often than not."""
    one, topics = source.randrange(len(names)), _topics(len(names))
    other = (
        source.randrange(one % topics, len(names), topics)
        if source.random() < 0.75
        else source.randrange(len(names))
    )
    return names[one], names[other]


def _topics(count: int) -> int:
    return max(1, count // _ENTITIES_PER_TOPIC)


def _fill_text(memory: Memory, count: int) -> list[str]:
    """Create entities with names of one to three words.

    Every other observation mentions one of them.
    """
    source = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(source.choices(letters, k=source.randint(3, 9))) for _ in range(_VOCABULARY)]
    shares = list(accumulate([1 / (place + 10) for place in range(_VOCABULARY)]))
    names = list(
        {
            " ".join(source.choices(words, k=source.choice((1, 2, 2, 3)))).title(): None
            for _ in range(2 * count)
        }
    )
    names = names[:count]

    def text() -> str:
        chosen = source.choices(words, cum_weights=shares, k=_WORDS)
        if source.random() < 0.5:
            chosen[source.randrange(_WORDS)] = source.choice(names)
        return " ".join(chosen)

    for start in range(0, len(names), _BATCH):
        drafts = [
            EntityDraft(name, "thing", tuple([text() for _ in range(_PER_ENTITY)]))
            for name in names[start : start + _BATCH]
        ]
        entities.create(memory, drafts, by=ME)
    return names


def _fill_vectors(store: Store, names: Sequence[str]) -> None:
    """Give each observation a vector near that of its entity, which is near that of its topic."""
    source = np.random.default_rng(11)
    model = store.vectors.add_model(f"topics/{_DIMENSION}", "local", _DIMENSION).number
    topics = source.normal(size=(_topics(len(names)), _DIMENSION))
    near = {name: topics[place % len(topics)] + _noise(source) for place, name in enumerate(names)}
    below: int | None = None
    while True:
        with store.reading() as read:
            waiting = [passage for passage, _ in read.vectors.pending(model, _BATCH, below=below)]
            passages = read.passages(waiting)
        if not waiting:
            return
        rows = [
            (passage.id, (near[passage.entity] + _noise(source)).astype("<f4").tobytes())
            for passage in passages
        ]
        store.vectors.put(model, rows)
        below = min(waiting)


def _noise(source: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return _SPREAD * source.normal(size=_DIMENSION)


if __name__ == "__main__":
    sys.exit(main())
