"""Folders of Markdown files that others wrote.

What is read from them, and that hostile ones do no harm.
"""

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import take_in
from polymnia.errors import BadInput
from polymnia.importers.prose import blocks, inline_tags, link_targets
from polymnia.importers.source import MIN_BOMB_BYTES
from polymnia.model import Entity, Relation
from tests.importers.samples import SAMPLES, read_items
from tests.oracle import MemoryStore

KINDS = ("basic-memory", "obsidian", "claude-memory", "letta", "instructions")
LONG = 1 << 20


def test_a_text_is_divided_into_paragraphs_items_and_code() -> None:
    body = "# One\n\nfirst\nline\n\n- a\n  more\n\n  still a\n- b\n\nsecond\n## Two\n1. c\n---\n```\n# code\n\n- x\n```\n"
    assert [(block.headings, block.text, block.is_item) for block in blocks(body)] == [
        (("One",), "first\nline", False),
        (("One",), "a\n  more\n\n  still a", True),
        (("One",), "b", True),
        (("One",), "second", False),
        (("One", "Two"), "c\n---\n```\n# code\n\n- x\n```", True),
    ]


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[[a]] and [[b|c]] and [[d#e]] and [[f^g|h]]", ["a", "b", "d", "f"]),
        ("![[image.png]] [[]] [[a", []),
        ("[[[[a]]]]", ["a"]),
        ("[a](b)", []),
        (
            "[a](b.md) [c](../d%20e.md#f) [g](<h i.md>) ![j](k.md) [l](https://m.n/o.md)",
            ["b", "../d e", "h i"],
        ),
    ],
)
def test_links_are_found(text: str, targets: list[str]) -> None:
    assert link_targets(text) == targets


def test_tags_are_found() -> None:
    assert inline_tags("#a text #b/c-d, #1 a#b\n#e") == ["a", "b/c-d", "e"]


def test_pages_with_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "Index.md").write_text(
            f"about {folder}, see [[{folder}/Index]] and [[Other]]", "utf-8"
        )
    (tmp_path / "Other.md").write_text(
        "---\naliases: Alias\n---\n[[two/Index]] [[alias]] [[OTHER]] [[two/Index]]", "utf-8"
    )
    _, items, _ = read_items(tmp_path)
    assert {item.name for item in items if isinstance(item, Entity)} == {
        "one/Index",
        "two/Index",
        "Other",
    }
    assert {item.key for item in items if isinstance(item, Relation)} == {
        ("one/Index", "Other", "links_to"),
        ("two/Index", "Other", "links_to"),
        ("Other", "two/Index", "links_to"),
    }


def test_code_has_neither_tags_nor_links(tmp_path: Path) -> None:
    text = "`#include` and `` [[a`b]] `` #tag\n```\n[[code]] #code\n```\nsee [[Other]]\n\n- one ` tick\n- [[Last]] ` tick"
    (tmp_path / "Page.md").write_text(text, "utf-8")
    _, items, _ = read_items(tmp_path)
    assert [item.tags for item in items if isinstance(item, Entity)] == [("tag",)]
    assert [item.target for item in items if isinstance(item, Relation)] == ["Other", "Last"]


@pytest.mark.parametrize(
    ("kind", "more"), [("obsidian", "title: Ada"), ("basic-memory", "title: Ada\npermalink: ada")]
)
def test_properties_become_facts(kind: str, more: str, tmp_path: Path) -> None:
    text = (
        f"---\n{more}\ntype: person\ntags: [x]\nstatus: active\naliases: [A, B]\nempty:\n---\ntext"
    )
    (tmp_path / "Ada.md").write_text(text, "utf-8")
    found, items, _ = read_items(tmp_path)
    (entity,) = [item for item in items if isinstance(item, Entity)]
    assert (found, entity.type, entity.tags) == (kind, "person", ("x",))
    facts = ("status: active", "aliases: A, B")
    assert entity.texts == ("text", *(("title: Ada",) if kind == "obsidian" else ()), *facts)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_pages_in_utf_16_are_read(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "Ada.md").write_bytes(f"{mark}---\r\ntags: [x]\r\n---\r\nZoë\r\n".encode(encoding))
    _, items, report = read_items(tmp_path)
    assert [(item.tags, item.texts) for item in items if isinstance(item, Entity)] == [
        (("x",), ("Zoë",))
    ]
    assert report.dropped_parts == []


def test_bytes_that_are_not_utf_8_are_reported(tmp_path: Path) -> None:
    (tmp_path / "Ada.md").write_bytes(b"[[Zo\xeb]]")
    _, _, report = read_items(tmp_path)
    assert [(part.reason, part.places) for part in report.dropped_parts] == [
        ("bytes that are not UTF-8, which became U+FFFD", ["Ada.md"])
    ]


def test_files_that_instructions_import_are_reported(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text(
        "See @docs/style.md and\n@~/.claude/mine.md, not me@example.md", "utf-8"
    )
    _, _, report = read_items(tmp_path / "CLAUDE.md")
    assert [part.places for part in report.dropped_parts] == [
        ["CLAUDE.md: @docs/style.md", "CLAUDE.md: @~/.claude/mine.md"]
    ]


def test_a_link_that_several_pages_could_mean_means_the_first(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "Index.md").write_text("text", "utf-8")
    (tmp_path / "Other.md").write_text("---\ntags: daily work, home\n---\n[[Index]]", "utf-8")
    _, items, _ = read_items(tmp_path)
    assert [item.target for item in items if isinstance(item, Relation)] == ["one/Index"]
    assert [item.tags for item in items if isinstance(item, Entity) and item.tags] == [
        ("daily", "work", "home")
    ]


def test_a_vault_with_instructions_for_agents_is_a_vault(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / "CLAUDE.md").write_text("be brief", "utf-8")
    (tmp_path / "Page.md").write_text("text", "utf-8")
    assert read_items(tmp_path)[0] == "obsidian"


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_a_single_file_of_instructions_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / name).write_text("# Style\n- use ruff\n", "utf-8")
    kind, items, _ = read_items(tmp_path / "project" / name)
    assert kind == "instructions"
    assert [(item.name, item.texts) for item in items if isinstance(item, Entity)] == [
        ("project: rules", ("Style: use ruff",))
    ]


@pytest.mark.parametrize(
    ("line", "relation", "text"),
    [
        ("- is_a [[Drink|a drink]]", ("Tea", "Drink", "is_a"), ()),
        ('- "made of" [[Drink#Water]]', ("Tea", "Drink", "made of"), ()),
        ("- [[Drink]] (hot)", ("Tea", "Drink", "relates_to"), ()),
        ("- goes well with [[Drink]]", ("Tea", "Drink", "links_to"), ("goes well with [[Drink]]",)),
        ("- is_a [[Drink]], mostly", ("Tea", "Drink", "links_to"), ("is_a [[Drink]], mostly",)),
    ],
)
def test_relations_are_read_as_basic_memory_reads_them(
    line: str, relation: tuple[str, str, str], text: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "tea.md").write_text(f"---\ntitle: Tea\npermalink: tea\n---\n{line}\n", "utf-8")
    _, items, _ = read_items(tmp_path)
    assert [item.texts for item in items if isinstance(item, Entity)] == [text]
    assert [item.key for item in items if isinstance(item, Relation)] == [relation]


def test_notes_with_the_same_title_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(
            f"---\ntitle: Index\npermalink: x/{name}\n---\n- is [[x/two]]", "utf-8"
        )
    _, items, _ = read_items(tmp_path)
    assert [item.name for item in items if isinstance(item, Entity)] == [
        "Index (x/one)",
        "Index (x/two)",
    ]
    assert {item.target for item in items if isinstance(item, Relation)} == {"Index (x/two)"}


@pytest.mark.parametrize(
    ("kind", "name"), [("letta", "system/human.md"), ("claude-memory", "MEMORY.md")]
)
def test_properties_without_a_place_are_reported(kind: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("---\ndescription: Who\nlimit: 2000\n---\ntext", "utf-8")
    found, _, report = read_items(tmp_path)
    assert (found, [(field.reason, field.places) for field in report.dropped_fields]) == (
        kind,
        [("limit", [name])],
    )


def test_the_context_of_a_relation_is_reported() -> None:
    _, _, report = read_items(SAMPLES / "basic-memory")
    assert [(field.reason, field.places) for field in report.dropped_fields] == [
        ("context of a relation", ["brewing/coffee-brewing-methods.md"])
    ]


WRONG = [
    "[]",
    "{}",
    "[[a]]",
    "{a: {b: [c]}}",
    "\n  - x",
    "\n  a: b",
    "1e999",
    "null",
    "'",
    '"\\ud800"',
    "|",
    "&a *a",
    "!!python/x y",
]


@pytest.mark.parametrize("kind", KINDS)
def test_properties_of_a_wrong_type_are_no_failure(kind: str, tmp_path: Path) -> None:
    keys = (
        "title",
        "type",
        "tags",
        "aliases",
        "permalink",
        "created",
        "description",
        "name",
        "metadata",
        "summary",
    )
    for number, wrong in enumerate(WRONG):
        text = (
            "---\n"
            + "".join([f"{key}: {wrong}\n" for key in keys])
            + f"---\n- [{wrong}] x\n- {wrong} [[{wrong}]]\n"
        )
        (tmp_path / f"{number}.md").write_text(text, "utf-8")
    (tmp_path / "AGENTS.md").write_bytes(b"\xff\xfe\x00text \xed\xa0\x80")
    _, items, _ = read_items(tmp_path, kind)
    take_in(Memory(MemoryStore()), items, by="test")
    assert items


LINES = [
    "x" * LONG, " " * LONG + "x", "# " + " " * LONG + "x", "[[" * (LONG // 2), "[[a]]" * (LONG // 5),
    "- " * (LONG // 2), "#" * LONG, "`" * LONG, "a: " + "[" * LONG, "a" + " " * LONG + "b", "- [" * (LONG // 3),
    "(" * LONG, "a: " + "'a," * (LONG // 3), "[a](b" * (LONG // 5), "[](.md" * (LONG // 6), "` `` " * (LONG // 5),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_lines_of_a_megabyte_are_read(kind: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text(f"---\ntitle: x\n{line}\n---\n{line}\n- {line}\n", "utf-8")
    _, items, _ = read_items(tmp_path, kind)
    assert len([item for item in items if isinstance(item, Entity)]) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_links_in_a_circle_and_paths_out_of_the_folder_do_no_harm(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("---\ntitle: secret\n---\npassword", "utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("[[B]] [[../secret]] [[/etc/passwd]]", "utf-8")
    (folder / "B.md").write_text("[[AGENTS]] [[B]]", "utf-8")
    (folder / "C.md").symlink_to(tmp_path / "secret.md")
    (folder / "loop").symlink_to(folder)
    _, items, _ = read_items(folder, kind)
    texts = [text for item in items if isinstance(item, Entity) for text in item.texts]
    assert "password" not in texts
    assert not any("loop" in item.name for item in items if isinstance(item, Entity))


def test_an_archive_of_many_large_files_is_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "bomb.zip", "w", ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"{number}.md", b" " * (MIN_BOMB_BYTES // 2))
    with pytest.raises(BadInput, match="would unpack to 128 MB; unpack it yourself"):
        read_items(tmp_path / "bomb.zip")


def test_an_archive_of_a_hidden_folder_is_read(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "memory.zip", "w") as archive:
        archive.writestr(
            "home/zoe/.claude/projects/shop/memory/MEMORY.md", "The user is called Zoë."
        )
    kind, items, _ = read_items(tmp_path / "memory.zip")
    assert (kind, len(items)) == ("claude-memory", 1)


def test_an_archive_of_macos_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vault.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("vault/ZoeXY.md", "see [[Zoë]] and [[Other]]")
        archive.writestr("vault/.trash/old.md", "see [[Other]]")
        for name in ("__MACOSX/vault/._ZoeXY.md", "vault/._a.md"):
            archive.writestr(name, b"\x00\x05\x16\x07")
    # Its names are UTF-8 with accents as characters of their own, and it does not say so.
    path.write_bytes(path.read_bytes().replace(b"ZoeXY", "Zoe\u0308".encode()))
    kind, items, _ = read_items(path)
    assert (kind, [item.name for item in items if isinstance(item, Entity)]) == (
        "obsidian",
        ["Zoë"],
    )
    assert [item.target for item in items if isinstance(item, Relation)] == ["Other"]


@pytest.mark.parametrize("kind", KINDS)
def test_names_in_an_archive_are_only_names(kind: str, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../../AGENTS.md", "---\ntitle: t\n---\n- text")
        archive.writestr("/etc/CLAUDE.md", "- text")
    _, items, _ = read_items(tmp_path / "evil.zip", kind)
    assert items
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.zip"]
