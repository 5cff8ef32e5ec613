"""Rules files: written once, beside what others wrote, and removed without a trace."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from polymnia.clients.rules import RULES, RULES_FILES, add_rules, remove_rules
from polymnia.errors import BadInput
from polymnia.settings import client_roots


@pytest.mark.parametrize("name", RULES_FILES)
def test_rules_of_our_own_file_are_written_once_and_removed_with_it(
    name: str, tmp_path: Path
) -> None:
    rules = RULES_FILES[name]
    path = rules.path(client_roots(), tmp_path)
    assert path is not None
    add_rules(rules, path)
    assert add_rules(rules, path) is None
    text = path.read_text("utf-8")
    assert text.count(RULES) == 1
    assert text.startswith(rules.head)
    remove_rules(rules, path)
    assert not path.exists()


def test_what_others_wrote_in_the_file_stays(tmp_path: Path) -> None:
    rules = RULES_FILES["zed"]
    (tmp_path / "AGENTS.md").write_text("# House rules\n\nBe kind.\n", "utf-8")
    path = rules.path(client_roots(), tmp_path)
    assert path == tmp_path / "AGENTS.md"
    assert add_rules(rules, path) is not None
    assert path.read_text("utf-8").startswith("# House rules\n\nBe kind.\n\n<!-- polymnia")
    remove_rules(rules, path)
    assert path.read_text("utf-8") == "# House rules\n\nBe kind.\n"


def test_the_users_file_of_all_rules_gets_no_head(tmp_path: Path) -> None:
    rules = RULES_FILES["windsurf"]
    path = rules.path(replace(client_roots(), home=tmp_path), None)
    assert path is not None
    add_rules(rules, path)
    assert path.read_text("utf-8").startswith("<!-- polymnia: begin -->")


def test_rules_that_are_not_there_cannot_be_removed(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no rules of Polymnia"):
        remove_rules(RULES_FILES["zed"], tmp_path / "AGENTS.md")


def test_writing_the_rules_twice_keeps_the_lines_around_them(tmp_path: Path) -> None:
    rules, path = RULES_FILES["zed"], tmp_path / "AGENTS.md"
    path.write_text("Be kind.\n", "utf-8")
    add_rules(rules, path)
    path.write_text(path.read_text("utf-8").replace(RULES, "old\n") + "Be brief.\n", "utf-8")
    add_rules(rules, path)
    text = path.read_text("utf-8")
    assert text.startswith("Be kind.\n\n<!-- polymnia: begin -->\n")
    assert text.endswith("<!-- polymnia: end -->\nBe brief.\n")
