"""Edits of TOML: the wanted table changes, every other line stays."""

import tomllib

import pytest

from polymnia.clients.toml import remove_table, set_table
from polymnia.errors import BadInput

PATH = ("mcp_servers", "memory")
ENTRY = {"command": "C:\\polymnia.exe", "args": ["serve"], "env": {"A B": 'x "y"'}}

TEXT = """\
# my settings
model = "large" # the good one

[mcp_servers.clock]
command = "clock"

# about profiles
[profiles.fast]
model = "small"
"""


def test_an_empty_file_gets_a_table() -> None:
    assert tomllib.loads(set_table("", PATH, ENTRY)) == {"mcp_servers": {"memory": ENTRY}}


def test_a_table_is_added_at_the_end_and_removed_again() -> None:
    new = set_table(TEXT, PATH, ENTRY)
    assert remove_table(new, PATH).rstrip("\n") == TEXT.rstrip("\n")
    assert new.startswith(TEXT)
    assert tomllib.loads(new)["mcp_servers"] == {"clock": {"command": "clock"}, "memory": ENTRY}


def test_a_table_is_replaced_where_it_is_with_the_tables_in_it() -> None:
    old = TEXT.replace(
        "# about profiles",
        '[mcp_servers.memory]\ncommand = "npx"\n'
        '[mcp_servers.memory.env]\nX = "1"\n\n# about profiles',
    )
    assert set_table(old, PATH, {"command": "p"}) == TEXT.replace(
        "# about profiles", '[mcp_servers.memory]\ncommand = "p"\n\n# about profiles'
    )


def test_the_line_ends_of_the_file_are_kept() -> None:
    new = set_table(TEXT.replace("\n", "\r\n"), PATH, ENTRY)
    assert "\n" not in new.replace("\r\n", "")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { memory = { command = "npx" } }\n',
        '[mcp_servers]\nmemory = { command = "npx" }\n',
        '[mcp_servers]\nmemory.command = "npx"\n',
        'text = """\n[mcp_servers.memory]\n"""\n[mcp_servers.memory]\ncommand = "npx"\n',
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        set_table(text, PATH, ENTRY)


def test_a_file_that_is_not_toml_is_refused() -> None:
    with pytest.raises(BadInput, match="line 1"):
        set_table("x = \ny = 1\n", PATH, ENTRY)
