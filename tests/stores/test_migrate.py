"""`migrate`: a copy in another store has every row, goes on after an interruption, and never mixes
memories.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.migrate import Copy, migrate
from polymnia.errors import BadInput, StoreError
from polymnia.model import (
    VAULT,
    ChangeQuery,
    EntityDraft,
    FactAddition,
    Mark,
    Note,
    Perspective,
    Relation,
    Workspace,
)
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.contract import TABLES, Catalogue, Store, TableRow
from tests.cli.commands import run
from tests.postgres import new_database, shared_server

ME = "test"
DIMENSION = 8


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Return a data directory with one workspace in use, one that is archived and one that is
    empty.
    """
    url = f"{tmp_path / 'source'}/"
    with closing(catalogue_at(url)) as catalogue:
        for name in ("busy", "old", "empty"):
            catalogue.create(name, f"about {name}")
        for name in ("busy", "old"):
            store = catalogue.open(name)
            fill(store)
            store.close()
        catalogue.update("old", status="archived")
    return url


@pytest.fixture
def database() -> Iterator[str]:
    with new_database(shared_server()) as url:
        yield url


def fill(store: Store) -> None:
    """Leave rows of every kind.

    Changed, deleted, purged, with tags, sources, marks, perspectives and vectors.
    """
    memory = Memory(store)
    drafts = [
        EntityDraft(f"E{n}", "thing", (f"text {n}", "ünïcode 数据"), "about it", ("a", "b'c"))
        for n in range(30)
    ]
    entities.create(memory, drafts, by=ME)
    relations.create(memory, [Relation(f"E{n}", f"E{n + 1}", "next") for n in range(29)], by=ME)
    entities.delete(memory, ["E0", "E1"], by=ME)
    store.purge(before=2**62)
    with_source = FactAddition("E5", ("told later",), 1_000_000, "talk 1")
    facts.add(memory, [with_source], by="another client", skip_repeats=False)
    facts.remove(memory, [("E6", ("text 6",))], by=ME)
    entities.delete(memory, ["E7"], by=ME)
    notes.commit(
        memory, Note("key", "content", ("tag",), embedding=np.ones(4, np.float32).tobytes()), by=ME
    )
    notes.commit(memory, Note("key", "changed", ("tag", "more")), by=ME)
    notes.commit(memory, Note("gone", "soon"), by=ME)
    notes.prune(memory, [VAULT], key="gone", by=ME)
    with store.writing() as writer:
        writer.history.set_mark("report", Mark(3, 4))
    embed(store)


def embed(store: Store) -> None:
    store.vectors.set_perspective(Perspective("named", "{name}: {text}", "about {query}"))
    model = store.vectors.add_model("made", "none", DIMENSION).number
    for perspective in ("text", "named"):
        with store.reading() as read:
            pending = read.vectors.pending(model, 1000, perspective=perspective)
        made = np.random.default_rng(1).normal(size=(len(pending), DIMENSION)).astype(np.float32)
        vectors = [
            (passage, vector.tobytes()) for (passage, _), vector in zip(pending, made, strict=True)
        ]
        store.vectors.put(model, vectors, perspective=perspective)


def catalogue_at(url: str) -> Catalogue:
    catalogue = open_catalogue(url)
    assert catalogue is not None
    return catalogue


def everything(url: str) -> dict[str, tuple[Workspace, dict[str, list[TableRow]]]]:
    """Return every workspace with all rows of its tables."""
    with closing(catalogue_at(url)) as catalogue:
        found = {}
        for item in catalogue.find_all():
            store = catalogue.open(item.name, archived=True)
            with store.reading() as read:
                found[item.name] = (
                    item,
                    {table: list(read.read_rows(table)) for table in TABLES},
                )
            store.close()
    return found


def copy(source: str, target: str) -> list[Copy]:
    return list(migrate(source, target))


def test_a_copy_has_every_row_of_a_data_directory(source: str, tmp_path: Path) -> None:
    target = f"{tmp_path / 'target'}/"
    copies = copy(source, target)
    assert {item.workspace for item in copies} == {"busy", "old", "empty"}
    assert everything(target) == everything(source)
    busy = next(item for item in copies if item.workspace == "busy")
    assert all(busy.rows.values())


def test_a_memory_comes_back_from_postgresql_as_it_was(
    source: str, database: str, tmp_path: Path
) -> None:
    back = f"{tmp_path / 'back'}/"
    there = copy(source, database)
    assert [item.checksum for item in copy(database, back)] == [item.checksum for item in there]
    assert everything(back) == everything(source)


def test_a_copied_memory_can_be_searched_restored_and_changed(source: str, database: str) -> None:
    copy(source, database)
    with closing(catalogue_at(database)) as catalogue, closing(catalogue.open("busy")) as store:
        memory = Memory(store)
        with store.reading() as read:
            assert {candidate.entity for candidate in read.candidates(["later"], 5)} == {"E5"}
            assert [entity.name for entity in read.containing("text 12")] == ["E12"]
            (model,) = read.vectors.models()
            embedded, total = read.vectors.coverage(model.number)
            assert embedded == total > 0
            last = read.history.changes(ChangeQuery(limit=1))[0].id
        assert [entity.name for entity in trash.restore(memory, "E7", by=ME).entities] == ["E7"]
        entities.create(memory, [EntityDraft("New", "thing", ("one",))], by=ME)
        with store.reading() as read:
            assert [change.id for change in read.history.changes(ChangeQuery(after=last))] == [
                last + 2,
                last + 1,
            ]
        assert store.check() == []


def test_a_copy_goes_on_after_an_interruption(source: str, database: str) -> None:
    steps = []

    def interrupt(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(migrate(source, database, progress=interrupt))
    assert len(steps) > 0
    copy(source, database)
    assert {name: rows for name, (_, rows) in everything(database).items()} == {
        name: rows for name, (_, rows) in everything(source).items()
    }


def test_a_target_with_memories_of_its_own_is_refused(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "memory.db")
    with closing(open_store(target)) as store:
        entities.create(Memory(store), [EntityDraft("Mine", "thing")], by=ME)
    with pytest.raises(BadInput, match="memories of its own"):
        list(migrate(source, target, "busy"))


def test_a_copy_of_a_source_that_changes_meanwhile_is_found_out(
    source: str, tmp_path: Path
) -> None:
    target = str(tmp_path / "memory.db")
    list(migrate(source, target, "busy"))
    with closing(catalogue_at(source)) as catalogue, closing(catalogue.open("busy")) as store:
        entities.delete(Memory(store), ["E20"], by=ME)
    with pytest.raises(StoreError, match="differs"):
        list(migrate(source, target, "busy"))


def test_several_workspaces_do_not_fit_into_one_file(source: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--workspace"):
        copy(source, str(tmp_path / "memory.db"))


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.mcpmem"])
def test_a_file_store_gets_what_it_can_hold(source: str, tmp_path: Path, name: str) -> None:
    (copied,) = migrate(source, str(tmp_path / name), "busy")
    assert copied.left_behind == (
        "history and deleted rows",
        "1 vault notes",
        "vectors and perspectives",
    )
    with closing(open_store(str(tmp_path / name))) as store, store.reading() as read:
        assert read.counts().entities == copied.rows["entities"] == 27


def test_a_file_store_is_copied_to_a_database(database: str, tmp_path: Path) -> None:
    path = str(tmp_path / "memory.jsonl")
    with closing(open_store(path)) as store:
        entities.create(Memory(store), [EntityDraft("Zoë", "person", ("likes tea",))], by=ME)
    (copied,) = migrate(path, database)
    assert copied.rows["entities"] == 1
    with closing(catalogue_at(database)) as catalogue, closing(catalogue.open("default")) as store:
        assert [entity.name for entity in entities.read_all(Memory(store)).entities] == ["Zoë"]


def test_the_command_says_what_it_copied(source: str, tmp_path: Path) -> None:
    done = run("migrate", source, f"{tmp_path / 'target'}/", directory=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "copied 3 workspaces; every copy equals its source" in done.stdout
    assert "empty" in done.stdout
