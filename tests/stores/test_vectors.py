"""Vectors in SQLite: what is pending, what is nearest, what other processes see, and leases."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from struct import pack

import apsw
import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities, facts
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import VAULT, EntityDraft, FactAddition, Note, Perspective, Within
from polymnia.search.templates import MAX_NAMED_CHARACTERS
from polymnia.stores.sqlite import vector_index
from polymnia.stores.sqlite.store import SqliteStore

# Directions in a plane: one apart by a few degrees, "north" far from the others.
EAST, NEAR_EAST, NORTH = (1.0, 0.0, 0.0, 0.0), (0.9, 0.1, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)


def packed(vector: tuple[float, ...]) -> bytes:
    return pack("<4f", *vector)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    drafts = [EntityDraft("A", "x", ("one", "two")), EntityDraft("B", "y", ("three",))]
    entities.create(Memory(store), drafts, by="me")
    yield store
    store.close()


def model_of(store: SqliteStore) -> int:
    return store.vectors.add_model("m/4", "local", 4).number


def pending(store: SqliteStore, model: int) -> dict[str, int]:
    """Return the passages to embed by their text without the name."""
    with store.reading() as read:
        waiting = read.vectors.pending(model, 100)
    return {text.partition(": ")[2] or text: passage for passage, text in waiting}


def embed(store: SqliteStore, model: int, **directions: tuple[float, ...]) -> None:
    waiting = pending(store, model)
    store.vectors.put(
        model, [(waiting[text], packed(vector)) for text, vector in directions.items()]
    )


def coverage(store: SqliteStore, model: int) -> tuple[int, int]:
    with store.reading() as read:
        return read.vectors.coverage(model)


def nearest(store: SqliteStore, model: int, within: Within | None = None, k: int = 10) -> list[str]:
    with store.reading() as read:
        found = read.vectors.nearest(model, packed(EAST), k, within)
        texts = {passage.id: passage.text for passage in read.passages(found)}
    return [texts[passage] for passage in found]


def test_for_a_new_model_everything_is_pending_newest_first(store: SqliteStore) -> None:
    model = model_of(store)
    assert list(pending(store, model)) == ["three", "two", "one"]
    assert model_of(store) == model
    with store.reading() as read:
        assert [model.identity for model in read.vectors.models()] == ["m/4"]
        assert read.vectors.coverage(model) == (0, 3)


def test_the_vectors_of_an_entity_have_a_mean(store: SqliteStore) -> None:
    facts.add(Memory(store), [FactAddition("A", ("not embedded",))], by="me", skip_repeats=True)
    entities.create(Memory(store), [EntityDraft("C", "z", ("also not",))], by="me")
    model = model_of(store)
    embed(store, model, one=EAST, two=NORTH, three=NORTH)
    with store.reading() as read:
        assert read.vectors.means(model) == {"A": packed((0.5, 0.5, 0.0, 0.0)), "B": packed(NORTH)}
    facts.remove(Memory(store), [("A", ("one",))], by="me")
    with store.reading() as read:
        assert read.vectors.means(model)["A"] == packed(NORTH)


def test_pending_passages_can_be_read_in_ranges(store: SqliteStore) -> None:
    model = model_of(store)
    with store.reading() as read:
        ((first, text),) = read.vectors.pending(model, 1)
        rest = read.vectors.pending(model, 10, below=first)
        assert read.vectors.pending(model, 10, above=read.vectors.last_passage()) == []
    assert (text, [item[1] for item in rest]) == ("B: three", ["A: two", "A: one"])


def test_a_turn_is_embedded_without_its_speaker_and_a_fact_with_its_entity(
    store: SqliteStore,
) -> None:
    noon = 1_700_000_000_000_000
    midnight = noon - noon % 86_400_000_000
    said = [FactAddition("A", ("said",), noon), FactAddition("A", ("true that day",), midnight)]
    facts.add(Memory(store), said, by="me", skip_repeats=True)
    drafts = [EntityDraft("C", "conversation", ("a line of it",))]
    entities.create(Memory(store), drafts, by="me")
    notes.commit(Memory(store), Note("k", "a note"), by="me")
    model = model_of(store)
    with store.reading() as read:
        texts = [text for _, text in read.vectors.pending(model, 4)]
    assert texts == ["k: a note", "a line of it", "A: true that day", "said"]


def test_only_a_short_fact_is_embedded_with_the_name_of_its_entity(store: SqliteStore) -> None:
    longest_named, long = "n" * MAX_NAMED_CHARACTERS, "l" * (MAX_NAMED_CHARACTERS + 1)
    drafts = [EntityDraft("diary", "journal", (longest_named, long))]
    entities.create(Memory(store), drafts, by="me")
    model = model_of(store)
    with store.reading() as read:
        texts = [text for _, text in read.vectors.pending(model, 2)]
    assert texts == [long, f"diary: {longest_named}"]


def test_passages_with_a_vector_are_not_pending(store: SqliteStore) -> None:
    model = model_of(store)
    embed(store, model, one=EAST, three=NORTH)
    assert list(pending(store, model)) == ["two"]
    facts.add(Memory(store), [FactAddition("A", ("four",))], by="me", skip_repeats=True)
    notes.commit(Memory(store), Note("k", "five"), by="me")
    assert list(pending(store, model)) == ["five", "four", "two"]
    with store.reading() as read:
        assert read.vectors.coverage(model) == (2, 5)


def test_the_coverage_follows_what_is_written_deleted_and_purged(
    store: SqliteStore, path: str
) -> None:
    model = model_of(store)
    embed(store, model, one=EAST, three=NORTH)
    assert coverage(store, model) == (2, 3)
    with closing(SqliteStore(path)) as other:
        facts.add(Memory(other), [FactAddition("A", ("four",))], by="me", skip_repeats=True)
        assert coverage(store, model) == coverage(other, model) == (2, 4)
        entities.delete(Memory(other), ["B"], by="me")
        assert coverage(store, model) == (1, 3)
    trash.purge(Memory(store), days=-1)
    assert coverage(store, model) == (1, 3)


def test_the_nearest_passages_come_first_with_their_cosines(store: SqliteStore) -> None:
    model = model_of(store)
    embed(store, model, one=NORTH, two=NEAR_EAST, three=EAST)
    assert nearest(store, model) == ["three", "two", "one"]
    assert nearest(store, model, k=1) == ["three"]
    with store.reading() as read:
        assert list(read.vectors.nearest(model, packed(EAST), 3).values()) == pytest.approx(
            [1, 0.9939, 0], abs=1e-3
        )


def test_a_filter_restricts_the_nearest_passages(store: SqliteStore) -> None:
    model = model_of(store)
    embed(store, model, one=NORTH, two=NEAR_EAST, three=EAST)
    assert nearest(store, model, Within(names=("A",))) == ["two", "one"]
    assert nearest(store, model, Within(types=("y",))) == ["three"]
    assert nearest(store, model, Within(until=1)) == []
    assert nearest(store, model, Within(names=("A", "B", "A"), types=("x",)), k=2) == ["two", "one"]
    assert nearest(store, model, Within(names=())) == []


def test_vectors_are_returned_as_float32(store: SqliteStore) -> None:
    model = model_of(store)
    embed(store, model, one=(0.0, 2.0, 0.0, 0.0))
    with store.reading() as read:
        (passage,) = read.vectors.nearest(model, packed(EAST), 1)
        assert read.vectors.vectors(model, [passage, 999]) == {passage: packed(NORTH)}


def test_a_deleted_passage_is_not_found_and_is_restored_without_a_vector(
    store: SqliteStore,
) -> None:
    model = model_of(store)
    embed(store, model, one=NORTH, two=NEAR_EAST, three=EAST)
    assert nearest(store, model) == ["three", "two", "one"]
    entities.delete(Memory(store), ["B"], by="me")
    assert nearest(store, model) == ["two", "one"]
    trash.restore(Memory(store), "B", by="me")
    assert nearest(store, model) == ["two", "one"]
    assert list(pending(store, model)) == ["three"]


def test_a_passage_deleted_meanwhile_gets_no_vector(store: SqliteStore) -> None:
    model = model_of(store)
    waiting = pending(store, model)
    entities.delete(Memory(store), ["B"], by="me")
    store.vectors.put(model, [(waiting["three"], packed(EAST))])
    with store.reading() as read:
        assert read.vectors.coverage(model) == (0, 2)


def test_another_server_sees_new_vectors_and_deletions(store: SqliteStore, path: str) -> None:
    model = model_of(store)
    other = SqliteStore(path)
    assert nearest(other, model) == []
    embed(store, model, one=NORTH, three=EAST)
    assert nearest(other, model) == ["three", "one"]
    entities.delete(Memory(store), ["B"], by="me")
    assert nearest(other, model) == ["one"]
    other.close()


def test_a_server_that_missed_a_purge_finds_no_dead_passage(store: SqliteStore, path: str) -> None:
    model = model_of(store)
    embed(store, model, one=NORTH, three=EAST)
    other = SqliteStore(path)
    assert nearest(other, model, k=1) == ["three"]
    entities.delete(Memory(store), ["B"], by="me")
    trash.purge(Memory(store), days=-1)
    assert nearest(other, model, k=1) == ["one"]
    other.close()


def test_a_purge_removes_the_vectors_of_purged_passages(store: SqliteStore, path: str) -> None:
    model = model_of(store)
    embed(store, model, three=(0.123, 0.456, 0.789, 0.321))
    with store.reading() as read:
        (passage,) = read.vectors.nearest(model, packed(EAST), 1)
    entities.delete(Memory(store), ["B"], by="me")
    trash.purge(Memory(store), days=-1)
    with store.reading() as read:
        assert read.vectors.vectors(model, [passage]) == {}


def test_a_model_is_removed_in_steps(store: SqliteStore) -> None:
    old, new = model_of(store), store.vectors.add_model("n/4", "local", 4).number
    embed(store, old, one=EAST, two=EAST, three=EAST)
    assert [
        store.vectors.remove_vectors(2, model=old),
        store.vectors.remove_vectors(2, model=old),
    ] == [False, True]
    with store.reading() as read:
        assert [model.number for model in read.vectors.models()] == [new]


def test_many_vectors_are_chosen_by_sign_bits_and_ranked_exactly(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "EXACT_LIMIT", 20)
    monkeypatch.setattr(vector_index, "MAX_RESCORED", 10)
    memory, model = Memory(store), model_of(store)
    texts = tuple(f"t{number}" for number in range(60))
    entities.create(memory, [EntityDraft("many", "x", texts)], by="me")
    # A circle divided into 60 directions: the sign bits tell a quarter from the others.
    from math import cos, pi, sin

    circle = {
        text: (cos(number * pi / 30), sin(number * pi / 30), 0.0, 0.0)
        for number, text in enumerate(texts)
    }
    embed(store, model, **circle)
    assert nearest(store, model, k=1) == ["t0"]
    assert nearest(store, model, Within(names=("many",)), k=1) == ["t0"]


def test_the_vector_a_client_supplied_is_kept_exactly(store: SqliteStore) -> None:
    memory = Memory(store)
    vector = packed((0.1, 0.2, 0.3, 0.4))
    notes.commit(memory, Note("k", "text", embedding=vector), by="me")
    assert getattr(notes.read(memory, VAULT, "k"), "embedding", None) == vector
    with store.reading() as read:
        assert read.vectors.models() == []


def test_one_server_holds_a_lease_until_it_expires_or_is_released(
    store: SqliteStore, path: str
) -> None:
    other = SqliteStore(path)
    assert store.vectors.lease("embedding", 60)
    assert store.vectors.lease("embedding", 60)
    assert not other.vectors.lease("embedding", 60)
    store.vectors.lease("embedding", 0)
    assert other.vectors.lease("embedding", -1)
    assert store.vectors.lease("embedding", 60)
    other.close()


NAMED = Perspective("named", "{name} ({type}): {text}", "About {query}")


def test_a_new_store_has_the_perspective_of_the_text_alone(store: SqliteStore) -> None:
    with store.reading() as read:
        assert read.vectors.perspectives() == [Perspective("text", "{text}", "{query}")]


def test_a_perspective_has_texts_and_vectors_of_its_own(store: SqliteStore) -> None:
    model = model_of(store)
    embed(store, model, one=EAST, two=NORTH)
    store.vectors.set_perspective(NAMED)
    with store.reading() as read:
        waiting = dict(read.vectors.pending(model, 10, perspective="named"))
        assert list(waiting.values()) == ["B (y): three", "A (x): two", "A (x): one"]
        assert read.vectors.nearest(model, packed(EAST), 10, perspective="named") == {}
    store.vectors.put(model, [(min(waiting), packed(NORTH))], perspective="named")
    with store.reading() as read:
        assert read.vectors.coverage(model, perspective="named") == (1, 3)
        assert read.vectors.coverage(model) == (2, 3)
        assert read.vectors.nearest(model, packed(NORTH), 10, perspective="named") == {
            min(waiting): 1.0
        }
        assert read.vectors.vectors(model, waiting, perspective="named") == {
            min(waiting): packed(NORTH)
        }


def test_perspectives_with_the_same_document_template_share_their_vectors(
    store: SqliteStore,
) -> None:
    model = model_of(store)
    embed(store, model, one=EAST)
    store.vectors.set_perspective(Perspective("general", "{text}", "Tell me about {query}"))
    with store.reading() as read:
        assert read.vectors.coverage(model, perspective="general") == (1, 3)
        assert len(read.vectors.nearest(model, packed(EAST), 10, perspective="general")) == 1


def test_a_changed_template_starts_without_vectors_and_the_old_ones_go(
    store: SqliteStore, path: str
) -> None:
    model = model_of(store)
    embed(store, model, three=EAST)
    store.vectors.set_perspective(NAMED)
    with store.reading() as read:
        waiting = [passage for passage, _ in read.vectors.pending(model, 10, perspective="named")]
    store.vectors.put(model, [(passage, packed(EAST)) for passage in waiting], perspective="named")
    with store.reading() as read:
        assert len(read.vectors.nearest(model, packed(EAST), 10, perspective="named")) == 3
    store.vectors.set_perspective(Perspective("named", "{name}: {text}", "{query}"))
    with store.reading() as read:
        assert read.vectors.coverage(model, perspective="named") == (0, 3)
        assert read.vectors.nearest(model, packed(EAST), 10, perspective="named") == {}
    assert [store.vectors.remove_vectors(2) for _ in range(3)] == [False, True, True]
    with closing(apsw.Connection(path)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchall() == [(1,)]
    assert nearest(store, model) == ["three"]


def test_another_query_template_keeps_the_vectors(store: SqliteStore) -> None:
    model = model_of(store)
    store.vectors.set_perspective(NAMED)
    with store.reading() as read:
        waiting = [passage for passage, _ in read.vectors.pending(model, 10, perspective="named")]
    store.vectors.put(model, [(passage, packed(EAST)) for passage in waiting], perspective="named")
    store.vectors.set_perspective(Perspective("named", NAMED.document, "Who is {query}?"))
    with store.reading() as read:
        assert read.vectors.coverage(model, perspective="named") == (3, 3)
        assert read.vectors.perspectives()[1].query == "Who is {query}?"


def test_a_removed_perspective_is_gone_for_other_servers_too(store: SqliteStore, path: str) -> None:
    model = model_of(store)
    store.vectors.set_perspective(NAMED)
    other = SqliteStore(path)
    store.vectors.remove_perspective("named")
    with other.reading() as read, pytest.raises(BadInput, match="no perspective 'named'"):
        read.vectors.nearest(model, packed(EAST), 10, perspective="named")
    other.close()


def test_the_perspective_of_the_text_stays_as_it_is(store: SqliteStore) -> None:
    with pytest.raises(BadInput, match="cannot be changed"):
        store.vectors.set_perspective(Perspective("text", "{name}", "{query}"))
    with pytest.raises(BadInput, match="cannot be removed"):
        store.vectors.remove_perspective("text")
    with pytest.raises(BadInput, match="no perspective 'named'"):
        store.vectors.remove_perspective("named")
