"""The binary log itself: what is written, what is read, and what a cut or a wrong byte does."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.engine import entities, observations, relations
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, StoreDamaged, StoreError, StoreTooNew
from polymnia.model import Change, Entity, EntityDraft, ObservationDraft, Relation, Rows
from polymnia.stores.files import binlog_bulk
from polymnia.stores.files.binlog import BinlogStore
from polymnia.stores.files.binlog_records import LIMIT, encode, encode_entity, encode_graph, whole_at
from polymnia.stores.files.binlog_replay import Replay
from polymnia.stores.files.binlog_salvage import salvage
from polymnia.stores.memory import MemoryGraph
from tests.stores.binlog_reader import Picture, ends, read_log

DOC = Path(__file__).parents[2] / "docs" / "formats" / "binlog.md"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.mcpmem"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    store = BinlogStore(str(path))
    yield Memory(store)
    store.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk, where a test opens a log a thousand times."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def write_every_kind(memory: Memory) -> None:
    drafts = [
        EntityDraft("Ada", "person", ("one", "zwei", "one")),
        EntityDraft("Zoë", "person"),
        EntityDraft("", "", ("",)),
    ]
    entities.create(memory, drafts, by="test")
    relations.create(memory, [Relation("Ada", "Zoë", "knows"), Relation("Zoë", "nobody", "knows")], by="test")
    observations.add(
        memory, [ObservationDraft("Zoë", ("x", "x")), ObservationDraft("Ada", ("三",))], by="test", skip_repeats=False
    )
    observations.remove(memory, [ObservationDraft("Ada", ("one",))], by="test")
    relations.create(memory, [Relation("Ada", "Ada", "is"), Relation("a", "b", "c")], by="test")
    relations.delete(memory, [Relation("Ada", "Zoë", "knows")], by="test")
    entities.delete(memory, ["Zoë"], by="test")
    entities.create(memory, [EntityDraft("Zoë", "robot", ("long " * 30,))], by="test")


def picture(memory: Memory) -> Picture:
    graph = entities.read_all(memory)
    return Picture(
        {each.name: (each.type, list(each.texts)) for each in graph.entities},
        [each.key for each in graph.relations],
    )


def reopened(path: Path) -> Picture:
    store = BinlogStore(str(path))
    try:
        return picture(Memory(store))
    finally:
        store.close()


def files(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if not each.name.endswith(".lock"))


def test_nothing_is_written_before_there_is_something_to_write(memory: Memory, path: Path) -> None:
    entities.read_all(memory)
    entities.delete(memory, ["Nobody"], by="test")
    memory.store.compact()
    assert not path.exists()


def test_the_documents_example_is_what_is_written(memory: Memory, path: Path) -> None:
    entities.create(memory, [EntityDraft("A", "x", ("hi",))], by="test")
    example = re.search(r"```\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL)
    assert example is not None
    lines = [re.split(r"\s{3,}|\s\s\"", line)[0] for line in example.group(1).splitlines()]
    assert path.read_bytes() == bytes.fromhex("".join(lines))


def test_a_reader_made_from_the_document_reads_the_log(memory: Memory, path: Path) -> None:
    write_every_kind(memory)
    assert read_log(path.read_bytes()) == picture(memory) == reopened(path)


def test_an_empty_file_is_an_empty_memory_and_can_be_written_to(memory: Memory, path: Path) -> None:
    path.touch()
    assert picture(memory) == Picture()
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    assert reopened(path) == Picture({"A": ("x", [])})


@pytest.mark.usefixtures("quick")
def test_a_log_cut_anywhere_gives_the_whole_records_before_the_cut(memory: Memory, path: Path) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    record_ends = [0, *ends(whole)]
    torn = Path(f"{path}.torn")
    for cut in range(len(whole)):
        torn.unlink(missing_ok=True)
        path.write_bytes(whole[:cut])
        kept = max(end for end in record_ends if end <= cut)
        assert reopened(path) == read_log(whole[:kept]), cut
        assert path.read_bytes() == whole[:kept]
        assert (torn.read_bytes() if torn.exists() else b"") == whole[kept:cut]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("wrong", [0x01, 0x04, 0x06, 0x80, 0xFF])
def test_any_wrong_byte_is_noticed_and_nothing_is_changed(memory: Memory, path: Path, wrong: int) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ wrong]) + whole[at + 1 :]
        path.write_bytes(damaged)
        with pytest.raises(StoreDamaged, match=r"damaged at byte \d+"):
            reopened(path)
        assert path.read_bytes() == damaged
    assert files(path) == ["memory.mcpmem"]


@pytest.mark.usefixtures("quick")
def test_every_other_kind_is_noticed(memory: Memory, path: Path) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    for start in [0, *ends(whole)][:-1]:
        for kind in {*range(8)} - {whole[start + 4]}:
            path.write_bytes(whole[: start + 4] + bytes([kind]) + whole[start + 5 :])
            with pytest.raises(StoreDamaged, match=f"byte {start}:"):
                reopened(path)


def test_zero_bytes_at_the_end_are_a_write_that_did_not_finish(memory: Memory, path: Path) -> None:
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(4096))
    assert reopened(path) == Picture({"A": ("x", [])})
    assert path.read_bytes() == whole


def test_the_first_write_after_a_cut_is_kept(path: Path, memory: Memory) -> None:
    write_every_kind(memory)
    path.write_bytes(path.read_bytes()[:-3])
    entities.create(memory, [EntityDraft("late", "x")], by="test")
    assert reopened(path) == read_log(path.read_bytes())
    assert "late" in reopened(path).entities


def test_an_unfinished_end_is_reported(path: Path, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    write_every_kind(memory)
    path.write_bytes(path.read_bytes()[:-3])
    (problem,) = memory.store.check()
    assert "a record that was not finished" in problem
    reopened(path)
    assert f"now in {path}.torn" in caplog.text
    assert memory.store.check() == []


def test_the_doctor_names_the_byte(path: Path, memory: Memory) -> None:
    write_every_kind(memory)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    (problem,) = memory.store.check()
    assert "damaged at byte 0: the checksum is wrong" in problem


def test_what_can_be_read_is_salvaged_to_a_new_log(path: Path, memory: Memory) -> None:
    drafts = [EntityDraft(name, "x", (f"about {name}",)) for name in "ABCD"]
    entities.create(memory, drafts, by="test")
    data = bytearray(path.read_bytes())
    first, second, third, _ = ends(bytes(data))
    data[first + 20] ^= 1
    path.write_bytes(data + b"torn")
    counts, gaps = salvage(path, path.with_name("new.mcpmem"))
    assert (counts.entities, gaps) == (3, [(first, second), (len(data), len(data) + 4)])
    assert list(reopened(path.with_name("new.mcpmem")).entities) == ["A", "C", "D"]
    assert path.read_bytes() == data + b"torn"
    assert third < len(data)


def test_salvage_overwrites_nothing(path: Path, memory: Memory) -> None:
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    with pytest.raises(BadInput, match="exists already"):
        salvage(path, path)


def test_a_large_entity_is_split_over_records(memory: Memory, path: Path) -> None:
    texts = tuple(f"{number} " + "é" * 9_000 for number in range(8))
    entities.create(memory, [EntityDraft("A", "x", texts)], by="test")
    observations.add(
        memory, [ObservationDraft("A", tuple(f"more {text}" for text in texts))], by="test", skip_repeats=True
    )
    observations.remove(memory, [ObservationDraft("A", texts[1:])], by="test")
    assert len(ends(path.read_bytes())) == 9
    assert read_log(path.read_bytes()) == reopened(path) == picture(memory)


@pytest.mark.parametrize("room", [0, 1])
def test_the_longest_observation_is_kept_and_a_longer_one_refused(memory: Memory, path: Path, room: int) -> None:
    text = "o" * (LIMIT - 1 - 8 - 8 - 1 - 8 + room)
    if room == 0:
        entities.create(memory, [EntityDraft("A", "t" * 60_000, (text,))], by="test")
        assert reopened(path).entities["A"][1] == [text]
        return
    with pytest.raises(BadInput, match=r"an observation of 'A' .* is 1 bytes too long"):
        entities.create(memory, [EntityDraft("B", "x"), EntityDraft("A", "x", (text,))], by="test")
    assert (picture(memory), path.exists()) == (Picture(), False)


def test_names_and_types_that_are_too_long_are_refused(memory: Memory) -> None:
    longest = LIMIT - 1 - 8 - 8 - 8
    entities.create(memory, [EntityDraft("n" * longest, "")], by="test")
    relations.create(memory, [Relation("f" * longest, "", "")], by="test")
    with pytest.raises(BadInput, match="the name and type of an entity"):
        entities.create(memory, [EntityDraft("m" * longest, "t")], by="test")
    with pytest.raises(BadInput, match="the names and type of a relation"):
        relations.create(memory, [Relation("f" * longest, "", "t")], by="test")
    entities.delete(memory, ["n" * longest], by="test")
    assert picture(memory).entities == {}


def test_a_change_that_no_kind_has_a_word_for_is_kept_too(memory: Memory, path: Path) -> None:
    """Undoing: a type goes back, an observation returns to its place, one of two alike goes, an entity leaves edges."""
    entities.create(
        memory,
        [EntityDraft("A", "x", ("one", "two", "three")), EntityDraft("B", "x"), EntityDraft("C", "x")],
        by="test",
    )
    relations.create(memory, [Relation("A", "B", "r"), Relation("C", "B", "r")], by="test")
    (removed,) = observations.remove(memory, [ObservationDraft("A", ("two",))], by="test")
    (added,) = observations.add(memory, [ObservationDraft("A", ("one",))], by="test", skip_repeats=False)
    a, b = [entities.open_named(memory, [name]).entities[0] for name in "AB"]
    for before, after in [
        (Rows(), Rows(observations=(removed,))),
        (Rows(observations=(added,)), Rows()),
        (Rows(entities=(a,)), Rows(entities=(Entity("A", "y"),))),
        (Rows(entities=(b,)), Rows()),
    ]:
        with memory.store.writing() as writer:
            writer.apply(Change("undo", "test", 0, before, after))
        assert reopened(path) == picture(memory)
        assert list(reopened(path).entities) == list(picture(memory).entities)
    found = reopened(path)
    assert found.entities == {"A": ("y", ["one", "two", "three"]), "C": ("x", [])}
    assert found.relations == [("A", "B", "r"), ("C", "B", "r")]


WORDS = st.sampled_from(["a", "b", "ä", ""]) | st.text(max_size=200)
RECORDS = st.lists(
    st.builds(lambda name, kind, texts: b"".join(encode_entity(name, kind, texts)), WORDS, WORDS, st.lists(WORDS))
    | st.builds(lambda *key: encode(1, key), WORDS, WORDS, WORDS)
    | st.builds(lambda *key: encode(5, key), WORDS, WORDS, WORDS)
    | st.builds(lambda name, texts: encode(2, (name,), [text.encode() for text in texts]), WORDS, st.lists(WORDS))
    | st.builds(lambda name, texts: encode(4, (name,), [text.encode() for text in texts]), WORDS, st.lists(WORDS))
    | st.builds(lambda name: encode(3, (name,)), WORDS),
    max_size=12,
)


@given(RECORDS)
def test_the_quick_way_and_the_general_one_agree_with_the_document(records: list[bytes]) -> None:
    data = b"".join(records)
    general, quick = MemoryGraph(), MemoryGraph()
    assert Replay(general).run(data, 0, whole_at) == len(data)
    Replay(quick).run(data, binlog_bulk.fill(quick, data), whole_at)
    expected = read_log(data)
    for graph in (general, quick):
        assert read_log(b"".join(encode_graph(graph.entities(), graph.relations()))) == expected


@given(st.binary(max_size=300), st.integers(0, 100))
def test_any_bytes_at_all_stop_both_ways_at_the_same_place(noise: bytes, cut: int) -> None:
    data = b"".join(encode_entity("A", "x", ["o"])) + encode(1, ("a", "b", "c")) + noise
    data = data[: len(data) - cut]
    graph = MemoryGraph()
    start = binlog_bulk.fill(graph, data)
    assert Replay(graph).run(data, start, whole_at) == Replay(MemoryGraph()).run(data, 0, whole_at)


@pytest.mark.parametrize("data", [b"SQLite format 3\x00" + bytes(100), b"MCPMEMV3" + bytes(20), b'{"type":"entity"}\n'])
def test_another_programs_file_is_refused_and_left_alone(path: Path, memory: Memory, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises((StoreError, StoreTooNew)):
        entities.create(memory, [EntityDraft("A", "x")], by="test")
    assert len(memory.store.check()) == 1
    assert (path.read_bytes(), files(path)) == (data, ["memory.mcpmem"])
