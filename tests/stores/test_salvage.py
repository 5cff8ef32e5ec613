"""What can be read of a damaged SQLite file is written to a new one, and the damaged one is left as
it is.
"""

import random
import struct
from pathlib import Path

import apsw
import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, StoreDamaged, StoreForeign
from polymnia.model import VAULT, Change, ChangeQuery, Entity, EntityDraft, Note, Relation
from polymnia.stores.sqlite.salvage import salvage_sqlite
from polymnia.stores.sqlite.store import SqliteStore
from tests.groups import mostly_matrix

PAGE = 4096
ENTITIES = 300


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of some hundred pages, with deleted rows of every kind."""
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    store = SqliteStore(str(path))
    memory = Memory(store)
    drafts = [
        EntityDraft(
            f"entity {n}",
            "thing",
            tuple(f"fact {m} about entity {n}, with some words" for m in range(4)),
        )
        for n in range(ENTITIES)
    ]
    entities.create(memory, drafts, by="test")
    relations.create(
        memory, [Relation(f"entity {n}", f"entity {n + 1}", "knows") for n in range(100)], by="test"
    )
    for n in range(50):
        notes.commit(
            memory,
            Note(f"key {n}", f"content {n}", ("tag",), VAULT, struct.pack("<3f", 1, 2, n)),
            by="test",
        )
    entities.delete(memory, ["entity 5"], by="test")
    facts.remove(
        memory,
        [("entity 6", ("fact 1 about entity 6, with some words",))],
        by="test",
    )
    notes.prune(memory, [VAULT], by="test", key="key 7")
    store.close()
    return path


@pytest.fixture
def damaged(sound: Path, tmp_path: Path) -> Path:
    path = tmp_path / "damaged.db"
    path.write_bytes(sound.read_bytes())
    return path


def read_all(path: Path) -> dict[str, Entity]:
    store = SqliteStore(str(path))
    try:
        assert store.check() == []
        return {entity.name: entity for entity in entities.read_all(Memory(store)).entities}
    finally:
        store.close()


def trashed(path: Path) -> list[object]:
    store = SqliteStore(str(path))
    try:
        return [item.rows for item in trash.items(Memory(store))]
    finally:
        store.close()


def history_of(path: Path) -> list[Change]:
    store = SqliteStore(str(path))
    try:
        with store.reading() as read:
            return read.history.changes(ChangeQuery())
    finally:
        store.close()


def overwrite(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(b"\xff" * PAGE)


def test_everything_in_a_sound_file_is_salvaged(sound: Path, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    report = salvage_sqlite(sound, target)
    assert (report.counts.entities, report.counts.relations, report.notes, report.lost) == (
        ENTITIES - 1,
        98,
        49,
        (),
    )
    assert read_all(target) == read_all(sound)
    assert trashed(target) == trashed(sound)
    stores = [SqliteStore(str(path)) for path in (sound, target)]
    assert history_of(target) == history_of(sound)
    pages = [[notes.read(Memory(store), VAULT, f"key {n}") for n in range(50)] for store in stores]
    assert pages[0] == pages[1]
    for store in stores:
        store.close()


def test_rows_that_are_only_in_the_log_are_salvaged(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = SqliteStore(str(path))
    entities.create(Memory(store), [EntityDraft("known", "thing")], by="test")
    salvage_sqlite(path, tmp_path / "new.db")
    assert list(read_all(tmp_path / "new.db")) == ["known"]
    store.close()


def test_a_damaged_first_page_costs_nothing(damaged: Path, sound: Path, tmp_path: Path) -> None:
    overwrite(damaged, 0)
    salvage_sqlite(damaged, tmp_path / "new.db")
    assert read_all(tmp_path / "new.db") == read_all(sound)


@pytest.mark.parametrize("page", mostly_matrix(range(1, 41), unmarked=[2, 9, 30]))
def test_a_damaged_page_costs_no_more_than_its_rows(
    damaged: Path, sound: Path, tmp_path: Path, page: int
) -> None:
    overwrite(damaged, page)
    before = damaged.read_bytes()
    report = salvage_sqlite(damaged, tmp_path / "new.db")
    assert damaged.read_bytes() == before
    found, whole = read_all(tmp_path / "new.db"), read_all(sound)
    facts = {text for item in found.values() for text in item.texts}
    expected = {text for value in whole.values() for text in value.texts}
    # One page holds fewer than a hundred rows, but one near the root has all of a table below it.
    assert report.lost or (found == whole and facts == expected)
    assert facts <= expected
    if (
        len(report.lost) == 1
        and "observations" in report.lost[0]
        and len(expected - facts) < len(expected)
    ):
        assert set(found) == set(whole)


@pytest.mark.parametrize("seed", mostly_matrix(range(12), unmarked=[0, 1]))
def test_flipped_bytes_never_stop_the_salvage(damaged: Path, tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    content = bytearray(damaged.read_bytes())
    for _ in range(30):
        content[source.randrange(PAGE, len(content))] ^= 1 << source.randrange(8)
    damaged.write_bytes(content)
    report = salvage_sqlite(damaged, tmp_path / "new.db")
    assert len(read_all(tmp_path / "new.db")) == report.counts.entities > ENTITIES // 2


def test_facts_without_a_card_get_an_entity(damaged: Path, tmp_path: Path) -> None:
    connection = apsw.Connection(str(damaged))
    connection.execute("DELETE FROM cards WHERE name = 'entity 9'")
    connection.close()
    salvage_sqlite(damaged, tmp_path / "new.db")
    (saved,) = [
        each for name, each in read_all(tmp_path / "new.db").items() if name.startswith("salvaged-")
    ]
    assert saved.texts == tuple(f"fact {m} about entity 9, with some words" for m in range(4))


@pytest.mark.parametrize("ordinal", ["0", "-7", "1 << 40"])
def test_an_fact_with_a_damaged_ordinal_gets_another_one(
    damaged: Path, tmp_path: Path, ordinal: str
) -> None:
    connection = apsw.Connection(str(damaged))
    connection.execute(
        f"UPDATE observations SET ordinal = {ordinal} "
        "WHERE text = 'fact 1 about entity 9, with some words'"
    )
    connection.close()
    salvage_sqlite(damaged, tmp_path / "new.db")
    saved = read_all(tmp_path / "new.db")["entity 9"]
    assert [fact.ordinal for fact in saved.facts] == [1, 3, 4, 5]
    assert sorted(saved.texts) == [f"fact {m} about entity 9, with some words" for m in range(4)]


def test_text_that_is_not_utf8_is_kept_as_far_as_it_goes(damaged: Path, tmp_path: Path) -> None:
    connection = apsw.Connection(str(damaged))
    connection.execute("UPDATE observations SET text = CAST(x'61ff62' AS TEXT) WHERE id = 2")
    connection.close()
    salvage_sqlite(damaged, tmp_path / "new.db")
    assert read_all(tmp_path / "new.db")["entity 0"].texts[0] == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.matrix  # an empty file is searched for rows of every table
def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing.db").write_bytes(b"")
    with pytest.raises(StoreDamaged):
        salvage_sqlite(tmp_path / "nothing.db", tmp_path / "new.db")
    assert [path.name for path in tmp_path.iterdir()] == ["nothing.db"]


def test_a_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing.db").write_bytes(b"")
    foreign = apsw.Connection(str(tmp_path / "foreign.db"))
    foreign.execute("CREATE TABLE settings (x)")
    foreign.close()
    with pytest.raises(StoreForeign):
        salvage_sqlite(tmp_path / "foreign.db", tmp_path / "new.db")
    with pytest.raises(BadInput, match="exists"):
        salvage_sqlite(tmp_path / "nothing.db", tmp_path / "foreign.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign.db", "nothing.db"]
