"""The JSON document.

Exporting a memory and importing it gives the identical memory, with ids, history and trash.
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
from polymnia.engine.history import undo
from polymnia.engine.memory import Memory
from polymnia.engine.moving.content import Content
from polymnia.engine.moving.migrate import copy_tables
from polymnia.engine.notes import vault_notes
from polymnia.errors import BadInput
from polymnia.formats.document import document_lines
from polymnia.importers.base import Report
from polymnia.importers.document import IMPORTER
from polymnia.importers.run import run_import
from polymnia.importers.source import Source
from polymnia.model import EntityDraft, Mark, Note, Perspective, Relation
from polymnia.search.embedding import pack_vector
from polymnia.stores import open_store
from polymnia.stores.contract import TABLES, Store
from tests.behaviour.steps import STEPS, Step, state_of, take
from tests.cli.commands import fill, run
from tests.conftest import STORES, VERSIONED

ME = "test"


@pytest.fixture(params=VERSIONED)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(STORES[request.param](tmp_path))) as opened:
        yield opened


def export(store: Store, path: Path) -> Path:
    with store.reading() as read, path.open("wb") as file:
        content = Content(read, store.capabilities)
        tables = read.read_rows if store.capabilities.tables else None
        file.writelines(
            document_lines(content.entities(), content.relations(), content.notes(), tables)
        )
    return path


def bring(path: Path, store: Store, secrets: SecretRule = "warn") -> Report:
    report = Report(secrets)
    source = Source(str(path))
    assert IMPORTER.recognizes(source)
    assert IMPORTER.read_history is not None
    history = IMPORTER.read_history(source, report)
    memory = Memory(store, secrets=secrets)
    run_import(memory, IMPORTER.read(source, report), report, by=ME, history=history)
    return report


@pytest.mark.parametrize("version", ["99", "10", '"1"'])
def test_a_document_of_another_version_is_refused(version: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text(f'{{"format":"polymnia","version":{version},"entities":[]}}')
    source = Source(str(path))
    assert IMPORTER.recognizes(source)
    with pytest.raises(BadInput, match="and this program reads version 1; upgrade it"):
        list(IMPORTER.read(source, Report()))


def tables(store: Store) -> dict[str, object]:
    with store.reading() as read:
        return {table: list(read.read_rows(table)) for table in TABLES}


def skipped(report: Report) -> list[tuple[str, list[str]]]:
    return [(part.reason, part.places) for part in report.dropped_parts]


@pytest.mark.parametrize("source", ["sqlite in memory", "postgres"])
@pytest.mark.parametrize("target", ["sqlite in memory", "postgres"])
def test_any_history_comes_back_identical(source: str, target: str, tmp_path: Path) -> None:
    examples = 60 if source == target == "sqlite in memory" else 8

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(STEPS)
    def check(steps: list[Step]) -> None:
        with (
            closing(open_store(STORES[source](tmp_path))) as first,
            closing(open_store(STORES[target](tmp_path))) as second,
        ):
            for step in steps:
                take(Memory(first), step)
            report = bring(export(first, tmp_path / "all.json"), second)
            assert skipped(report) == []
            assert tables(second) == tables(first)
            assert state_of(Memory(second)) == state_of(Memory(first))
            assert second.check() == []
            again = (tmp_path / "all.json").read_bytes()
            assert export(second, tmp_path / "again.json").read_bytes() == again

    check()


def test_perspectives_marks_purges_and_embeddings_come_back(store: Store, tmp_path: Path) -> None:
    first = open_store(":memory:")
    memory = Memory(first)
    entities.create(memory, [EntityDraft("A", "t", ("one",)), EntityDraft("B", "t")], by="ann")
    entities.delete(memory, ["B"], by="ben")
    first.purge(before=2**62)
    embedding = pack_vector([0.5, 1.5], 2, "embedding")
    notes.commit(memory, Note("key", "text", ("tag",), embedding=embedding), by=ME)
    first.vectors.set_perspective(Perspective("named", "{name}: {text}", "about {query}"))
    with first.writing() as writer:
        writer.history.set_mark("report", Mark(1, 2))
    bring(export(first, tmp_path / "all.json"), store)
    assert tables(store) == tables(first)
    assert [note.embedding for note in vault_notes(Memory(store))] == [embedding]
    with store.reading() as read:
        assert [perspective.name for perspective in read.vectors.perspectives()] == [
            "text",
            "named",
        ]
        assert read.history.actors() == ["ann", "ben", ME]


def test_vectors_of_an_embedder_are_made_again(tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    model = first.vectors.add_model("made", "none", 2).number
    with first.reading() as read:
        pending = read.vectors.pending(model, 10)
    vector = pack_vector([0.5, 1.5], 2, "vector")
    first.vectors.put(model, [(passage, vector) for passage, _ in pending])
    bring(export(first, tmp_path / "all.json"), second)
    with second.reading() as read:
        assert read.vectors.coverage(model) == (0, len(pending))


def test_a_restored_memory_can_be_undone_and_changed(store: Store, tmp_path: Path) -> None:
    first = open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    entities.delete(Memory(first), ["A"], by=ME)
    bring(export(first, tmp_path / "all.json"), store)
    undo.undo(Memory(store), [2], by=ME)
    assert [entity.texts for entity in entities.read_all(Memory(store)).entities] == [("one",)]


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
    (reason, places), *rest = skipped(report)
    assert (places, rest) == (["history"], [])
    assert reason.startswith("the store is not empty")


def test_an_id_that_belongs_to_another_entity_is_not_taken(store: Store, tmp_path: Path) -> None:
    first = open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    take(Memory(first), ("rename", "A", "b", "", ME))
    bring(export(first, tmp_path / "new.json"), store)
    source, report = Source(str(path)), Report()
    receipt = run_import(Memory(store), IMPORTER.read(source, report), report, by=ME)
    assert (receipt.entities.new, receipt.new_ids) == (1, 1)
    ids = {entity.name: entity.id for entity in entities.read_all(Memory(store)).entities}
    assert set(ids) == {"A", "b"}
    assert ids["A"] != ids["b"]


def test_an_interrupted_import_goes_on(store: Store, tmp_path: Path) -> None:
    first = open_store(":memory:")
    for number in range(3):
        entities.create(Memory(first), [EntityDraft(f"E{number}", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    steps = []

    def interrupt(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) == 2:
            raise KeyboardInterrupt

    assert IMPORTER.read_history is not None
    history = IMPORTER.read_history(Source(str(path)), Report())
    assert history is not None
    with pytest.raises(KeyboardInterrupt):
        copy_tables(history, store, progress=interrupt)
    assert skipped(bring(path, store)) == []
    assert tables(store) == tables(first)


def test_a_document_that_another_program_formatted_keeps_its_history(tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("Ä", "t", ("one\u2028two",))], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=3), "utf-8-sig")
    assert skipped(bring(path, second)) == []
    assert tables(second) == tables(first)


def test_a_document_that_was_edited_is_taken_without_its_history(tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_bytes(path.read_bytes().replace(b'["one"]', b'["two"]'))
    assert skipped(bring(path, second)) == [
        ("the document was changed since it was exported", ["history"])
    ]
    assert [entity.texts for entity in entities.read_all(Memory(second)).entities] == [("two",)]


@pytest.mark.parametrize("kind", ["jsonl", "binlog"])
def test_a_file_store_gets_what_it_can_hold(kind: str, tmp_path: Path) -> None:
    first = open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    with closing(open_store(STORES[kind](tmp_path))) as second:
        ((reason, _),) = skipped(bring(path, second))
        assert "cannot hold history" in reason
        assert [entity.texts for entity in entities.read_all(Memory(second)).entities] == [("one",)]


@pytest.mark.parametrize("cut", [40, 200, -3, -2])
def test_a_document_without_its_end_is_refused(cut: int, tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadInput, match=r"not valid|not a valid|is missing"):
        bring(path, second)
    assert tables(second) == tables(open_store(":memory:"))


@pytest.mark.parametrize(
    "row", [b'[2,"1",1,"one",', b'[2,1,1,"o\\u0000e",', b"[2,1,1,null,", b'{"a":1},[2,1,1,"one",']
)
def test_a_wrong_row_is_refused_before_anything_is_written(row: bytes, tmp_path: Path) -> None:
    first, second = open_store(":memory:"), open_store(":memory:")
    entities.create(Memory(first), [EntityDraft("A", "t", ("one",))], by=ME)
    path = export(first, tmp_path / "all.json")
    data = path.read_bytes()
    assert data.count(b'[2,1,1,"one",') == 1
    path.write_bytes(data.replace(b'[2,1,1,"one",', row))
    with pytest.raises(BadInput, match=r"history\.tables\.observations\[0\]"):
        bring(path, second)
    assert tables(second) == tables(open_store(":memory:"))


def test_the_command_restores_the_history(tmp_path: Path) -> None:
    fill(str(tmp_path / "source.db"))
    run("export", "--format", "json", "-o", "all.json", "--store", "source.db", directory=tmp_path)
    trial = run("import", "all.json", "--dry-run", "--store", "new.db", directory=tmp_path)
    assert not (tmp_path / "new.db").exists()
    assert "skipped" not in trial.stdout
    said = run("import", "all.json", "--store", "new.db", directory=tmp_path)
    assert "restored the history of" in said.stdout
    again = run("import", "all.json", "--store", "new.db", directory=tmp_path)
    assert again.returncode == 0
    with (
        closing(open_store(str(tmp_path / "source.db"))) as one,
        closing(open_store(str(tmp_path / "new.db"))) as two,
    ):
        assert tables(one) == tables(two)


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
    assert tables(second) == tables(first)


def test_a_second_import_of_a_document_reports_that_nothing_is_new(tmp_path: Path) -> None:
    fill(str(tmp_path / "memory.db"))
    run("export", "--format", "json", "-o", "all.json", "--store", "memory.db", directory=tmp_path)
    first, second = [
        run("import", "all.json", "--store", "new.db", directory=tmp_path).stdout for _ in range(2)
    ]
    assert "restored the history of" in first
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
    assert token not in str(tables(store))
    graph = entities.read_all(Memory(store))
    (entity,), (relation,) = graph.entities, graph.relations
    assert entity.texts == ("harmless", "[left out: it may contain a GitHub token]")
    assert relation.source == entity.name
    assert skipped(report) == [("it seems to contain a GitHub token", ["history"])]
    assert [(part.reason, part.count) for part in report.secret_places] == [("a GitHub token", 11)]
