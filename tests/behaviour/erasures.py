"""Random lives of a secret, its erasure in every way, and a search for it in all bytes.

A short form runs with the tests, `python -m tests.behaviour.erasures --seeds 1000` is the long one.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql

from polymnia.engine.facts.erase import erase
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge, move_facts
from polymnia.engine.facts.relocate import relocate
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.model import Entity, EntityDraft, Fact
from polymnia.stores import open_store
from tests.behaviour.graphs import create
from tests.postgres import shared_by_test_run, shared_server

ME = "test"
WAYS = ("number", "text", "beginning", "whole")


class Life:
    """One entity whose facts have a secret, beside others that share a harmless text."""

    def __init__(self, memory: Memory, other: Memory | None, seed: int) -> None:
        self.random = Random(seed)
        self.memory = memory
        self.other = other
        self.secret = f"zq{seed}x{self.random.randrange(16**8):08x}"
        self.name = f"Ann {seed}"
        self.shared = f"likes tea {seed}"
        self.texts = 0

    def run(self, steps: int) -> None:
        """Store the secret, and let some of what may happen to it happen."""
        ben = EntityDraft(f"Ben {self.name}", "person", (self.shared,))
        create(self.memory, EntityDraft(self.name, "person", (self.shared,)), ben)
        self.add()
        actions = (
            self.correct,
            self.supersede,
            self.rename,
            self.merge,
            self.forget_and_undo,
            self.summarize,
            self.move_fact,
            self.move_away,
            self.touch,
        )
        for _ in range(steps):
            self.random.choice(actions)()

    def text(self) -> str:
        self.texts += 1
        return f"{self.texts} password {self.secret} of the door"

    def add(self) -> None:
        self.save(FactDraft(self.text()))

    def save(self, *facts: FactDraft) -> None:
        remember(self.memory, [EntityFacts(name=self.name, facts=facts)], by=ME)

    def entity(self) -> Entity:
        with self.memory.reading() as read:
            return read.entities([self.name])[0]

    def fact(self) -> Fact:
        """Return the newest fact with the secret."""
        return [fact for fact in self.entity().facts if self.secret in fact.text][-1]

    def revise(self, revision: Revision) -> int:
        return revise(self.memory, self.name, revision, by=ME).change

    def correct(self) -> None:
        self.revise(Revision(replace=(Edit(self.fact().ordinal, self.text()),)))

    def supersede(self) -> None:
        self.revise(Revision(supersede=(Edit(self.fact().ordinal, self.text()),)))

    def rename(self) -> None:
        old, self.name = self.name, f"{self.name}'"
        revise(self.memory, old, Revision(name=self.name), by=ME)

    def merge(self) -> None:
        if not self.memory.store.capabilities.history:
            return  # as in the dialects of files, a merge then has no aliases
        old, self.name = self.name, f"{self.name}+"
        create(self.memory, EntityDraft(self.name, "person", ("is nice",)))
        merge(self.memory, [old], self.name, by=ME)

    def forget_and_undo(self) -> None:
        if not self.memory.store.capabilities.history:
            return
        unwanted = Unwanted(facts=((self.name, self.fact().ordinal),))
        undo(self.memory, [forget(self.memory, unwanted, by=ME).change], by=ME)

    def summarize(self) -> None:
        self.revise(Revision(summary=f"Ann. {self.fact().text}. Nice."))
        if self.random.random() < 0.5:
            self.revise(Revision(summary="Ann is nice."))

    def move_fact(self) -> None:
        """Let the fact come from another entity, which keeps something else."""
        home = f"Home {self.name}"
        facts = (FactDraft(self.text()), FactDraft("stays"))
        receipt = remember(self.memory, [EntityFacts(name=home, facts=facts)], by=ME)
        number = receipt.entities[0].facts[0].ordinal
        move_facts(self.memory, [(home, number)], self.name, by=ME)

    def move_away(self) -> None:
        """Let the whole entity come from another workspace."""
        if self.other is None or self.random.random() < 0.5:
            return
        relocate(self.memory, self.other, self.name, by=ME)
        self.memory, self.other = self.other, self.memory

    def touch(self) -> None:
        self.revise(Revision(add_tags=("new",)))

    def erase(self, way: str) -> None:
        """Erase every fact with the secret, in one of the ways to name it."""
        others = [] if self.other is None else [self.other]
        facts = [fact for fact in self.entity().facts if self.secret in fact.text]
        unwanted = [Unwanted(entities=(self.name,))]
        if way != "whole":
            unwanted = []
            for fact in facts:
                key: int | str = fact.ordinal
                if way == "text":
                    key = fact.text
                elif way == "beginning":
                    key = fact.text[: len(fact.text) - 6]
                unwanted.append(Unwanted(facts=((self.name, key),)))
        for one in unwanted:
            receipt = erase(self.memory, one, by=ME, other_memories=lambda: others)
            for label in receipt.perhaps_replaced:
                name, _, number = label.rpartition(" #")
                late = Unwanted(facts=((name, int(number)),))
                erase(self.memory, late, by=ME, other_memories=lambda: others)

    def problems(self, directory: Path) -> list[str]:
        """Return where the secret is left, and what others have lost."""
        found = []
        memories = [self.memory] if self.other is None else [self.memory, self.other]
        for memory in memories:
            found += [f"in {place}" for place in places_of(memory, self.secret, directory)]
        kept = 0
        for memory in memories:
            with memory.reading() as read:
                for entity in read.entities():
                    kept += entity.name.startswith("Ben") and self.shared in entity.texts
        if not kept:
            found.append("the text of another entity is gone")
        return found


def places_of(memory: Memory, secret: str, directory: Path) -> Iterator[str]:
    """Yield the files with the secret in their bytes, or the tables of the test run's server."""
    for path in directory.rglob("*"):
        if path.is_file() and secret.encode() in path.read_bytes().lower():
            yield path.name
    if not memory.store.capabilities.keeps_deleted:
        return
    system = "('pg_catalog', 'information_schema')"
    listing = f"SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN {system}"
    with psycopg.connect(shared_server(), autocommit=True) as connection:
        for schema, table in connection.execute(sql.SQL(listing)).fetchall():
            query = sql.SQL("SELECT count(*) FROM {} AS t WHERE strpos(t::text, %s) > 0")
            name = sql.Identifier(schema, table)
            row = connection.execute(query.format(name), [secret]).fetchone()
            if row is not None and row[0]:
                yield f"{schema}.{table}"


@contextmanager
def open_memories(kind: str, directory: Path) -> Iterator[tuple[Memory, Memory | None]]:
    """Yield a memory of a kind, and another one if facts can be moved there."""
    from tests.conftest import STORES

    with closing(open_store(STORES[kind](directory))) as store:
        if kind != "sqlite":
            yield Memory(store), None
            return
        (directory / "other").mkdir()
        with closing(open_store(str(directory / "other" / "memory.db"))) as other:
            yield Memory(store), Memory(other)


def check_erasure(kind: str, seed: int, directory: Path) -> list[str]:
    """Live a random life, erase the secret, and return what is wrong."""
    with open_memories(kind, directory) as (memory, other):
        life = Life(memory, other, seed)
        life.run(steps=5)
        life.erase(WAYS[seed % len(WAYS)])
        return life.problems(directory)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--store", action="append", help="default: all")
    options = parser.parse_args()
    failures = 0
    for kind in options.store or ("jsonl", "binlog", "sqlite", "postgres"):
        for seed in range(options.first, options.first + options.seeds):
            with TemporaryDirectory() as directory:
                problems = check_erasure(kind, seed, Path(directory))
            if problems:
                failures += 1
                print(f"{kind}, seed {seed}: {'; '.join(problems)}", flush=True)
        print(f"{kind}: {options.seeds} erasures", flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    with shared_by_test_run():
        sys.exit(main())
