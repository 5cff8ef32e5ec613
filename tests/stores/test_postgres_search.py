"""Search in PostgreSQL finds, ranks and scores exactly as SQLite does, on the same memory."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.recall.questions import Asked, Case, Told
from bench.recall.stores import Comparison, compare
from polymnia.engine import notes
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.search import QUERY_COLUMNS
from polymnia.model import EntityDraft, FactAddition, Note, PassageKind, Within
from polymnia.search.fulltext import TextQuery, first_matches, plain_words
from polymnia.search.terms import fold, terms_of
from polymnia.stores import open_store
from polymnia.stores.contract import Reader
from polymnia.stores.postgres.connection import QUERIES as SQL
from polymnia.stores.postgres.store import PostgresStore
from tests.conftest import STORES
from tests.embedders.bag import BagEmbedder

ENTITIES = 300
DAY = 86_400_000_000
_VOCABULARY = """
running runs runner organize organization organizing general generalize naïve café résumé Straße STRASSE Ångström
getUserName HTTPServer2 parse_json data database 数据库 索引 東京 memory graph agent tool note river mountain lake
quickly slowly don't o'neil back\\slash 100% under_score é É communicate communication relational relations relate
"""
WORDS = _VOCABULARY.split()
_QUERIES = """
running
organize OR river
"general memory"
organiz*
gen* mountain
river NOT lake
(river AND lake) OR agent
getusername
server
数据库
数据 OR river
"data base"
naive cafe
nothingatall
river river lake
"don't"
com*
"""
QUERIES = _QUERIES.strip().splitlines()
KINDS: tuple[PassageKind, ...] = ("entity", "fact", "note")


class Twins(NamedTuple):
    """The same memory in both stores."""

    sqlite: Reader
    postgres: Reader


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder = tmp_path_factory.mktemp("twins")
    one, other = [open_store(STORES[kind](folder)) for kind in ("sqlite", "postgres")]
    for store in (one, other):
        fill(Memory(store))
    with one.reading() as sqlite, other.reading() as postgres:
        yield Twins(sqlite, postgres)
    one.close()
    other.close()


def fill(memory: Memory) -> None:
    """Write entities, delete some of what was written, and keep some notes, the same in every
    store.
    """
    chance = random.Random(11)
    for start in range(0, ENTITIES, 50):
        entities.create(
            memory, [draft(chance, number) for number in range(start, start + 50)], by="test"
        )
    entities.delete(memory, [f"Name{number}" for number in range(0, ENTITIES, 9)], by="test")
    drafts = [
        FactAddition(f"Name{number}", (text(chance),), 5_000_000, "talk") for number in (1, 2, 3)
    ]
    facts.add(memory, drafts, by="test", skip_repeats=False)
    for number in range(20):
        notes.commit(
            memory, Note(f"note {number}", text(chance), (chance.choice(WORDS),)), by="test"
        )


def draft(chance: random.Random, number: int) -> EntityDraft:
    texts = tuple([text(chance) for _ in range(3)])
    kind = chance.choice(["person", "place", "thing"])
    return EntityDraft(f"Name{number}", kind, texts, tags=(chance.choice(WORDS),))


def text(chance: random.Random) -> str:
    # Some words are common and others rare.
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    return " ".join(chance.choices(WORDS, weights, k=chance.randint(1, 25)))


@pytest.mark.parametrize(
    "words",
    [
        ("river",),
        ("river", "lake"),
        ("naive",),
        ("nothingatall",),
        ("relate", "relational"),  # one stem, asked for twice
        ("数据库", "東京"),
    ],
)
@pytest.mark.parametrize("every", [False, True])
def test_words_find_the_same_passages_with_the_same_scores(
    twins: Twins, words: tuple[str, ...], every: bool
) -> None:
    expected, found = [read.match(TextQuery(words, every), KINDS) for read in twins]
    assert [(item.id, item.kind) for item in found] == [(item.id, item.kind) for item in expected]
    scores = [item.score for item in expected]
    assert [item.score for item in found] == pytest.approx(scores, rel=1e-12)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_the_same_passages(twins: Twins, query: str) -> None:
    expected, found = [
        first_matches(query, QUERY_COLUMNS, lambda query: read.match(query, KINDS))  # noqa: B023
        for read in twins
    ]
    assert {item.id for item in found} == {item.id for item in expected}


@pytest.mark.parametrize("query", ["^river agent", "colour: name7"])
def test_syntax_that_postgresql_does_not_understand_is_searched_as_words(
    twins: Twins, query: str
) -> None:
    found = first_matches(query, {}, lambda text: twins.postgres.match(text, KINDS))
    words = TextQuery(tuple(plain_words(query)))
    assert found == twins.postgres.match(words, KINDS) or not twins.postgres.match(words, KINDS)


@pytest.mark.parametrize(
    "query", ["river lake", "naive", "数据库 东京", "getUserName relate", "Name17", "nothingatall"]
)
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(
    "within",
    [
        None,
        Within(names=("Name7", "Name8", "note 3")),
        Within(types=("place", "note")),
        Within(tags=("river",)),
    ],
)
def test_candidates_are_the_same(
    twins: Twins, query: str, every: bool, within: Within | None
) -> None:
    terms = list(dict.fromkeys(terms_of(query)))
    found, expected = [
        {candidate.id: candidate for candidate in read.candidates(terms, 15, within, every=every)}
        for read in (twins.postgres, twins.sqlite)
    ]
    assert {key: each.text for key, each in found.items()} == {
        key: each.text for key, each in expected.items()
    }


def test_words_are_counted_alike(twins: Twins) -> None:
    terms = {term for word in WORDS for term in terms_of(word)} | {"nothingatall"}
    assert twins.postgres.word_counts(terms) == twins.sqlite.word_counts(terms)


def test_the_vocabulary_is_the_same(twins: Twins) -> None:
    assert twins.postgres.vocabulary("", "\U0010ffff", 1000) == twins.sqlite.vocabulary(
        "", "\U0010ffff", 1000
    )


def test_names_are_found_alike(twins: Twins) -> None:
    terms = terms_of("Name7 Name70 river")
    assert twins.postgres.names_with(terms, 10) == twins.sqlite.names_with(terms, 10)


@pytest.mark.parametrize(
    "query", ["É", "e\u0301", "strasse", "back\\sl", "100%", "_", "数", "note 1", "ame29", "\n"]
)
def test_any_part_of_a_text_is_found_alike(twins: Twins, query: str) -> None:
    folded = fold(query)
    expected = [entity.name for entity in twins.sqlite.containing(folded)]
    assert [entity.name for entity in twins.postgres.containing(folded)] == expected
    assert {item.name for item in twins.postgres.containing(folded, outlines=True)} == set(expected)
    found = {note.key for note in twins.postgres.notes.containing(folded)}
    assert found == {note.key for note in twins.sqlite.notes.containing(folded)}


def test_neighbours_are_the_same(twins: Twins) -> None:
    passages = twins.sqlite.candidates(terms_of("river lake agent"), 100)
    near = [
        {
            key: [item and item.id for item in (near.before, near.earlier, near.after)]
            for key, near in read.neighbours(passages).items()
        }
        for read in twins
    ]
    assert near[0] == near[1]


@pytest.mark.parametrize("embedder", [None, BagEmbedder()], ids=["words", "words and meaning"])
def test_questions_are_answered_alike(tmp_path: Path, embedder: BagEmbedder | None) -> None:
    chance = random.Random(5)
    days = [
        Told(chance.choice(["Nora", "Otto"]), text(chance), DAY * (at // 10)) for at in range(200)
    ]
    # A conversation in which neighbours count, and dates in words.
    turns = [
        Told(
            chance.choice(["Nora", "Otto"]), f"{text(chance)} in May 2023?", DAY * 40 + 1 + at // 8
        )
        for at in range(100)
    ]
    asked = []
    for number in range(20):
        question = " ".join(chance.sample(WORDS, 4))
        if number % 2:
            question = f"When did Otto say {question} in May 2023?"
        asked.append(Asked(question, "any", {}))
    words, recalled = Comparison(), Comparison()
    case = Case("made", "person", days + turns, asked)
    sqlite, postgres = STORES["sqlite"](tmp_path), STORES["postgres"](tmp_path)
    compare(case, sqlite, postgres, words, recalled, embedder)
    assert (words.queries, words.ranked_otherwise, words.scored_otherwise) == (40, 0, 0)
    assert (recalled.queries, recalled.ranked_otherwise) == (20, 0)
    # Both store float16; the databases round in other places.
    assert recalled.largest_difference < (1e-9 if embedder is None else 1e-3)


def test_a_passage_with_more_words_than_a_tsvector_holds_can_be_written_and_found(
    tmp_path: Path,
) -> None:
    store = open_store(STORES["postgres"](tmp_path))
    memory = Memory(store)
    long = " ".join(["needle", *[f"word{number:06}" for number in range(85_000)], "x" * 5000])
    entities.create(memory, [EntityDraft("Long", "thing", (long,))], by="test")
    with store.reading() as read:
        assert [candidate.entity for candidate in read.candidates(["needl"], 5)] == ["Long"]
        assert [entity.name for entity in read.containing("word084999")] == ["Long"]
    store.close()


def test_a_purge_removes_the_words_of_deleted_texts(tmp_path: Path) -> None:
    store = open_store(STORES["postgres"](tmp_path))
    memory = Memory(store)
    entities.create(
        memory,
        [EntityDraft("One", "thing", ("xylophone shared",)), EntityDraft("Two", "thing")],
        by="test",
    )
    facts.add(memory, [FactAddition("Two", ("shared",))], by="test", skip_repeats=False)
    entities.delete(memory, ["One"], by="test")
    store.purge(before=2**62)
    assert isinstance(store, PostgresStore)
    with store._database.connection() as connection:
        rows = connection.execute(
            "SELECT term FROM terms WHERE workspace_id = $1", (store.workspace,)
        ).fetchall()
    assert {term for (term,) in rows} == {"two", "thing", "share"}
    store.close()


def test_a_search_for_a_word_reads_no_more_facts_than_have_it(
    postgres_database: str,
) -> None:
    store = open_store(f"{postgres_database}?workspace=one")
    texts = tuple(f"word{number} river lake" for number in range(60))
    entities.create(
        Memory(store),
        [EntityDraft(f"E{number}", "thing", texts) for number in range(100)],
        by="test",
    )
    entities.create(Memory(store), [EntityDraft("Rare", "thing", ("a zebra",))], by="test")
    assert isinstance(store, PostgresStore)
    store.compact()  # with statistics for the planner
    zebra = (["zebra"], ["'zebra'"], ["ABCD"], [8.0, 4.0, 1.0, 0.5])
    # What the connection read before may not have been reported yet, and counts here.
    facts_read = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables "
        "WHERE relname = 'observations' AND schemaname = 'polymnia'"
    )
    with store._database.connection() as connection, connection.transaction():
        ((before,),) = connection.execute(facts_read).fetchall()
        found = connection.execute(
            SQL["match_words"], (store.workspace, "'zebra'", *zebra, ["fact"], None)
        ).fetchall()
        ((after,),) = connection.execute(facts_read).fetchall()
    assert (len(found), after - before) == (1, 1)
    store.close()
