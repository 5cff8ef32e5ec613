"""Edits of JSON with comments: the wanted member changes, everything else stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.clients.jsonc import parse, remove_member, set_member
from polymnia.errors import BadInput

PATH = ("mcpServers", "memory")
ENTRY = {"command": "/bin/polymnia", "args": ["serve"]}

WITH_COMMENTS = """\
// Settings of my editor
{
    "theme": "dark", // at night
    "mcpServers": {
        /* the clock */
        "clock": { "command": "clock" }, // keep
        "web": { "command": "web" } // last
    },
}
"""


def test_an_empty_file_gets_an_object() -> None:
    assert json.loads(set_member("", PATH, ENTRY)) == {"mcpServers": {"memory": ENTRY}}


def test_a_member_is_added_after_the_last_one_and_removed_again() -> None:
    added = set_member(WITH_COMMENTS, PATH, ENTRY)
    assert remove_member(added, PATH) == WITH_COMMENTS
    assert (
        added
        == """\
// Settings of my editor
{
    "theme": "dark", // at night
    "mcpServers": {
        /* the clock */
        "clock": { "command": "clock" }, // keep
        "web": { "command": "web" }, // last
        "memory": {
            "command": "/bin/polymnia",
            "args": ["serve"]
        }
    },
}
"""
    )


def test_a_member_is_replaced_where_it_is() -> None:
    text = '{"mcpServers": {"memory": {"command": "old"}, "web": 1}} // end\n'
    assert parse(set_member(text, PATH, ENTRY)) == {"mcpServers": {"memory": ENTRY, "web": 1}}
    assert set_member(text, PATH, ENTRY).endswith('"web": 1}} // end\n')


def test_the_middle_member_is_removed_with_its_line() -> None:
    text = '{\n  "mcpServers": {\n    "a": 1,\n    "memory": 2,\n    "b": 3\n  }\n}\n'
    assert remove_member(text, PATH) == '{\n  "mcpServers": {\n    "a": 1,\n    "b": 3\n  }\n}\n'


def test_removing_what_is_not_there_changes_nothing() -> None:
    assert remove_member(WITH_COMMENTS, PATH) == WITH_COMMENTS
    assert remove_member("{}", PATH) == "{}"


def test_the_line_ends_of_the_file_are_kept() -> None:
    text = WITH_COMMENTS.replace("\n", "\r\n")
    assert set_member(text, PATH, ENTRY) == set_member(WITH_COMMENTS, PATH, ENTRY).replace(
        "\n", "\r\n"
    )


def test_a_comment_in_an_empty_object_stays() -> None:
    new = set_member('{\n  "mcpServers": {\n    // none yet\n  }\n}\n', PATH, ENTRY)
    assert "// none yet\n" in new
    assert parse(new) == {"mcpServers": {"memory": ENTRY}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n"a": }', 2),
        ("[]", 1),
        ('{"a": 1} x', 1),
        ('{\n\n"a" 1}', 3),
        ('{"a": 1 "b": 2}', 1),
        ("{", 1),
        ('{"a": "x\n"}', 1),
        ('{"mcpServers": []}', 1),
    ],
)
def test_a_file_that_is_not_an_object_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(BadInput, match=f"line {line}: |is not an object"):
        set_member(text, PATH, ENTRY)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SPACES = st.sampled_from(["", " ", "\n", "\t", ' // a " comment {\n', "/* , } */", "\r\n"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw an object as text, with comments and trailing commas at random places."""

    def show(each: Any) -> str:
        space = draw(SPACES)
        if isinstance(each, dict):
            items = [
                f"{draw(SPACES)}{json.dumps(key)}{draw(SPACES)}:{show(inner)}"
                for key, inner in each.items()
            ]
            comma = draw(st.sampled_from(["", ","])) if items else ""
            return f"{space}{{{','.join(items)}{draw(SPACES)}{comma}{draw(SPACES)}}}{draw(SPACES)}"
        if isinstance(each, list):
            return f"{space}[{','.join(map(show, each))}{draw(SPACES)}]{draw(SPACES)}"
        return f"{space}{json.dumps(each)}{draw(SPACES)}"

    servers = draw(st.dictionaries(st.sampled_from(["memory", "web", "clock"]), VALUES, max_size=3))
    rest = draw(st.dictionaries(st.text(), VALUES, max_size=3))
    rest.pop("mcpServers", None)
    return show({**rest, "mcpServers": servers} if draw(st.booleans()) else rest)


@given(documents())
def test_a_member_can_be_set_and_removed_in_any_document(text: str) -> None:
    before = parse(text)
    added = set_member(text, PATH, ENTRY)
    assert parse(added) == {
        **before,
        "mcpServers": {**before.get("mcpServers", {}), "memory": ENTRY},
    }
    removed = parse(remove_member(added, PATH))
    assert removed.pop("mcpServers") == {
        key: value for key, value in before.get("mcpServers", {}).items() if key != "memory"
    }
    assert removed == {key: value for key, value in before.items() if key != "mcpServers"}


@given(documents())
def test_comments_survive_an_edit(text: str) -> None:
    if '"memory"' not in text:
        added = set_member(text, PATH, ENTRY)
        for comment in ('// a " comment {', "/* , } */"):
            assert added.count(comment) == text.count(comment)


def test_a_file_that_is_nested_deeply_is_refused_with_a_sentence() -> None:
    with pytest.raises(BadInput, match="nested too deeply"):
        parse('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")
