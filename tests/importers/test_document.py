"""The JSON document.

Exporting a memory and importing it gives what was living, with ids, times and ordinals.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from polymnia.engine import notes
from polymnia.engine.facts.secrets import SecretRule
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.engine.notes import vault_notes
from polymnia.engine.transfer.document import memory_lines
from polymnia.engine.transfer.intake import take_in
from polymnia.errors import BadInput
from polymnia.importers.base import Report
from polymnia.importers.own_files import DOCUMENT as IMPORTER
from polymnia.importers.source import Source
from polymnia.model import EntityDraft, Note, Relation
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from tests.behaviour.steps import STEPS, Step, take
from tests.cli.commands import fill, run
from tests.conftest import STORES, VERSIONED

ME = "test"


@pytest.fixture(params=VERSIONED)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(STORES[request.param](tmp_path))) as opened:
        yield opened


def export(store: Store, path: Path) -> Path:
    with store.reading() as read, path.open("wb") as file:
        file.writelines(memory_lines(store, read))
    return path


def bring(path: Path, store: Store, secrets: SecretRule = "warn") -> Report:
    report = Report(secrets)
    source = Source(str(path))
    assert IMPORTER.recognizes(source)
    items = report.screen_items(IMPORTER.read(source, report))
    take_in(Memory(store, secrets=secrets), items, by=ME)
    return report


@pytest.mark.parametrize("version", ["99", "10", '"1"'])
def test_a_document_of_another_version_is_refused(version: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text(f'{{"format":"polymnia","version":{version},"entities":[]}}')
    source = Source(str(path))
    assert IMPORTER.recognizes(source)
    with pytest.raises(BadInput, match="and this program reads version 1; upgrade it"):
        list(IMPORTER.read(source, Report()))


def living(store: Store) -> tuple[object, ...]:
    graph = entities.read_all(Memory(store))
    return graph.entities, graph.relations, vault_notes(Memory(store))


def skipped(report: Report) -> list[tuple[str, list[str]]]:
    return [(part.reason, part.places) for part in report.dropped_parts]


def test_any_memory_comes_back_identical(tmp_path: Path) -> None:
    @settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
    @given(STEPS)
    def check(steps: list[Step]) -> None:
        first, second = open_store(":memory:"), open_store(":memory:")
        for step in steps:
            take(Memory(first), step)
        report = bring(export(first, tmp_path / "all.json"), second)
        assert skipped(report) == []
        assert living(second) == living(first)
        again = (tmp_path / "all.json").read_bytes()
        assert export(second, tmp_path / "again.json").read_bytes() == again

    check()


def test_a_document_that_another_program_formatted_is_read(tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("Ä", "t", ("one\u2028two",))], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=3), "utf-8-sig")
    assert skipped(bring(path, second)) == []
    assert living(second) == living(first)


def test_a_mistake_is_found_before_anything_is_written(tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t"), EntityDraft("B", "t")], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_bytes(path.read_bytes().replace(b'"name":"B"', b'"name":1'))
    with pytest.raises(BadInput, match=r"entities\[1\]: Expected `str`"):
        bring(path, second)
    assert living(second) == living(open_store(":memory:"))


def test_of_a_document_with_all_versions_what_was_living_is_imported(store: Store) -> None:
    report = bring(Path(__file__).parent / "samples" / "document-with-history.json", store)
    (ada,) = entities.read_all(Memory(store)).entities
    assert (ada.name, ada.texts, ada.created_at) == ("Ada", ("likes tea",), 1_795_033_223_631_196)
    assert [places for _, places in skipped(report)] == [["history"]]


def test_a_document_is_merged_into_a_store_that_is_not_empty(store: Store, tmp_path: Path) -> None:
    first = open_store(":memory:")
    (a, _) = entities.create(
        Memory(first),
        [EntityDraft("A", "t", ("one",), "sum", ("x",)), EntityDraft("B", "t")],
        by=ME,
    )
    path = export(first, tmp_path / "all.json")
    entities.create(Memory(store), [EntityDraft("B", "u", ("own",))], by=ME)
    report = bring(path, store)
    found = {entity.name: entity for entity in entities.read_all(Memory(store)).entities}
    assert found["A"] == a
    assert (found["B"].type, found["B"].texts) == ("u", ("own",))
    assert skipped(report) == []


def test_an_id_that_belongs_to_another_entity_is_not_taken(store: Store, tmp_path: Path) -> None:
    first = open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    take(Memory(first), ("rename", "A", "b", "", ME))
    bring(export(first, tmp_path / "new.json"), store)
    source, report = Source(str(path)), Report()
    receipt = take_in(Memory(store), IMPORTER.read(source, report), by=ME)
    assert (receipt.entities.new, receipt.new_ids) == (1, 1)
    ids = {entity.name: entity.id for entity in entities.read_all(Memory(store)).entities}
    assert set(ids) == {"A", "b"}
    assert ids["A"] != ids["b"]


@pytest.mark.parametrize("kind", ["jsonl", "binlog"])
def test_a_file_store_gets_what_it_can_hold(kind: str, tmp_path: Path) -> None:
    first = open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    with closing(open_store(STORES[kind](tmp_path))) as second:
        assert skipped(bring(path, second)) == []
        assert [entity.texts for entity in entities.read_all(Memory(second)).entities] == [("one",)]


@pytest.mark.parametrize("cut", [40, 200, -3, -2])
def test_a_document_without_its_end_is_refused(cut: int, tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadInput, match=r"not valid|not a valid|is missing"):
        bring(path, second)
    assert living(second) == living(open_store(":memory:"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_an_editor_may_change_the_end_and_the_encoding_of_a_document(
    end: str, encoding: str, tmp_path: Path
) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("Zoë", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_bytes((path.read_text("utf-8").rstrip() + end).encode(encoding))
    assert skipped(bring(path, second)) == []
    assert living(second) == living(first)


def test_a_second_import_of_a_document_reports_that_nothing_is_new(tmp_path: Path) -> None:
    fill(str(tmp_path / "memory.db"))
    run("export", "--format", "json", "-o", "all.json", "--store", "memory.db", directory=tmp_path)
    first, second = [
        run("import", "all.json", "--store", "new.db", directory=tmp_path).stdout for _ in range(2)
    ]
    assert "(0 new)" not in first.partition(" and ")[0]
    assert second.count("(0 new)") == 2
    assert len(second.splitlines()) == 1


def test_a_document_is_imported_without_its_secrets(store: Store, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    first = Memory(open_store(":memory:"))
    draft = EntityDraft(f"name {token}", token, ("harmless", token), tags=(token,), summary=token)
    entities.create(first, [draft], by=ME)
    relations.create(first, [Relation(f"name {token}", token, token)], by=ME)
    notes.commit(first, Note(token, token, tags=(token,)), by=ME)
    report = bring(export(first.store, tmp_path / "all.json"), store, secrets="refuse")
    assert token not in str(living(store))
    graph = entities.read_all(Memory(store))
    (entity,), (relation,) = graph.entities, graph.relations
    assert entity.texts == ("harmless", "[left out: it may contain a GitHub token]")
    assert relation.source == entity.name
    assert [(part.reason, part.count) for part in report.secret_places] == [("a GitHub token", 11)]
