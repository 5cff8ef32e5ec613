"""A memory as a Markdown folder.

It comes back without loss, and an edit of a file changes exactly what was edited.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from polymnia.engine.history import undo
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import Item, take_in
from polymnia.errors import BadInput
from polymnia.importers.base import Report
from polymnia.importers.own_files import MARKDOWN as IMPORTER
from polymnia.importers.source import Source
from polymnia.markdown.merge import State
from polymnia.markdown.sync import export_folder, state_of, sync_folder
from polymnia.model import Entity, Fact, Note, Relation
from polymnia.stores import open_store
from tests.conftest import STORES
from tests.markdown.texts import memories

ME = "test"
MANY = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


def state(memory: Memory) -> State:
    with memory.reading() as read:
        return state_of(memory, read)


def made(items: list[Item], kind: str = "sqlite in memory") -> Memory:
    memory = Memory(open_store(STORES[kind](Path())))
    take_in(memory, items, by=ME)
    return memory


def read_items(path: Path) -> list[Item]:
    source = Source(str(path))
    assert IMPORTER.recognizes(source)
    return list(IMPORTER.read(source, Report()))


@MANY
@given(memories())
def test_a_memory_comes_back_without_loss(items: list[Item]) -> None:
    memory = made(items)
    with TemporaryDirectory() as place:
        export_folder(memory, Path(place))
        copy = made(read_items(Path(place)) if items else [])
        assert state(copy) == state(memory)
        again = sync_folder(memory, Path(place), by=ME)
        assert (again.change, again.files.created, again.files.changed, again.files.deleted) == (
            0,
            0,
            0,
            0,
        )
        assert again.conflicts == []


@MANY
@given(memories())
def test_a_folder_whose_line_ends_and_names_a_system_changed_is_the_same(items: list[Item]) -> None:
    """Git on Windows writes CRLF, and a Mac may decompose the names of files."""
    memory = made(items)
    before = state(memory)
    with TemporaryDirectory() as place:
        export_folder(memory, Path(place))
        for path in Path(place).rglob("*.md"):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        report = sync_folder(memory, Path(place), by=ME)
        assert (report.change, report.conflicts) == (0, [])
        assert state(memory) == before


def test_a_folder_in_an_archive_is_read(tmp_path: Path) -> None:
    memory = made([Entity("A", "t", (Fact(1, "one", 5),), "", 2, created_at=5, updated_at=5)])
    export_folder(memory, tmp_path / "folder")
    with ZipFile(tmp_path / "folder.zip", "w") as archive:
        archive.write(tmp_path / "folder" / "A.md", "deep/A.md")
    assert state(made(read_items(tmp_path / "folder.zip"))) == state(memory)


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x", "utf-8")
    with pytest.raises(BadInput, match="not an empty folder"):
        export_folder(made([]), tmp_path)


# Every edit changes the files as a person would, and returns what the memory should then be.
Edit = Callable[[Path, State, int], State]


def first(state: State, number: int) -> Entity:
    return list(state.entities.values())[number % len(state.entities)]


def file_of(folder: Path, name: str) -> Path:
    return next(iter(folder.rglob(f"{name}.md")))


def edit_text(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    one = entity.facts[number % len(entity.facts)]
    change(
        file_of(folder, entity.name),
        f"- {one.text} ^o{one.ordinal}\n",
        f"- edited {number} ^o{one.ordinal}\n",
    )
    texts = [
        replace(fact, text=f"edited {number}") if fact is one else fact for fact in entity.facts
    ]
    return with_entity(state, replace(entity, facts=tuple(texts)))


def add_text(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    change(
        file_of(folder, entity.name), "## Observations\n\n", "## Observations\n\n- added by hand\n"
    )
    added = Fact(entity.next_ordinal, "added by hand")
    return with_entity(
        state,
        replace(entity, facts=(*entity.facts, added), next_ordinal=entity.next_ordinal + 1),
    )


def delete_text(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    one = entity.facts[number % len(entity.facts)]
    change(file_of(folder, entity.name), f"- {one.text} ^o{one.ordinal}\n", "")
    return with_entity(
        state,
        replace(
            entity,
            facts=tuple([fact for fact in entity.facts if fact is not one]),
        ),
    )


def reorder_texts(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    lines = [f"- {fact.text} ^o{fact.ordinal}\n" for fact in entity.facts]
    change(file_of(folder, entity.name), "".join(lines), "".join(reversed(lines)))
    return state


def rename(folder: Path, state: State, number: int) -> State:
    """Rename a file.

    An editor that knows links follows them in the other files; a shell does not.
    """
    entity = first(state, number)
    path = file_of(folder, entity.name)
    path.rename(path.with_name("New name.md"))
    if number % 2:
        for file in folder.rglob("*.md"):
            file.write_text(
                file.read_text("utf-8").replace(f"[[{entity.name}]]", "[[New name]]"), "utf-8"
            )
    return renamed(state, entity, "New name")


def rename_property(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    change(file_of(folder, entity.name), "type: ", "name: New name\ntype: ")
    return renamed(state, entity, "New name")


def move(folder: Path, state: State, number: int) -> State:
    path = file_of(folder, first(state, number).name)
    (folder / "people" / "deep").mkdir(parents=True)
    path.rename(folder / "people" / "deep" / path.name)
    return state


def retag(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    change(file_of(folder, entity.name), "tags:\n  - a\n  - b\n", "tags: [b, 'new tag']\n")
    return with_entity(state, replace(entity, tags=("b", "new tag")))


def retype(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    change(file_of(folder, entity.name), f"type: {entity.type}\n", 'type: "other type"\n')
    return with_entity(state, replace(entity, type="other type"))


def summarize(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    change(file_of(folder, entity.name), "about it\n", "")
    return with_entity(state, replace(entity, summary=None))


def delete(folder: Path, state: State, number: int) -> State:
    entity = first(state, number)
    file_of(folder, entity.name).unlink()
    relations = {
        key: relation for key, relation in state.relations.items() if relation.source != entity.name
    }
    return State(
        {key: other for key, other in state.entities.items() if other is not entity},
        relations,
        state.notes,
    )


def create(folder: Path, state: State, number: int) -> State:
    text = (
        "---\npolymnia: entity\ntype: idea\n---\nA thought\n\n- and a fact\n\n"
        "## Relations\n\n- about [[B]]\n"
    )
    (folder / "Mine.md").write_text(text, "utf-8")
    entity = Entity("Mine", "idea", (Fact(1, "and a fact"),), "new", 2, "A thought")
    return State(
        {**state.entities, "new": entity},
        {**state.relations, ("Mine", "B", "about"): Relation("Mine", "B", "about")},
        state.notes,
    )


def link(folder: Path, state: State, number: int) -> State:
    change(file_of(folder, "A"), "## Relations\n\n", "## Relations\n\n- likes very much [[C]]\n")
    relation = Relation("A", "C", "likes very much")
    return State(state.entities, {**state.relations, relation.key: relation}, state.notes)


def unlink(folder: Path, state: State, number: int) -> State:
    change(file_of(folder, "A"), "- knows [[B]]\n", "")
    return State(
        state.entities,
        {key: relation for key, relation in state.relations.items() if key != ("A", "B", "knows")},
        state.notes,
    )


def edit_note(folder: Path, state: State, number: int) -> State:
    change(folder / "notes" / "plan.md", "ship it", "ship it\n\n- soon")
    note = replace(state.notes["plan"], content="ship it\n\n- soon", embedding=b"")
    return State(state.entities, state.relations, {**state.notes, "plan": note})


def delete_note(folder: Path, state: State, number: int) -> State:
    (folder / "notes" / "plan.md").unlink()
    return State(state.entities, state.relations, {})


# In an order in which each finds what it edits.
IN_FILES: list[Edit] = [
    reorder_texts, edit_text, delete_text, add_text, retag, retype, summarize, link, unlink,
    create, edit_note,
]  # fmt: skip
OF_FILES: list[Edit] = [rename, rename_property, move, delete, delete_note]
EDITS = [*IN_FILES, *OF_FILES]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def with_entity(state: State, entity: Entity) -> State:
    return State({**state.entities, entity.id: entity}, state.relations, state.notes)


def renamed(state: State, entity: Entity, name: str) -> State:
    def follow(end: str) -> str:
        return name if end == entity.name else end

    relations = [
        Relation(follow(relation.source), follow(relation.target), relation.type)
        for relation in state.relations.values()
    ]
    return State(
        {**state.entities, entity.id: replace(entity, name=name)},
        {relation.key: relation for relation in relations},
        state.notes,
    )


def content(state: State) -> object:
    """Return what a person can edit."""
    entities = [
        (
            entity.name,
            entity.type,
            entity.summary,
            entity.tags,
            [(one.ordinal, one.text) for one in entity.facts],
        )
        for entity in state.entities.values()
    ]
    notes = sorted(
        [(note.key, note.content, note.tags, note.embedding) for note in state.notes.values()]
    )
    return sorted(entities), sorted(state.relations), notes


ITEMS: list[Item] = [
    *[
        Entity(
            name,
            "thing",
            tuple([Fact(ordinal, f"fact {ordinal} of {name}", 5) for ordinal in (1, 2, 4)]),
            "",
            6,
            "about it",
            tags=("a", "b"),
        )
        for name in ("A", "B", "C")
    ],
    Relation("A", "B", "knows"),
    Relation("B", "A", "knows"),
    Relation("C", "C", "is"),
    Relation("A", "nobody", "misses"),
    Relation("nobody", "A", "misses"),
    Note("plan", "ship it", ("x",)),
]


@pytest.fixture(params=["sqlite in memory", "postgres"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    memory = made(ITEMS, request.param)
    with closing(memory.store):
        yield memory


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
@pytest.mark.parametrize("number", [0, 1, 5])
def test_an_edit_changes_exactly_what_was_edited(
    memory: Memory, edit: Edit, number: int, tmp_path: Path
) -> None:
    export_folder(memory, tmp_path / "f")
    before = state(memory)
    expected = edit(tmp_path / "f", before, number)
    report = sync_folder(memory, tmp_path / "f", by=ME)
    assert (report.conflicts, report.skipped) == ([], [])
    assert content(state(memory)) == content(expected)
    unedited = [
        key for key, entity in expected.entities.items() if entity == before.entities.get(key)
    ]
    assert [state(memory).entities[key] for key in unedited] == [
        before.entities[key] for key in unedited
    ]
    again = sync_folder(memory, tmp_path / "f", by=ME)
    assert (again.change, again.conflicts) == (0, [])
    if report.change:
        undo.undo(memory, [report.change], by=ME)
    assert content(state(memory)) == content(before)


@MANY
@given(st.sets(st.sampled_from(range(len(IN_FILES)))), st.sampled_from(OF_FILES), st.integers(0, 8))
def test_several_edits_change_exactly_what_was_edited(
    edits: set[int], last: Edit, number: int
) -> None:
    memory = made(ITEMS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        export_folder(memory, folder)
        expected = state(memory)
        for edit in (*[IN_FILES[edit] for edit in sorted(edits)], last):
            expected = edit(folder, expected, number)
        report = sync_folder(memory, folder, by=ME)
        assert (report.conflicts, report.skipped) == ([], [])
        assert content(state(memory)) == content(expected)
