"""Races in a fixed order.

Threads of two servers use one SQLite file, and a seed decides who is next.

`python -m tests.durability.races --seeds 2000` tries that many orders and prints the seeds that
fail; `--seed N` repeats one.
"""

import argparse
import logging
import sys
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from random import Random
from struct import pack
from tempfile import TemporaryDirectory

from polymnia.engine.facts import forget
from polymnia.engine.graph import entities, facts
from polymnia.engine.history import changes, trash
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.indexer import index_store
from polymnia.engine.transfer.migrate import migrate
from polymnia.errors import BadInput, StoreBusy
from polymnia.model import EntityDraft, FactAddition
from polymnia.stores import open_store
from polymnia.stores.backup import back_up
from polymnia.stores.contract import Store
from tests.durability.scheduler import Scheduler

_HUB = "hub"
_WRITES = 4
_DIMENSION = 4


class Ledger:
    """What the store must hold: texts by their state."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.acknowledged: set[str] = set()
        self.removing: set[str] = set()
        self.removed: set[str] = set()

    def required(self) -> set[str]:
        """Return the texts that any later read must find."""
        return self.acknowledged - self.removing

    def require(self, texts: set[str], required: set[str], removed: set[str], where: str) -> None:
        """Raise AssertionError if texts are missing, came back or were made up."""
        # A text whose removal has begun since may be there or not.
        missing = required - self.removing - texts
        assert not missing, f"{where} lacks {sorted(missing)}"
        assert not texts & removed, f"{where} has {sorted(texts & removed)}, which were removed"
        assert texts <= self.begun, f"{where} has {sorted(texts - self.begun)}"


class Race:
    """Two stores on one file, as two servers have it, and what is done to them at the same time."""

    def __init__(self, home: Path, scheduler: Scheduler, seed: int) -> None:
        self._home = home
        self._path = home / "memory.db"
        self._scheduler = scheduler
        self._random = Random(f"race {seed}")
        self._ledger = Ledger()
        self._has_purged = False
        self.stores: list[Store] = [open_store(str(self._path)) for _ in range(2)]
        entities.create(Memory(self.stores[0]), [EntityDraft(_HUB, "thing")], by="setup")

    def choose_tasks(self) -> dict[str, Callable[[], object]]:
        """Return two writers and some others, each with a name."""
        kinds: list[Callable[[str, Memory], object]] = [
            self._read, self._index, self._purge, self._undo, self._back_up, self._migrate,
            self._write, self._reopen,
        ]  # fmt: skip
        chosen = [self._write, self._write, *self._random.sample(kinds, 3)]
        tasks: dict[str, Callable[[], object]] = {}
        for number, kind in enumerate(chosen):
            name = f"{kind.__name__[1:]} {number}"
            memory = Memory(self._random.choice(self.stores))
            tasks[name] = partial(kind, name, memory)
        return tasks

    def verify(self) -> None:
        """Check the file after all threads have ended, and after it was opened again."""
        for store in self.stores:
            self._look(store, "a server at the end")
            store.close()
        with closing(open_store(str(self._path))) as store:
            self._look(store, "the file")
            assert store.check() == []
            identifiers = [change.id for change in changes.latest(Memory(store), limit=500).changes]
            assert identifiers == sorted(set(identifiers), reverse=True)

    def _write(self, name: str, memory: Memory) -> None:
        for number in range(_WRITES):
            self._add(memory, f"{name} {number}")
            self._look(memory.store, name)

    def _read(self, name: str, memory: Memory) -> None:
        for _ in range(_WRITES):
            required, removed = self._ledger.required(), set(self._ledger.removed)
            with memory.reading() as read:
                first = read.entities([_HUB])
                self._scheduler.pause()
                assert read.entities([_HUB]) == first, "a snapshot has changed"
            self._ledger.require(set(first[0].texts), required, removed, name)

    def _index(self, name: str, memory: Memory) -> None:
        embedder = _LengthEmbedder()
        assert index_store(memory.store, embedder) >= 0

    def _purge(self, name: str, memory: Memory) -> None:
        text = f"{name} to purge"
        self._add(memory, text)
        ordinal = self._ordinal_of(memory, text)
        self._ledger.removing.add(text)
        forget.forget(memory, forget.Unwanted(facts=((_HUB, ordinal),)), by=name)
        self._ledger.removed.add(text)
        self._has_purged = True
        with suppress(StoreBusy):  # readers kept the log in use; the command says so
            trash.purge(memory, days=0)

    def _undo(self, name: str, memory: Memory) -> None:
        text = f"{name} to undo"
        self._add(memory, text)
        change = changes.latest(memory, limit=1, actor=text).changes[0]
        self._ledger.removing.add(text)
        try:
            receipt = undo(memory, [change.id], by=name)
        except BadInput:
            # A purge that came between has removed what the change replaced.
            assert self._has_purged, f"{name} was refused without a purge"
            self._ledger.removing.remove(text)
            return
        assert not receipt.conflicts, receipt
        self._ledger.removed.add(text)

    def _back_up(self, name: str, memory: Memory) -> None:
        target = self._home / f"{name}.db"
        required, removed = self._ledger.required(), set(self._ledger.removed)
        back_up(str(self._path), str(target))
        self._check_copy(target, required, removed, name)

    def _migrate(self, name: str, memory: Memory) -> None:
        target = self._home / f"{name}.db"
        required, removed = self._ledger.required(), set(self._ledger.removed)
        list(migrate(str(self._path), str(target)))
        self._check_copy(target, required, removed, name)

    def _reopen(self, name: str, memory: Memory) -> None:
        for _ in range(_WRITES):
            with closing(open_store(str(self._path))) as store:
                self._look(store, name)

    def _add(self, memory: Memory, text: str) -> None:
        self._ledger.begun.add(text)
        draft = FactAddition(_HUB, (text,), 5)
        facts.add(memory, [draft], by=text, skip_repeats=False)
        self._ledger.acknowledged.add(text)

    def _look(self, store: Store, where: str) -> None:
        required, removed = self._ledger.required(), set(self._ledger.removed)
        texts = set(entities.open_named(Memory(store), [_HUB]).entities[0].texts)
        self._ledger.require(texts, required, removed, where)

    def _check_copy(self, path: Path, required: set[str], removed: set[str], where: str) -> None:
        with closing(open_store(str(path))) as store:
            texts = set(entities.open_named(Memory(store), [_HUB]).entities[0].texts)
            assert store.check() == []
        self._ledger.require(texts, required, removed, where)

    def _ordinal_of(self, memory: Memory, text: str) -> int:
        hub = entities.open_named(memory, [_HUB]).entities[0]
        return next(item.ordinal for item in hub.facts if item.text == text)


class _LengthEmbedder:
    """A tiny model: the vector of a text says how long it is."""

    identity = loaded_identity = f"length/{_DIMENSION}"
    dimension = _DIMENSION
    batch_size = 4
    url = "local"
    idle = 0.0

    def load(self) -> None: ...

    def embed(self, texts: list[str], *, asking: bool = False) -> list[bytes]:
        return [pack("<4f", 1, 0, 0, len(text)) for text in texts]

    def release_if_idle(self) -> None: ...


def run_seed(seed: int) -> list[str]:
    """Run one order of events. Return what went wrong."""
    scheduler = Scheduler(seed)
    with TemporaryDirectory() as home, scheduler.installed():
        race = Race(Path(home), scheduler, seed)
        scheduler.run(race.choose_tasks())
        problems = []
        for name, exc in scheduler.failures:
            trace = "".join(traceback.format_exception(exc))
            problems.append(f"{name}: {trace}")
        if not problems:
            try:
                race.verify()
            except AssertionError as exc:
                problems.append(f"at the end: {exc}")
    return problems


def main(arguments: list[str] | None = None) -> int:
    """Run many seeds and print those that fail. Return 1 if any does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="repeat this one")
    options = parser.parse_args(arguments)
    logging.disable()
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    failed = 0
    for seed in seeds:
        problems = run_seed(seed)
        if problems:
            failed += 1
            print(f"seed {seed} fails:", *problems, sep="\n", flush=True)
    print(f"{len(seeds)} seeds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
