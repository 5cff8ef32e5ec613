"""After a purge no byte of purged text is in the file or its log, on any page."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities, facts
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.errors import StoreBusy, StoreError, StoreFull
from polymnia.model import Counts, EntityDraft, FactAddition, Note, NoteScope
from polymnia.stores.directory.catalogue import DirectoryCatalogue
from polymnia.stores.sqlite.backup import copy_store
from polymnia.stores.sqlite.commit import GroupCommit
from polymnia.stores.sqlite.store import SqliteStore

_ME = "test"
_FACTS = 700
# Random words are found in every index: no part of one is in another.
_WORD = re.compile(r"zq[a-p]{14}")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    # A rewrite need not wait long for a reader of the same thread.
    monkeypatch.setattr("polymnia.stores.sqlite.connection.BUSY_TIMEOUT_MS", 50)
    store = SqliteStore(str(tmp_path / "memory.db"))
    yield Memory(store)
    store.close()


def _word(chance: random.Random) -> str:
    return "zq" + "".join(chance.choices("abcdefghijklmnop", k=14))


def _fact(chance: random.Random, word: str) -> str:
    """Return a text that has the word somewhere, of a length that makes pages split."""
    before, after = chance.randrange(40), chance.choice((0, 5, 80, 400, 1_500))
    return f"{'so ' * before}{word} {'and ' * after}{word[::-1]}"


def _fill(memory: Memory, chance: random.Random) -> dict[str, list[str]]:
    """Add facts to many entities in many changes, and return the words of each entity."""
    names = [f"entity {number}" for number in range(60)]
    entities.create(memory, [EntityDraft(name, "thing") for name in names], by=_ME)
    words: dict[str, list[str]] = {name: [] for name in names}
    added = 0
    while added < _FACTS:
        drafts = []
        for name in chance.sample(names, 12):
            new_words = [_word(chance) for _ in range(chance.randrange(1, 6))]
            words[name] += new_words
            added += len(new_words)
            drafts.append(FactAddition(name, tuple(_fact(chance, word) for word in new_words)))
        facts.add(memory, drafts, by=_ME, skip_repeats=False)
    return words


def _forget_some(memory: Memory, words: dict[str, list[str]], chance: random.Random) -> set[str]:
    """Delete whole entities and single facts, and return their words."""
    forgotten: set[str] = set()
    names = chance.sample(list(words), 40)
    for name in names[:15]:
        forgotten.update(words[name])
    entities.delete(memory, names[:15], by=_ME)
    removals = []
    for entity in entities.open_named(memory, names[15:]).entities:
        texts = chance.sample(entity.texts, len(entity.texts) // 2)
        removals.append((entity.name, tuple(texts)))
        forgotten.update(_WORD.findall(" ".join(texts)))
    for start in range(0, len(removals), 5):
        facts.remove(memory, removals[start : start + 5], by=_ME)
    return forgotten


def _residue(directory: Path, words: set[str]) -> list[str]:
    """Return the words that are in a file, at least in part.

    An index may have stored only the end of one.
    """
    content = b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())
    return [word for word in words if word[4:12].encode() in content]


@pytest.mark.parametrize("seed", range(12))
def test_purged_text_is_in_no_unused_space_of_the_file(
    memory: Memory, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    words = _fill(memory, chance)
    forgotten = _forget_some(memory, words, chance)
    assert _residue(tmp_path, forgotten) != []
    trash.purge(memory, days=0)
    assert _residue(tmp_path, forgotten) == []
    living = {word for group in words.values() for word in group} - forgotten
    assert len(_residue(tmp_path, living)) == len(living)
    assert memory.store.check() == []


def test_purged_text_of_a_workspace_is_in_no_file_of_the_directory(tmp_path: Path) -> None:
    catalogue = DirectoryCatalogue(str(tmp_path))
    catalogue.create("shop")
    memory = Memory(catalogue.open("shop"))
    chance = random.Random(1)
    forgotten = _forget_some(memory, _fill(memory, chance), chance)
    trash.purge(memory, days=0)
    assert _residue(tmp_path, forgotten) == []
    memory.store.close()
    catalogue.close()


def test_a_rewrite_that_a_reader_hindered_is_made_up_for(memory: Memory, tmp_path: Path) -> None:
    chance = random.Random(2)
    forgotten = _forget_some(memory, _fill(memory, chance), chance)
    with memory.reading(), pytest.raises(StoreBusy, match="run this again"):
        trash.purge(memory, days=0)
    assert _residue(tmp_path, forgotten) != []
    assert trash.purge(memory, days=0) == Counts()
    assert _residue(tmp_path, forgotten) == []


def test_a_rewrite_that_a_full_disk_stopped_is_told_and_made_up_for(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(commit: GroupCommit, statement: str) -> None:
        raise StoreFull("no space left; nothing was changed")

    entities.create(memory, [EntityDraft("Ada", "person", ("zqsecret",))], by=_ME)
    entities.delete(memory, ["Ada"], by=_ME)
    with monkeypatch.context() as full_disk:
        full_disk.setattr(GroupCommit, "rewrite_file", fail)
        with pytest.raises(StoreError, match="rows are deleted, but deleted text may be left"):
            trash.purge(memory, days=0)
    trash.purge(memory, days=0)
    assert b"zqsecret" not in (tmp_path / "memory.db").read_bytes()


def test_a_purge_that_removes_nothing_leaves_the_file_alone(memory: Memory, tmp_path: Path) -> None:
    entities.create(memory, [EntityDraft("A", "thing", ("a fact",))], by=_ME)
    path = tmp_path / "memory.db"
    before = path.read_bytes()
    assert trash.purge(memory, days=0) == Counts()
    assert path.read_bytes() == before


def test_a_reader_keeps_its_snapshot_during_a_rewrite(memory: Memory) -> None:
    entities.create(memory, [EntityDraft("A", "thing", ("a fact",))], by=_ME)
    entities.create(memory, [EntityDraft("B", "thing")], by=_ME)
    with memory.reading() as read:
        entities.delete(memory, ["B"], by=_ME)
        with pytest.raises(StoreBusy):
            trash.purge(memory, days=0)
        assert [entity.name for entity in read.entities()] == ["A", "B"]
    assert [entity.name for entity in entities.read_all(memory).entities] == ["A"]


def test_a_server_that_has_the_file_open_goes_on_after_a_rewrite(
    memory: Memory, tmp_path: Path
) -> None:
    other = Memory(SqliteStore(str(tmp_path / "memory.db")))
    chance = random.Random(3)
    words = _fill(memory, chance)
    before = len(entities.read_all(other).entities)
    forgotten = _forget_some(memory, words, chance)
    trash.purge(memory, days=0)
    assert len(entities.read_all(other).entities) == before - 15
    entities.create(other, [EntityDraft("new", "thing")], by=_ME)
    entities.create(memory, [EntityDraft("newer", "thing")], by=_ME)
    assert entities.open_named(other, ["newer"]).entities != []
    assert other.store.check() == []
    other.store.close()
    assert _residue(tmp_path, forgotten) == []


def test_a_backup_holds_no_text_of_sessions(memory: Memory, tmp_path: Path) -> None:
    chance = random.Random(4)
    words = [_word(chance) for _ in range(150)]
    for number, word in enumerate(words):
        scope = NoteScope("ann", f"session {number % 3}")
        notes.commit(memory, Note(f"key {number}", _fact(chance, word), scope=scope), by=_ME)
    copy = tmp_path / "copies" / "backup.db"
    copy.parent.mkdir()
    copy_store(tmp_path / "memory.db", copy)
    assert _residue(copy.parent, set(words)) == []


def test_a_process_that_dies_in_a_rewrite_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    memory = Memory(SqliteStore(str(path)))
    chance = random.Random(5)
    words = _fill(memory, chance)
    forgotten = _forget_some(memory, words, chance)
    living = entities.read_all(memory)
    memory.store.close()
    script = (
        "import os, sys\n"
        "from polymnia.engine.history import trash\n"
        "from polymnia.engine.memory import Memory\n"
        "from polymnia.stores.sqlite.store import SqliteStore\n"
        "store = SqliteStore(sys.argv[1])\n"
        "rewrite = store._commit.rewrite_file\n"
        "store._commit.rewrite_file = lambda query: (rewrite(query), os._exit(9))\n"
        "trash.purge(Memory(store), days=0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert ended.returncode == 9
    memory = Memory(SqliteStore(str(path)))
    assert entities.read_all(memory) == living
    assert trash.purge(memory, days=0) == Counts()
    assert _residue(tmp_path, forgotten) == []
    assert memory.store.check() == []
    memory.store.close()
