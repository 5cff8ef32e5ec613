"""The log as a file: several processes, compaction, a disk that fails, a crash."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError, StoreFull, StoreStopped
from polymnia.model import Entity, EntityDraft, FactAddition, Relation, Rows
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from polymnia.stores.files import binlog
from tests.processes import TIMEOUT_S
from tests.stores.binlog_reader import read_log, record_ends

Open = Callable[[], Memory]
PRELUDE = """
import os, sys
from pathlib import Path
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
memory = Memory(open_store(sys.argv[1]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.mcpmem"


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    """Open the log once more, as another process does."""
    stores: list[Store] = []

    def open_again() -> Memory:
        stores.append(open_store(str(path)))
        return Memory(stores[-1])

    yield open_again
    for store in stores:
        store.close()


def run(path: Path, script: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + script, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> int:
    process.communicate(timeout=TIMEOUT_S)
    return process.returncode


def names(memory: Memory) -> list[str]:
    return [entity.name for entity in entities.read_all(memory).entities]


def create(memory: Memory, *wanted: str) -> None:
    entities.create(
        memory, [EntityDraft(name, "x", (f"about {name}",)) for name in wanted], by="test"
    )


def test_writes_of_several_processes_are_all_kept(path: Path, opened: Open) -> None:
    script = """
for number in range(25):
    writer = sys.stdin.readline().strip() or os.getpid()
    entities.create(memory, [EntityDraft(f"{writer} {number}", "x")], by="test")
    entities.create(memory, [EntityDraft("shared", "x")], by="test")
    added = FactAddition("shared", (f"{os.getpid()} {number}",))
    facts.add(memory, [added], by="test", skip_repeats=True)
    if number % 10 == 9:
        memory.store.compact()
"""
    assert [ended(item) for item in [run(path, script) for _ in range(3)]] == [0, 0, 0]
    found = read_log(path.read_bytes())
    assert len(found.entities) == 3 * 25 + 1
    assert len(set(found.entities["shared"][1])) == 3 * 25
    assert opened().store.check() == []


def test_a_write_of_another_process_is_visible_at_once(path: Path, opened: Open) -> None:
    script = """
for line in sys.stdin:
    entities.create(memory, [EntityDraft(line.strip(), "x")], by="test")
    print(len(entities.read_all(memory).entities), flush=True)
"""
    memory, process = opened(), run(path, script)
    assert process.stdin and process.stdout
    for number in range(5):
        process.stdin.write(f"theirs {number}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{2 * number + 1}\n"
        assert names(memory)[-1] == f"theirs {number}"
        create(memory, f"ours {number}")
    assert ended(process) == 0


def test_only_appended_changes_are_read(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = opened(), opened()
    create(one, "A", "B")
    names(other)
    monkeypatch.setattr(binlog, "load", None)
    create(one, "C")
    relations.create(one, [Relation("C", "A", "r")], by="test")
    facts.add(one, [FactAddition("A", ("more",))], by="test", skip_repeats=True)
    entities.delete(one, ["B"], by="test")
    assert entities.read_all(other).relations == [Relation("C", "A", "r")]
    assert [(entity.name, entity.texts) for entity in entities.read_all(other).entities] == [
        ("A", ("about A", "more")),
        ("C", ("about C",)),
    ]


def test_a_log_compacted_by_another_process_is_read_again(opened: Open) -> None:
    one, other = opened(), opened()
    create(one, "A")
    names(other)
    entities.delete(one, ["A"], by="test")
    create(one, "B")
    one.store.compact()
    assert names(other) == names(one) == ["B"]


def test_a_compacted_log_with_a_reused_inode_number_is_noticed(opened: Open) -> None:
    """After two compactions a file system may reuse the first number, and only the beginning may
    differ.
    """
    one, other = opened(), opened()
    create(one, "A")
    relations.create(one, [Relation("A", "A", "r" * 100)], by="test")
    names(other)
    facts.remove(one, [("A", ("about A",))], by="test")
    facts.add(one, [FactAddition("A", ("about B",))], by="test", skip_repeats=True)
    one.store.compact()
    one.store.compact()
    create(one, "C")
    assert [entity.texts for entity in entities.read_all(other).entities] == [
        ("about B",),
        ("about C",),
    ]


def test_another_process_compacts_while_this_one_reads(path: Path, opened: Open) -> None:
    script = """
for number in range(40):
    entities.create(memory, [EntityDraft(f"passing {number}", "x")], by="test")
    entities.delete(memory, [f"passing {number}"], by="test")
    memory.store.compact()
"""
    memory = opened()
    create(memory, "A", "B")
    process = run(path, script)
    while process.poll() is None:
        found = names(memory)
        assert found[:2] == ["A", "B"] and len(found) <= 3
    assert ended(process) == 0
    assert names(memory) == ["A", "B"]


def test_a_log_that_was_overwritten_in_place_is_noticed(
    path: Path, opened: Open, tmp_path: Path
) -> None:
    memory = opened()
    create(memory, "A")
    other = Memory(open_store(str(tmp_path / "other.mcpmem")))
    create(other, "B", "C", "D")
    other.store.close()
    path.write_bytes((tmp_path / "other.mcpmem").read_bytes())
    assert names(memory) == ["B", "C", "D"]


def test_a_log_that_was_deleted_is_an_empty_memory(path: Path, opened: Open) -> None:
    memory = opened()
    create(memory, "A")
    path.unlink()
    assert names(memory) == []
    create(memory, "B")
    assert list(read_log(path.read_bytes()).entities) == ["B"]


def test_compacting_leaves_the_smallest_log_of_the_same_memory(path: Path, opened: Open) -> None:
    memory = opened()
    create(memory, "A", "B", "C")
    relations.create(memory, [Relation("A", "C", "r"), Relation("A", "B", "r")], by="test")
    facts.add(memory, [FactAddition("A", ("more",))], by="test", skip_repeats=True)
    entities.delete(memory, ["B"], by="test")
    before = read_log(path.read_bytes())
    memory.store.compact()
    assert read_log(path.read_bytes()) == before
    assert len(record_ends(path.read_bytes())) == 3
    create(memory, "D")
    assert names(opened()) == ["A", "C", "D"]


@pytest.mark.parametrize("again", [False, True], ids=["written here", "read from the file"])
def test_a_log_is_compacted_when_most_of_it_is_useless(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr(binlog, "MIN_BYTES_TO_COMPACT", 4096)
    memory = opened()
    create(memory, "kept")
    longest = 0
    for number in range(200):
        create(memory, f"passing {number}")
        if again:
            memory = opened()
        entities.delete(memory, [f"passing {number}"], by="test")
        longest = max(longest, path.stat().st_size)
    assert 2048 < longest < 4096 + 512
    assert names(opened()) == ["kept"]


def test_a_log_with_little_waste_is_not_compacted(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binlog, "MIN_BYTES_TO_COMPACT", 0)
    memory = opened()
    create(memory, *[f"entity {number}" for number in range(10)])
    inode = path.stat().st_ino
    entities.delete(memory, ["entity 1", "entity 2"], by="test")
    assert path.stat().st_ino == inode


def test_a_write_is_acknowledged_even_if_the_log_cannot_be_compacted(
    opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_without_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(binlog, "MIN_BYTES_TO_COMPACT", 0)
    monkeypatch.setattr(binlog, "replace_file", fail_without_space)
    memory = opened()
    create(memory, "A", "B")
    entities.delete(memory, ["A", "B"], by="test")
    create(memory, "C")
    assert "could not be compacted" in caplog.text
    assert names(opened()) == names(memory) == ["C"]
    with pytest.raises(StoreFull):
        memory.store.compact()


def test_a_crash_before_the_compacted_log_is_in_place_leaves_the_old_one(
    path: Path, opened: Open
) -> None:
    memory = opened()
    create(memory, "A", "B")
    entities.delete(memory, ["A"], by="test")
    old = path.read_bytes()
    assert ended(run(path, "Path.replace = lambda *_: os._exit(9)\nmemory.store.compact()")) == 9
    assert path.read_bytes() == old
    assert len(list(path.parent.glob("*.tmp"))) == 1
    create(memory, "C")
    assert names(opened()) == ["B", "C"]


def test_a_crash_in_the_middle_of_an_append_leaves_nothing_of_the_change(
    path: Path, opened: Open
) -> None:
    script = """
write = os.write
def half(descriptor, data):
    write(descriptor, data[: len(data) // 2])
    os._exit(9)
os.write = half
late = [EntityDraft(f"late {number}", "x", ("o" * 50,)) for number in range(4)]
entities.create(memory, late, by="test")
"""
    memory = opened()
    create(memory, "A")
    assert ended(run(path, script)) == 9
    create(memory, "B")
    assert names(memory) == names(opened()) == ["A", "B"]


def test_a_full_disk_changes_nothing(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    create(memory, "A")
    old, write = path.read_bytes(), os.write

    def some(descriptor: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, "no space")
        return write(descriptor, data[:60])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", some)
        with pytest.raises(StoreFull, match="nothing was changed"):
            create(memory, "B", "C", "D")
    assert path.read_bytes() == old
    assert names(memory) == ["A"]
    create(memory, "E")
    assert names(opened()) == ["A", "E"]


def test_a_write_that_the_system_splits_is_whole(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    memory = opened()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
        create(memory, "A", "B")
    assert names(opened()) == ["A", "B"]


def test_after_an_unconfirmed_write_no_write_is_acknowledged(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    memory = opened()
    create(memory, "A")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(StoreStopped):
            create(memory, "B")
    with pytest.raises(StoreStopped):
        create(memory, "C")
    assert names(memory) == ["A"]
    create(opened(), "D")
    assert names(memory) == ["A", "D"]


def test_a_failed_verb_does_not_change_the_log(path: Path, opened: Open) -> None:
    memory = opened()
    create(memory, "A")
    old = path.read_bytes()
    with pytest.raises(RuntimeError), memory.writing("test", "test") as transaction:
        transaction.apply(after=Rows(entities=(Entity("B", "x"),)))
        raise RuntimeError
    assert (path.read_bytes(), names(memory)) == (old, ["A"])


def test_a_link_to_the_log_stays_a_link(path: Path, opened: Open, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "real.bin")
    memory = opened()
    create(memory, "A")
    memory.store.compact()
    assert path.is_symlink()
    assert list(read_log((tmp_path / "real.bin").read_bytes()).entities) == ["A"]


def test_permissions_are_kept_and_a_new_log_is_private(path: Path, opened: Open) -> None:
    memory = opened()
    create(memory, "A")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    memory.store.compact()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_directory_is_not_accepted_as_a_log(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a directory"):
        open_store(f"binlog:{tmp_path}")


def test_a_store_may_be_closed_twice_and_used_again(opened: Open) -> None:
    memory = opened()
    create(memory, "A")
    memory.store.close()
    memory.store.close()
    create(memory, "B")
    assert names(memory) == ["A", "B"]
