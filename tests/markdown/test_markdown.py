"""One entity or note as a Markdown file: it comes back as it was, with any texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.markdown.folder import MAX_STEM_BYTES, FilePaths, FileStems, lay_out, safe_stem
from polymnia.markdown.merge import State
from polymnia.markdown.properties import (
    front_matter,
    property_lines,
    split_file,
    split_front_matter,
)
from polymnia.markdown.text import encode_item, parse_items
from polymnia.model import Entity, Fact, Note, Relation
from tests.markdown.texts import texts


@given(texts, st.integers(1, 99))
def test_an_fact_comes_back(text: str, ordinal: int) -> None:
    item = encode_item(text, ordinal)
    assert list(parse_items(item.split("\n"))) == [(text, ordinal)]
    around = ["before", "", "- one ^o1", *item.split("\n"), "- two ^o2", "", "after"]
    assert list(parse_items(around)) == [
        ("before", 0),
        ("one", 1),
        (text, ordinal),
        ("two", 2),
        ("after", 0),
    ]


@given(
    st.dictionaries(
        st.sampled_from(["type", "name", "summary", "k"]),
        texts | st.lists(texts, min_size=1, max_size=3),
    ),
    texts,
)
def test_properties_come_back(properties: dict[str, str | list[str]], body: str) -> None:
    assert split_front_matter(front_matter(properties) + body) == (properties, body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tags: [a, 'b c', \"d, e\"]", ["a", "b c", "d, e"]),
        ("tags:\n- a\n- b  # why", ["a", "b"]),
        ("tags:\n  - a\n\n  - 'it''s'", ["a", "it's"]),
        ("tags: a, b", "a, b"),
        ("tags: |\n  one\n  two", "one\ntwo"),
        ("tags: >-\n  one\n  two", "one two"),
        ("tags: # nothing", ""),
        ("tags: null", ""),
        ("other:\n  tags: x\ntags: y", "y"),
        ('"tags": y', "y"),
        ("tags: [\n  a,\n  b\n]", ["a", "b"]),
        ('tags: "one\n  two \\x21"', "one two !"),
        ("tags: [[Page]]", ["Page"]),
        ("tags:\n  - name: a\n    url: b", ["name: a", "url: b"]),
        ("tags: Part 1: the start", "Part 1: the start"),
        ("title: {{title}}\nother: @me\ntags: y", "y"),
        ("tags: *star*", "*star*"),
        ("tags:y", None),
    ],
)
def test_what_editors_write_is_read(text: str, expected: object) -> None:
    assert split_file(f"---\r\n{text}\r\n---\r\nbody".encode())[0].get("tags") == expected


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_read_as_plain_text(opening: str) -> None:
    text = f"---\ndeep: {opening * 50_000}\ntags: y\n---\n"
    assert split_front_matter(text)[0]["tags"] == "y"


def test_properties_are_kept_as_they_are_written() -> None:
    text = "---\n# mine\nrating:   5 # of 5\nlist:\n- a\n\nid: x\n---\nbody"
    assert property_lines(text) == {
        "rating": "# mine\nrating:   5 # of 5",
        "list": "list:\n- a\n",
        "id": "id: x",
    }


@pytest.mark.parametrize(
    "text", ["", "---", "---\na: 1", "text\n---\na: 1\n---", "----\na: 1\n---\n"]
)
def test_a_text_without_properties_is_left_as_it_is(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Ada Lovelace", "Ada Lovelace"),
        ("../../etc/passwd", "-..-etc-passwd"),
        ("..", "unnamed"),
        (".hidden", "hidden"),
        ("AC/DC", "AC-DC"),
        ("C:\\x", "C--x"),
        ("con", "con_"),
        ("Lpt1.txt", "Lpt1.txt_"),
        ("a" * 300, "a" * 100),
        ("e\u0301", "é"),
        ("dot.", "dot"),
        ("a|b#c^d[e]", "a-b-c-d-e-"),
        ("\u202egnp", "-gnp"),
        ("", "unnamed"),
    ],
)
def test_a_name_becomes_a_safe_file_name(name: str, stem: str) -> None:
    assert safe_stem(name) == stem


@given(st.lists(texts, unique=True, max_size=6))
def test_file_names_differ_on_every_file_system(names: list[str]) -> None:
    stems = FileStems()
    found = [stems.allocate(name) for name in names]
    assert len({item.casefold() for item in found}) == len(names)
    assert all(
        "/" not in item and len(f"{item}.md".encode()) <= MAX_STEM_BYTES + 20 for item in found
    )


def test_names_that_differ_in_case_get_different_files() -> None:
    state = State({"1": Entity("Ada", "t", id="1"), "2": Entity("ada", "t", id="2")})
    files, _ = lay_out(state, FilePaths({}, {}), {}, [])
    first, second = files
    assert first == "Ada.md"
    assert second.startswith("ada ~")
    assert b"name: ada\n" in files[second]


def test_a_file_is_readable() -> None:
    ada = Entity(
        "Ada Lovelace",
        "person",
        (
            Fact(1, "wrote notes", 5),
            Fact(3, "two\nlines", 7_000_000, 9_000_000, "talk"),
        ),
        "id1",
        4,
        "A mathematician.",
        5,
        ("math",),
        5,
        6_000_000,
    )
    state = State(
        {"id1": ada},
        {("Ada Lovelace", "AC/DC", "knows"): Relation("Ada Lovelace", "AC/DC", "knows", 5)},
    )
    files, _ = lay_out(state, FilePaths({}, {}), {}, [])
    assert files["Ada Lovelace.md"].decode() == (
        "---\npolymnia: entity\nid: id1\ntype: person\ntags:\n  - math\n"
        "created: 1970-01-01T00:00:00.000005Z\nupdated: 1970-01-01T00:00:06Z\n---\n\n"
        "A mathematician.\n\n"
        "## Observations\n\n- wrote notes ^o1\n- two\n  lines ^o3\n\n"
        "## Relations\n\n- knows [[AC-DC|AC/DC]]\n\n"
        '<!-- polymnia\n{"summary":"1970-01-01T00:00:00.000005Z"}\n'
        '{"ordinal":3,"created":"1970-01-01T00:00:07Z","valid":"1970-01-01T00:00:09Z","source":"talk"}\n-->\n'
    )


def test_a_note_is_its_content() -> None:
    state = State(
        notes={"plan/a": Note("plan/a", "# Plan\n\n- ship", ("x",), created_at=5, updated_at=5)}
    )
    files, _ = lay_out(state, FilePaths({}, {}), {}, [])
    ((path, data),) = files.items()
    assert path == "notes/plan-a.md"
    assert data.decode().endswith("---\n\n# Plan\n\n- ship\n")
