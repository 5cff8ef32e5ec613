"""Search in PostgreSQL finds, ranks and scores exactly as SQLite does, on the same memory."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from polymnia.engine import entities, observations
from polymnia.engine.memory import Memory
from polymnia.engine.notes import commit
from polymnia.engine.search import QUERY_COLUMNS
from polymnia.model import EntityDraft, Note, ObservationDraft, PassageKind
from polymnia.search.expression import parse, plain_words
from polymnia.stores import open_store
from polymnia.stores.contract import Reader
from tests.postgres import new_database, shared_server

ENTITIES = 300
WORDS = [
    "running",
    "runs",
    "runner",
    "organize",
    "organization",
    "organizing",
    "general",
    "generalize",
    "naïve",
    "café",
    "résumé",
    "Straße",
    "STRASSE",
    "Ångström",
    "getUserName",
    "HTTPServer2",
    "parse_json",
    "data",
    "database",
    "数据库",
    "索引",
    "東京",
    "memory",
    "graph",
    "agent",
    "tool",
    "note",
    "river",
    "mountain",
    "lake",
    "quickly",
    "slowly",
    "don't",
    "o'neil",
    "back\\slash",
    "100%",
    "under_score",
    "é",
    "É",
    "communicate",
    "communication",
    "relational",
    "relations",
    "relate",
]
QUERIES = """
running
organize OR river
"general memory"
organiz*
gen* mountain
river NOT lake
(river AND lake) OR agent
NEAR(river lake, 3)
^river OR agent
name: name7
entity_type: place AND river
{name entity_type} : thing
getusername
server
数据库
数据 OR river
"data base"
naive cafe
nothingatall
river river lake
"don't"
content: "memory graph" OR name: agent
- name : river
com*
""".strip().splitlines()


class Twins(NamedTuple):
    """The same memory in both stores."""

    sqlite: Reader
    postgres: Reader


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    with new_database(shared_server()) as url:
        path: Path = tmp_path_factory.mktemp("twin") / "memory.db"
        one, other = open_store(str(path)), open_store(url)
        for store in (one, other):
            fill(Memory(store))
        with one.reading() as sqlite, other.reading() as postgres:
            yield Twins(sqlite, postgres)
        one.close()
        other.close()


def fill(memory: Memory) -> None:
    """Write entities, delete some of what was written, and keep some notes, the same in every store."""
    chance = random.Random(11)
    for start in range(0, ENTITIES, 50):
        entities.create(memory, [draft(chance, number) for number in range(start, start + 50)], by="test")
    entities.delete(memory, [f"Name{number}" for number in range(0, ENTITIES, 9)], by="test")
    observations.add(
        memory,
        [ObservationDraft(f"Name{number}", (text(chance),), 5_000_000) for number in (1, 2, 3)],
        by="test",
        skip_repeats=False,
    )
    for number in range(20):
        commit(memory, Note(f"note {number}", text(chance), (chance.choice(WORDS),)), by="test")


def draft(chance: random.Random, number: int) -> EntityDraft:
    texts = tuple([text(chance) for _ in range(3)])
    return EntityDraft(
        f"Name{number}", chance.choice(["person", "place", "thing"]), texts, tags=(chance.choice(WORDS),)
    )


def text(chance: random.Random) -> str:
    # Some words are common and others rare.
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    return " ".join(chance.choices(WORDS, weights, k=chance.randint(1, 25)))


@pytest.mark.parametrize("query", QUERIES)
def test_an_expression_gives_the_same_passages_with_the_same_scores(twins: Twins, query: str) -> None:
    expression = parse(query, QUERY_COLUMNS) or plain_words(query)
    kinds: tuple[PassageKind, ...] = ("entity", "observation", "note")
    expected = twins.sqlite.match(expression, kinds)
    found = twins.postgres.match(expression, kinds)
    assert [(each.id, each.entity, each.kind) for each in found] == [
        (each.id, each.entity, each.kind) for each in expected
    ]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], rel=1e-12)
    first = [each.match(expression, kinds[:1], 5) for each in (twins.postgres, twins.sqlite)]
    assert [each.id for each in first[0]] == [each.id for each in first[1]]
