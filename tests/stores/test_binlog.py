"""The content of a binary log.

What is written, what is read, and what a cut or a wrong byte does.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polymnia.engine.facts.merge import merge
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, StoreDamaged, StoreError, StoreTooNew
from polymnia.model import (
    Change,
    Entity,
    EntityDraft,
    FactAddition,
    FactSet,
    Relation,
    Rows,
)
from polymnia.stores import open_store
from polymnia.stores.files.binlog import OURS, load, salvage
from polymnia.stores.files.records import encode_change, encode_graph, encode_payload
from tests.groups import mostly_matrix
from tests.stores.binlog_reader import Picture, change_ends, read_change, read_log, record_ends

DOC = Path(__file__).parents[2] / "docs" / "formats" / "binlog.md"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.mcpmem"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    store = open_store(str(path))
    yield Memory(store)
    store.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk in a test that opens a log a thousand times."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def write_every_kind(memory: Memory) -> None:
    drafts = [
        EntityDraft("Ada", "person", ("one", "zwei", "one")),
        EntityDraft("Zoë", "person"),
        EntityDraft("", "", ("",)),
    ]
    entities.create(memory, drafts, by="test")
    relations.create(
        memory, [Relation("Ada", "Zoë", "knows"), Relation("Zoë", "nobody", "knows")], by="test"
    )
    facts.add(
        memory,
        [FactAddition("Zoë", ("x", "x")), FactAddition("Ada", ("三",))],
        by="test",
        skip_repeats=False,
    )
    facts.remove(memory, [("Ada", ("one",))], by="test")
    relations.create(memory, [Relation("Ada", "Ada", "is"), Relation("a", "b", "c")], by="test")
    relations.delete(memory, [Relation("Ada", "Zoë", "knows")], by="test")
    entities.delete(memory, ["Zoë"], by="test")
    entities.create(memory, [EntityDraft("Zoë", "robot", ("long " * 30,))], by="test")


def picture(memory: Memory) -> Picture:
    graph = entities.read_all(memory)
    return Picture(
        {entity.name: (entity.type, list(entity.texts)) for entity in graph.entities},
        [relation.key for relation in graph.relations],
    )


def reopened(path: Path) -> Picture:
    store = open_store(str(path))
    try:
        return picture(Memory(store))
    finally:
        store.close()


def write_to(path: Path, name: str) -> None:
    store = open_store(str(path))
    entities.create(Memory(store), [EntityDraft(name, "x")], by="test")
    store.close()


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if not file.name.endswith(".lock"))


def test_no_file_is_created_before_the_first_change(memory: Memory, path: Path) -> None:
    entities.read_all(memory)
    entities.delete(memory, ["Nobody"], by="test")
    memory.store.compact()
    assert not path.exists()


def test_the_example_in_the_document_is_what_is_written(memory: Memory, path: Path) -> None:
    entities.create(memory, [EntityDraft("A", "x", ("hi",))], by="test")
    example = re.search(r"```\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL)
    assert example is not None
    lines = [re.split(r"\s{3,}|\s\s\"", line)[0] for line in example.group(1).splitlines()]
    assert path.read_bytes() == bytes.fromhex("".join(lines))


def test_a_reader_written_from_the_document_reads_the_log(memory: Memory, path: Path) -> None:
    write_every_kind(memory)
    assert read_log(path.read_bytes()) == picture(memory) == reopened(path)


def test_an_empty_file_is_an_empty_memory_and_can_be_written_to(memory: Memory, path: Path) -> None:
    path.touch()
    assert picture(memory) == Picture()
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    assert reopened(path) == Picture({"A": ("x", [])})


@pytest.mark.usefixtures("quick")
def test_a_log_cut_anywhere_holds_the_whole_changes_before_the_cut(
    memory: Memory, path: Path
) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    ends = [0, *change_ends(whole)]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        kept = max(end for end in ends if end <= cut)
        assert reopened(path) == read_log(whole[:kept]), cut
        assert path.read_bytes() == whole[:cut]


@pytest.mark.usefixtures("quick")
def test_the_next_write_moves_an_unfinished_end_to_a_file_of_its_own(
    memory: Memory, path: Path
) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    ends = [0, *change_ends(whole)]
    torn = Path(f"{path}.torn")
    for cut in range(len(whole)):
        torn.unlink(missing_ok=True)
        path.write_bytes(whole[:cut])
        kept = max(end for end in ends if end <= cut)
        write_to(path, "late")
        assert path.read_bytes()[:kept] == whole[:kept]
        assert list(read_log(path.read_bytes()).entities)[-1] == "late"
        assert (torn.read_bytes() if torn.exists() else b"") == whole[kept:cut]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("wrong", mostly_matrix([0x01, 0x04, 0x06, 0x80, 0xFF], unmarked=[0x80]))
def test_a_wrong_byte_before_the_last_change_is_damage_and_nothing_is_changed(
    memory: Memory, path: Path, wrong: int
) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    for at in range(change_ends(whole)[-2]):
        damaged = whole[:at] + bytes([whole[at] ^ wrong]) + whole[at + 1 :]
        path.write_bytes(damaged)
        with pytest.raises(StoreDamaged, match=r"damaged at byte \d+"):
            reopened(path)
        assert path.read_bytes() == damaged
    assert files(path) == ["memory.mcpmem"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("wrong", mostly_matrix([0x01, 0x04, 0x06, 0x80, 0xFF], unmarked=[0x80]))
def test_a_wrong_byte_in_the_last_change_never_goes_unnoticed(
    memory: Memory, path: Path, wrong: int
) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    start = change_ends(whole)[-2]
    for at in range(start, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ wrong]) + whole[at + 1 :])
        assert memory.store.check() != []
        try:
            assert reopened(path) == read_log(whole[:start])
        except StoreDamaged:
            assert at == start + 4, "only a wrong kind leaves a right checksum"


@pytest.mark.usefixtures("quick")
def test_every_other_kind_is_noticed(memory: Memory, path: Path) -> None:
    write_every_kind(memory)
    whole = path.read_bytes()
    for start in [0, *record_ends(whole)][:-1]:
        for kind in {*range(8)} - {whole[start + 4]}:
            path.write_bytes(whole[: start + 4] + bytes([kind]) + whole[start + 5 :])
            with pytest.raises(StoreDamaged, match=f"byte {start}:"):
                reopened(path)


@pytest.mark.parametrize("length", [1, 9, 4096])
def test_zero_bytes_at_the_end_are_a_write_that_was_not_finished(
    memory: Memory, path: Path, length: int
) -> None:
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    path.write_bytes(path.read_bytes() + bytes(length))
    assert reopened(path) == Picture({"A": ("x", [])})


BLOCK = 512


def lose_blocks(data: bytes, start: int, lost: set[int], filler: bytes) -> bytes:
    """Return a log whose blocks after `start` were written in any order until the power was cut."""
    blocks = range(start - start % BLOCK, len(data), BLOCK)
    for number, at in enumerate(blocks):
        if number in lost:
            first, last = max(at, start), min(at + BLOCK, len(data))
            data = data[:first] + (filler * BLOCK)[: last - first] + data[last:]
    return data


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("filler", [b"\x00", b"\xff", b"old data "])
@pytest.mark.parametrize("count", [1, 2, 40], ids=["one record", "two records", "many records"])
def test_a_power_cut_that_lost_blocks_of_an_append_costs_that_change_only(
    memory: Memory, path: Path, filler: bytes, count: int
) -> None:
    entities.create(memory, [EntityDraft("before", "x", ("fact",))], by="test")
    start = path.stat().st_size
    drafts = [
        EntityDraft(f"late {number}", "x", ("o" * (4000 // count),)) for number in range(count)
    ]
    entities.create(memory, drafts, by="test")
    whole = path.read_bytes()
    blocks = len(whole) // BLOCK + 1
    for lost in [{number} for number in range(blocks)] + [
        {0, blocks - 1},
        {*range(1, blocks)},
        {*range(blocks - 1)},
    ]:
        data = lose_blocks(whole, start, lost, filler)
        path.write_bytes(data)
        expected = whole if data == whole else whole[:start]
        assert reopened(path) == read_log(expected), lost


def test_lost_blocks_before_a_later_change_are_damage(memory: Memory, path: Path) -> None:
    entities.create(memory, [EntityDraft("before", "x")], by="test")
    start = path.stat().st_size
    entities.create(
        memory,
        [EntityDraft(f"middle {number}", "x", ("o" * 500,)) for number in range(3)],
        by="test",
    )
    end = path.stat().st_size
    entities.create(memory, [EntityDraft(f"last {number}", "x") for number in range(3)], by="test")
    whole = path.read_bytes()
    for at in range(start, end - 64, 64):
        damaged = whole[:at] + bytes(64) + whole[at + 64 :]
        path.write_bytes(damaged)
        with pytest.raises(StoreDamaged, match=r"damaged at byte \d+"):
            reopened(path)
        assert path.read_bytes() == damaged


@pytest.mark.usefixtures("quick")
def test_a_first_change_that_was_not_finished_leaves_an_empty_memory(
    memory: Memory, path: Path
) -> None:
    entities.create(memory, [EntityDraft(name, "x", ("o" * 600,)) for name in "ABC"], by="test")
    whole = path.read_bytes()
    for lost in (
        whole[:1500] + bytes(len(whole) - 1500),
        bytes(600) + whole[600:],
        whole[:700] + b"?" * 600,
    ):
        path.write_bytes(lost)
        assert reopened(path) == Picture()


def test_a_merge_cut_anywhere_is_whole_or_did_not_happen(memory: Memory, path: Path) -> None:
    entities.create(
        memory, [EntityDraft("Alice", "x", ("one", "two")), EntityDraft("Alicia", "x")], by="test"
    )
    relations.create(
        memory, [Relation("Alice", "Bob", "knows"), Relation("Eve", "Alice", "knows")], by="test"
    )
    before, start = reopened(path), path.stat().st_size
    merge(memory, ["Alice"], "Alicia", by="test")
    whole, after = path.read_bytes(), picture(memory)
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        assert reopened(path) == before, cut
    path.write_bytes(whole)
    assert reopened(path) == after


def test_a_merge_writes_the_deletion_last(memory: Memory, path: Path) -> None:
    """A reader of the published format, which does not know about changes, loses nothing."""
    entities.create(
        memory, [EntityDraft("Alice", "x", ("one",)), EntityDraft("Alicia", "x")], by="test"
    )
    relations.create(memory, [Relation("Alice", "Bob", "knows")], by="test")
    start = path.stat().st_size
    merge(memory, ["Alice"], "Alicia", by="test")
    operations, _ = read_change(path.read_bytes(), start)
    assert [kind for kind, _ in operations] == [2, 1, 3]


def test_the_first_write_after_a_cut_is_kept(path: Path, memory: Memory) -> None:
    write_every_kind(memory)
    path.write_bytes(path.read_bytes()[:-3])
    entities.create(memory, [EntityDraft("late", "x")], by="test")
    assert reopened(path) == read_log(path.read_bytes())
    assert "late" in reopened(path).entities


def test_an_unfinished_end_is_reported(
    path: Path, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    write_every_kind(memory)
    path.write_bytes(path.read_bytes()[:-3])
    (problem,) = memory.store.check()
    assert "a change that was not finished" in problem
    reopened(path)
    assert "they are ignored" in caplog.text
    write_to(path, "late")
    assert f"now in {path}.torn" in caplog.text
    assert memory.store.check() == []


def test_the_doctor_names_the_byte(path: Path, memory: Memory) -> None:
    write_every_kind(memory)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    (problem,) = memory.store.check()
    assert "damaged at byte 0: the record is not whole" in problem


def test_what_can_be_read_is_salvaged_to_a_new_log(path: Path, memory: Memory) -> None:
    drafts = [EntityDraft(name, "x", (f"about {name}",)) for name in "ABCD"]
    entities.create(memory, drafts, by="test")
    data = bytearray(path.read_bytes())
    first, second, _, _ = record_ends(bytes(data))
    data[first + 20] ^= 1
    path.write_bytes(data + b"torn")
    counts, gaps = salvage(path, path.with_name("new.mcpmem"))
    assert (counts.entities, gaps) == (3, [(first, second), (len(data), len(data) + 4)])
    assert list(reopened(path.with_name("new.mcpmem")).entities) == ["A", "C", "D"]
    assert path.read_bytes() == data + b"torn"


def test_a_deletion_in_a_damaged_change_is_not_salvaged(path: Path, memory: Memory) -> None:
    entities.create(
        memory, [EntityDraft("Alice", "x", ("one",)), EntityDraft("Alicia", "x")], by="test"
    )
    start = path.stat().st_size
    merge(memory, ["Alice"], "Alicia", by="test")
    data = bytearray(path.read_bytes())
    data[start + 20] ^= 1
    path.write_bytes(data)
    salvage(path, path.with_name("new.mcpmem"))
    assert reopened(path.with_name("new.mcpmem")).entities["Alice"] == ("x", ["one"])


def test_salvage_overwrites_nothing(path: Path, memory: Memory) -> None:
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    with pytest.raises(BadInput, match="exists already"):
        salvage(path, path)


def test_a_large_entity_is_split_over_records(memory: Memory, path: Path) -> None:
    texts = tuple(f"{number} " + "é" * 9_000 for number in range(8))
    entities.create(memory, [EntityDraft("A", "x", texts)], by="test")
    facts.add(
        memory,
        [FactAddition("A", tuple(f"more {text}" for text in texts))],
        by="test",
        skip_repeats=True,
    )
    facts.remove(memory, [("A", texts[1:])], by="test")
    assert len(record_ends(path.read_bytes())) == 9
    assert read_log(path.read_bytes()) == reopened(path) == picture(memory)


@pytest.mark.parametrize("length", mostly_matrix([65_500, 65_536, 200_000, 300_000], [65_536]))
@pytest.mark.parametrize("letter", ["o", "é", "三"])
def test_a_text_longer_than_a_record_is_split(
    memory: Memory, path: Path, length: int, letter: str
) -> None:
    long = letter * length
    entities.create(
        memory,
        [EntityDraft("A", "x", ("short", long, "end")), EntityDraft(f"n{long}", long)],
        by="test",
    )
    relations.create(memory, [Relation("A", f"n{long}", long)], by="test")
    facts.add(memory, [FactAddition("A", (f"more {long}",))], by="test", skip_repeats=True)
    facts.remove(memory, [("A", (long,))], by="test")
    assert picture(memory).entities["A"] == ("x", ["short", "end", f"more {long}"])
    assert read_log(path.read_bytes()) == reopened(path) == picture(memory)
    memory.store.compact()
    assert read_log(path.read_bytes()) == reopened(path) == picture(memory)


@pytest.mark.usefixtures("quick")
def test_a_split_text_cut_between_its_records_did_not_happen(memory: Memory, path: Path) -> None:
    entities.create(memory, [EntityDraft("A", "x")], by="test")
    start = path.stat().st_size
    facts.add(memory, [FactAddition("A", ("o" * 300_000,))], by="test", skip_repeats=True)
    whole = path.read_bytes()
    cuts = [end for end in record_ends(whole) if start < end < len(whole)]
    assert len(cuts) == 4
    for cut in cuts:
        path.write_bytes(whole[:cut])
        assert reopened(path) == Picture({"A": ("x", [])})


def test_a_change_that_no_operations_express_is_kept_too(memory: Memory, path: Path) -> None:
    """Undo: restore a type, put an observation back in its place, remove one of two equal ones,
    keep relations.
    """
    entities.create(
        memory,
        [
            EntityDraft("A", "x", ("one", "two", "three")),
            EntityDraft("B", "x"),
            EntityDraft("C", "x"),
        ],
        by="test",
    )
    relations.create(memory, [Relation("A", "B", "r"), Relation("C", "B", "r")], by="test")
    (removed,) = facts.remove(memory, [("A", ("two",))], by="test")
    (added,) = facts.add(memory, [FactAddition("A", ("one",))], by="test", skip_repeats=False)
    a, b = [entities.open_named(memory, [name]).entities[0] for name in "AB"]
    for before, after in [
        (Rows(), Rows(facts=(FactSet("A", removed.facts),))),
        (Rows(facts=(FactSet("A", added.facts),)), Rows()),
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
LISTS = st.lists(WORDS).map(lambda texts: [text.encode() for text in texts])
OPERATIONS = (
    st.builds(
        lambda name, kind, texts: (0, encode_payload((name, kind), texts)), WORDS, WORDS, LISTS
    )
    | st.builds(
        lambda kind, *key: (kind, encode_payload(key)), st.sampled_from([1, 5]), WORDS, WORDS, WORDS
    )
    | st.builds(
        lambda kind, name, texts: (kind, encode_payload((name,), texts)),
        st.sampled_from([2, 4]),
        WORDS,
        LISTS,
    )
    | st.builds(lambda name: (3, encode_payload((name,))), WORDS)
)
CHANGES = st.lists(st.lists(OPERATIONS, min_size=1, max_size=5).map(encode_change), max_size=6)


@settings(deadline=None)
@given(CHANGES)
def test_any_changes_are_read_as_the_document_says(changes: list[bytes]) -> None:
    data = b"".join(changes)
    graph, end, fault = load(data, OURS)
    assert (end, fault) == (len(data), None)
    assert read_log(b"".join(encode_graph(graph.entities(), graph.relations()))) == read_log(data)


@settings(deadline=None)
@given(CHANGES, st.binary(max_size=300), st.integers(0, 100))
def test_whole_changes_before_any_bytes_at_all_are_read(
    changes: list[bytes], noise: bytes, cut: int
) -> None:
    start = encode_change([(0, encode_payload(("A", "x"), [b"o"]))])
    data = start + b"".join(changes) + noise
    kept = max(len(start), len(data) - cut)
    loaded = load(data[:kept], OURS)
    ends = [len(start)]
    for change in changes:
        ends.append(ends[-1] + len(change))
    assert loaded.end >= max(end for end in ends if end <= kept)
    assert (loaded.fault is None) == (loaded.end == kept)


@pytest.mark.parametrize(
    "data", [b"SQLite format 3\x00" + bytes(100), b"MCPMEMV3" + bytes(20), b'{"type":"entity"}\n']
)
def test_another_programs_file_is_refused_and_left_alone(
    path: Path, memory: Memory, data: bytes
) -> None:
    path.write_bytes(data)
    with pytest.raises((StoreError, StoreTooNew)):
        entities.create(memory, [EntityDraft("A", "x")], by="test")
    assert len(memory.store.check()) == 1
    assert (path.read_bytes(), files(path)) == (data, ["memory.mcpmem"])
