"""Stores that earlier versions wrote open, are upgraded, and hold what they held."""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from polymnia.cli.main import main
from polymnia.embedders import open_embedder
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import EntityDraft
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.contract import Store
from tests.upgrades.make import FILES, ROOT, WORKSPACE, run_program
from tests.upgrades.sample import describe_all, describe_graph

TIMEOUT_S = 60.0
ARCHIVES = sorted(path.name.removesuffix(".tar.gz") for path in ROOT.glob("*.tar.gz"))


@pytest.fixture(params=ARCHIVES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a directory with the stores of an earlier version."""
    with tarfile.open(ROOT / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def _expected(stored: Path, name: str) -> Any:
    return json.loads((stored / "expected.json").read_text("utf-8"))[name]


def _as_json(description: Any) -> Any:
    return json.loads(json.dumps(description))


def _check_database(store: Store, expected: Any) -> None:
    """Compare the present, the past, the trash and the rest; then use the store."""
    memory = Memory(store)
    assert _as_json(describe_all(memory)) == expected
    assert store.check() == []
    assert [entity.name for entity in search.full_text(memory, "numbers").entities] == [
        "Ada Lovelace"
    ]
    entities.create(memory, [EntityDraft("new", "thing", ("after the upgrade",))], by="test")
    assert [entity.name for entity in search.containing(memory, "the upgr").entities] == ["new"]
    store.close()


def test_there_is_an_archive_of_the_first_schema() -> None:
    assert "schema-1" in ARCHIVES


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_an_earlier_version_holds_what_it_held(stored: Path, name: str) -> None:
    store = open_store(str(stored / name))
    memory = Memory(store)
    assert _as_json(describe_graph(memory)) == _expected(stored, name)
    entities.create(memory, [EntityDraft("new", "thing")], by="test")
    store.close()
    again = open_store(str(stored / name))
    assert entities.open_named(Memory(again), ["new"]).entities != []
    again.close()


def test_a_sqlite_file_of_an_earlier_version_holds_what_it_held(stored: Path) -> None:
    _check_database(open_store(str(stored / "memory.db")), _expected(stored, "memory.db"))


def test_a_directory_of_an_earlier_version_holds_what_it_held(stored: Path) -> None:
    catalogue = open_catalogue(f"{stored / 'workspaces'}/")
    assert catalogue is not None
    assert catalogue.find(WORKSPACE).description == "a workspace"
    _check_database(catalogue.open(WORKSPACE), _expected(stored, "workspaces"))
    catalogue.close()


def test_a_database_of_an_earlier_version_holds_what_it_held(
    stored: Path, postgres_database: str
) -> None:
    for extension in ("btree_gin", "pg_trgm", "vector"):
        run_program("psql", postgres_database, "-c", f"CREATE EXTENSION {extension}")
    script = ("-q", "-v", "ON_ERROR_STOP=1", "-f", str(stored / "postgres.sql"))
    run_program("psql", postgres_database, *script)
    store = open_store(f"{postgres_database}?workspace={WORKSPACE}")
    _check_database(store, _expected(stored, "postgres.sql"))


def test_vectors_of_an_earlier_version_are_made_again_in_the_background(tmp_path: Path) -> None:
    """The store was embedded by commit 55ffd5d, with the local model and texts without names."""
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress((ROOT / "vectors-of-texts.db.gz").read_bytes()))
    store = open_store(str(path))
    meaning = Meaning(SharedEmbedder("local"))
    memory = Memory(store, meaning)
    memory.request_indexing()  # as a server does that opens it; no model is loaded for that
    assert meaning.settle(TIMEOUT_S)
    by_words = recall(memory, "Who adopted a puppy?", timeout=TIMEOUT_S)
    assert by_words.hits[0].passage.entity == "Caroline"
    assert by_words.note.startswith("0% of the memory is embedded so far")
    assert meaning.settle(TIMEOUT_S)  # that question has shown that the model is another one
    by_meaning = recall(memory, "Who has a young dog?", timeout=TIMEOUT_S)
    assert by_meaning.hits[0].passage.entity == "Caroline"
    assert (by_meaning.coverage, by_meaning.note) == (1, "")
    with store.reading() as read:
        (model,) = read.vectors.models()
    embedder = open_embedder("local")
    assert embedder is not None
    assert model.identity == embedder.identity
    meaning.close()
    store.close()


def test_a_document_with_a_history_brings_what_lives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "memory.db")
    assert main(["import", str(ROOT / "document-1.json"), "--store", store]) == 0
    said = capsys.readouterr()
    assert "history" in said.out + said.err
    memory = Memory(open_store(store))
    (entity,) = entities.read_all(memory).entities
    assert (entity.name, entity.texts) == ("Ada Lovelace", ("writes programs", "likes coffee"))
    memory.store.close()
