"""Notes in the engine, compared with a simple model."""

import math
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from struct import unpack

import apsw
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from polymnia.engine import notes
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, Note, NoteHit, NoteQuery, NoteScope
from polymnia.search.embedding import pack_vector
from polymnia.search.relevance import MAX_INEXACT
from polymnia.stores import open_store
from polymnia.stores.sqlite import vectors
from tests.conftest import STORES
from tests.groups import mostly_matrix

Vector = tuple[float, ...] | None
SCOPES = (VAULT, NoteScope("one", "ann"), NoteScope("one", "ben"), NoteScope("two", "ann"))
scopes = st.sampled_from(SCOPES)
# Few and similar, so that several notes match the same query.
words = st.sampled_from(["alpha", "beta", "gamma", "delta", "Äpfel", "x"])
texts = st.lists(words, max_size=6).map(" ".join)
keys = st.sampled_from(["alpha", "beta", "k1", "k2", "k3", "a/b", "AND", "alpha beta"])
tags = st.lists(st.sampled_from(["t", "u", "T", "a b"]), max_size=3, unique=True).map(tuple)
numbers = st.integers(-3, 3).map(float)
directions = st.tuples(numbers, numbers, numbers)
queries = st.one_of(
    words,
    keys,
    texts.filter(bool),
    st.sampled_from(
        [
            "alpha NOT beta",
            "al*",
            "alpha-beta",
            '"beta gamma"',
            "gamma OR delta",
            "tags : t",
            "alpha's",
            "(",
        ]
    ),
)


class NotesMachine(RuleBasedStateMachine):
    """Runs the same verbs on two stores of one workspace, in turn, and on a dictionary."""

    kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        url = STORES[self.kind](Path(self.directory.name))
        self.stores = [open_store(url), open_store(url)]
        self.memories = [Memory(store) for store in self.stores]
        self.kept: dict[tuple[NoteScope, str], Note] = {}

    def teardown(self) -> None:
        assert self.stores[0].check() == []
        for store in self.stores:
            store.close()
        self.directory.cleanup()

    @rule(
        which=st.integers(0, 1),
        scope=scopes,
        key=keys,
        content=texts,
        tags=tags,
        vector=st.none() | directions,
    )
    def commit(
        self,
        which: int,
        scope: NoteScope,
        key: str,
        content: str,
        tags: tuple[str, ...],
        vector: Vector,
    ) -> None:
        assume(vector is None or any(vector))
        embedding = b"" if vector is None else pack_vector(vector, 3, "embedding")
        kept = notes.commit(
            self.memories[which], Note(key, content, tags, scope, embedding), by="model"
        )
        old = self.kept.get((scope, key))
        if old is not None:
            assert kept.created_at == old.created_at < kept.updated_at
            if not embedding and old.content == content:
                embedding = old.embedding
        assert kept.embedding == embedding
        self.kept[scope, key] = kept

    @rule(which=st.integers(0, 1), scope=scopes, key=st.none() | keys, wanted=tags)
    def prune(self, which: int, scope: NoteScope, key: str | None, wanted: tuple[str, ...]) -> None:
        matching = [
            place
            for place, note in self.kept.items()
            if place[0] == scope and key in (None, place[1]) and set(wanted) <= set(note.tags)
        ]
        assert notes.prune(self.memories[which], [scope], by="model", key=key, tags=wanted) == len(
            matching
        )
        for place in matching:
            del self.kept[place]

    @rule(
        which=st.integers(0, 1),
        scope=scopes,
        text=queries,
        wanted=tags,
        vector=st.none() | directions,
        limit=st.integers(1, 12),
    )
    def search(
        self,
        which: int,
        scope: NoteScope,
        text: str,
        wanted: tuple[str, ...],
        vector: Vector,
        limit: int,
    ) -> None:
        assume(vector is None or any(vector))
        packed = b"" if vector is None else pack_vector(vector, 3, "vector")
        query = NoteQuery(text=text, tags=wanted, vector=packed, limit=limit)
        found = notes.search(self.memories[which], query, [scope])
        left = [
            note
            for note in self.kept.values()
            if note.scope == scope and set(wanted) <= set(note.tags)
        ]
        assert found.searched == len(left)
        expected = self._relevance(scope, text, left, vector)
        _check_hits(found.hits, expected, text, limit)

    @invariant()
    def the_same_is_kept(self) -> None:
        for memory in self.memories:
            for scope in SCOPES:
                listed = {note.key: (note.content, note.tags) for note in notes.page(memory, scope)}
                model = {
                    key: (note.content, note.tags)
                    for (each, key), note in self.kept.items()
                    if each == scope
                }
                assert listed == model

    def _relevance(
        self, scope: NoteScope, text: str, left: list[Note], vector: Vector
    ) -> dict[str, float]:
        """Return the scores by the seed's formula, over a full-text table of this scope alone."""
        mine = [note for note in self.kept.values() if note.scope == scope]
        bm25 = {
            key: score
            for key, score in _bm25(mine, text).items()
            if key in {note.key for note in left}
        }
        best = min(bm25.values(), default=-1.0)
        shares = {key: MAX_INEXACT * score / best for key, score in bm25.items()}
        relevance = {}
        for note in left:
            share = shares.get(note.key)
            cosine = (
                _cosine(vector, note.embedding) if vector is not None and note.embedding else None
            )
            if share is not None:
                relevance[note.key] = (
                    share if cosine is None else max(0.0, 0.4 * share + 0.6 * cosine)
                )
            elif cosine is not None and cosine > 1e-9:
                relevance[note.key] = 0.6 * cosine
            if text in (note.key, note.content):
                relevance[note.key] = 1.0
        return relevance


@pytest.mark.parametrize(
    "how", mostly_matrix(["with numpy", "without numpy", "postgres"], unmarked=["with numpy"])
)
def test_notes_are_kept_and_found_as_the_model_says(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "without numpy":
        monkeypatch.setattr(vectors, "find_spec", lambda name: None)
    elif how == "with numpy" and find_spec("numpy") is None:
        pytest.skip("numpy is not installed")
    machine = type(
        "Machine", (NotesMachine,), {"kind": "postgres" if how == "postgres" else "sqlite"}
    )
    profile = settings(
        max_examples=15,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=profile)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("what language does the user prefer", ["language"]),
        ("what language does the user prefer?", ["language"]),
        ("database", ["storage"]),
        ("user AND database", []),
        ("postgres language", ["language", "storage"]),
    ],
)
def test_words_are_stemmed_and_fall_back_from_all_to_any(
    versioned_url: str, query: str, keys: list[str]
) -> None:
    store = open_store(versioned_url)
    memory = Memory(store)
    notes.commit(memory, Note("language", "the user prefers Python"), by="test")
    notes.commit(memory, Note("storage", "databases run on Postgres"), by="test")
    for scope in (VAULT, NoteScope("one", "ann")):
        if scope != VAULT:
            for note in notes.page(memory, VAULT):
                notes.commit(memory, replace(note, scope=scope), by="test")
        hits = notes.search(memory, NoteQuery(text=query), [scope]).hits
        assert sorted(hit.note.key for hit in hits) == keys
    store.close()


def test_an_empty_query_is_no_exact_match_of_an_empty_note(versioned_url: str) -> None:
    store = open_store(versioned_url)
    memory = Memory(store)
    for scope in (VAULT, NoteScope("one", "ann")):
        notes.commit(memory, Note("empty", "", scope=scope), by="test")
        (hit,) = notes.search(memory, NoteQuery(text=""), [scope]).hits
        assert (hit.note.key, hit.relevance) == ("empty", 0.0)
    store.close()


def test_vectors_of_another_length_are_ignored(versioned_url: str) -> None:
    store = open_store(versioned_url)
    memory = Memory(store)
    notes.commit(
        memory, Note("short", "text", (), VAULT, pack_vector([1, 0], 2, "vector")), by="test"
    )
    notes.commit(
        memory, Note("long", "text", (), VAULT, pack_vector([1, 0, 0], 3, "vector")), by="test"
    )
    for size, key in ((2, "short"), (3, "long"), (2, "short")):
        query = NoteQuery(
            text="zzz", vector=pack_vector([1.0] + [0.0] * (size - 1), size, "vector")
        )
        assert [hit.note.key for hit in notes.search(memory, query, [VAULT]).hits] == [key]
    store.close()


def _check_hits(hits: list[NoteHit], expected: dict[str, float], text: str, limit: int) -> None:
    given = [hit.relevance for hit in hits]
    assert given == sorted(given, reverse=True)
    assert all(0 <= item <= 1 for item in given)
    assert {hit.note.key: hit.relevance for hit in hits} == {
        hit.note.key: pytest.approx(expected[hit.note.key], abs=1e-6) for hit in hits
    }
    assert given == pytest.approx(sorted(expected.values(), reverse=True)[:limit], abs=1e-6)
    for hit in hits:
        assert (hit.relevance == 1.0) == (text in (hit.note.key, hit.note.content))


def _bm25(kept: list[Note], text: str) -> dict[str, float]:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (key, tags, content, tokenize = 'porter unicode61')"
    )
    rows = [(note.key, " ".join(note.tags), note.content) for note in kept]
    connection.executemany("INSERT INTO words VALUES (?, ?, ?)", rows)
    bare = ["".join(item if item.isalnum() else " " for item in text).split()][0]
    both = (
        [joiner.join(f'"{word}"' for word in bare) for joiner in (" AND ", " OR ")] if bare else []
    )
    try:
        first = _matched(connection, text)
        tries = [] if first or text.split() != bare or {"NOT", "OR", "AND"} & set(bare) else both
    except apsw.SQLError:
        first, tries = {}, both
    for expression in tries:
        first = first or _matched(connection, expression)
    connection.close()
    return first


def _matched(connection: apsw.Connection, expression: str) -> dict[str, float]:
    rows = connection.execute(
        "SELECT key, bm25(words) FROM words WHERE words MATCH ?", (expression,)
    ).fetchall()
    return {str(key): float(str(score)) for key, score in rows}


def _cosine(vector: Sequence[float], other: bytes) -> float:
    right: tuple[float, ...] = unpack("<3f", other)
    return sum(a * b for a, b in zip(vector, right, strict=True)) / (
        math.hypot(*vector) * math.hypot(*right)
    )
