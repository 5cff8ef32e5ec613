"""Docs that could drift: every setting, command, dialect and format is described, every link leads somewhere."""

import re
from pathlib import Path

import pytest

from polymnia.cli.main import build_parser
from polymnia.dialects import DIALECTS
from polymnia.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", Settings.__struct_fields__)
def test_every_setting_is_documented(name: str) -> None:
    page = text("docs/settings.md")
    assert f"`{name}`" in page
    assert f"`POLYMNIA_{name.upper()}`" in page


def test_every_command_is_in_the_readme() -> None:
    (commands,) = [action for action in build_parser()._actions if action.dest == "command"]
    assert [name for name in commands.choices or () if f"`polymnia {name}" not in text("README.md")] == []


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_is_in_the_readme(name: str) -> None:
    assert f"| `{name}` |" in text("README.md")


def test_the_readme_stays_short() -> None:
    assert 60 <= len(text("README.md").splitlines()) <= 160


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
