"""The instructions, the skill, docs/agents.md and the catalogue speak of the same tools."""

import re
from pathlib import Path
from typing import Any

import pytest

from polymnia.dialects.native import INSTRUCTIONS, WRITE_INSTRUCTIONS
from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.dialects.conversation import Client

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / "packages/plugin/skills/memory/SKILL.md").read_text("utf-8")
PAGE = (ROOT / "docs/agents.md").read_text("utf-8")
DETAILS = PAGE.partition("## The tools in detail")[2].partition("\n## ")[0]
# What stands in backticks and is a value, not a name of the catalogue.
VALUES = {"conversation", "personal", "pinned", "done", "yesterday", "warn", "refuse", "off"}


@pytest.fixture(scope="module")
def tools() -> dict[str, Any]:
    client = Client("native", Memory(open_store(":memory:")))
    return {tool["name"]: tool for tool in client.request("tools/list")["tools"]}


def argument_names(schema: Any) -> set[str]:
    """Return the names of all properties in a schema."""
    names: set[str] = set()
    if isinstance(schema, dict):
        names |= set(schema.get("properties", ()))
        for part in schema.values():
            names |= argument_names(part)
    elif isinstance(schema, list):
        for part in schema:
            names |= argument_names(part)
    return names


@pytest.mark.parametrize("text", [SKILL, DETAILS], ids=["skill", "page"])
def test_what_stands_in_backticks_exists(tools: dict[str, Any], text: str) -> None:
    known = set(tools) | VALUES
    for tool in tools.values():
        known |= argument_names(tool["inputSchema"])
    named = set(re.findall(r"`([a-z_]+)`", text))
    assert named - known == set()


def test_the_page_describes_every_tool(tools: dict[str, Any]) -> None:
    headings = re.findall(r"^### (.+)$", DETAILS, re.MULTILINE)
    assert sorted(re.findall(r"[a-z]+", " ".join(headings).replace(" and ", " "))) == sorted(tools)


def test_the_instructions_name_tools_that_exist(tools: dict[str, Any]) -> None:
    text = f"{INSTRUCTIONS} {WRITE_INSTRUCTIONS}"
    called = re.findall(r"\bcall ([a-z]+)\b", text)
    assert called == ["briefing", "recall", "remember"]
    assert set(called) < set(tools)


def test_all_give_the_same_advice_when_nothing_answers(tools: dict[str, Any]) -> None:
    for text in (INSTRUCTIONS, SKILL, tools["recall"]["description"], PAGE):
        plain = " ".join(text.split())
        assert re.search(r"ask once more (?:in|with) other words", plain)
        assert "not stored" in plain
    for text in (SKILL, tools["recall"]["description"], PAGE):
        assert re.search(r"translat(?:e|ion)", text)
