"""The registry: what dialects declare, and that nothing else knows them by name."""

import ast
import re
from pathlib import Path

import pytest

from polymnia.dialects import DIALECTS, open_dialect
from polymnia.dialects.registry import DEFAULT_DIALECT, find_spec
from polymnia.errors import SettingsError
from polymnia.model import Capability, Principal
from polymnia.settings import Settings
from polymnia.stores import store_kind

SOURCE = Path(__file__).parents[2] / "src" / "polymnia"
# Names of dialects that mean something else too.
DOMAIN_WORDS = {"project", "workspace"}
# The web interface has a page of that name.
PAGES = {("web/pages/__init__.py", "graph"), ("web/findings.py", "graph")}
OUTSIDE = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if "dialects" not in path.relative_to(SOURCE).parts
]


def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{name.name}" for name in node.names]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_nothing_outside_dialects_imports_a_concrete_dialect() -> None:
    concrete = tuple(spec.module for spec in DIALECTS.values())
    offenders = {
        (str(path.relative_to(SOURCE)), module)
        for path in OUTSIDE
        if "dialects" in path.read_text("utf-8")
        for node in nodes(path)
        for module in imported_modules(node)
        if module.startswith(concrete)
    }
    assert offenders == set()


def test_nothing_outside_dialects_names_a_concrete_dialect() -> None:
    offenders = {
        (str(path.relative_to(SOURCE)), node.value)
        for path in OUTSIDE
        if any(f'"{word}"' in path.read_text("utf-8") for word in DIALECTS)
        for node in nodes(path)
        if isinstance(node, ast.Constant) and node.value in DIALECTS.keys() - DOMAIN_WORDS
    }
    assert offenders == PAGES


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_what_its_declaration_says(name: str) -> None:
    spec = find_spec(name)
    assert open_dialect(name).name == name
    assert not spec.scheme or not spec.store or store_kind(spec.store)[0] == spec.scheme
    assert set(spec.variables.values()) <= set(Settings.__struct_fields__)


def test_the_default_dialect_exists() -> None:
    assert Settings().dialect == DEFAULT_DIALECT
    assert DEFAULT_DIALECT in DIALECTS


def test_an_unknown_dialect_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(
        SettingsError, match=f"unknown dialect 'latin': use {', '.join(sorted(DIALECTS))}"
    ):
        open_dialect("latin")


@pytest.mark.parametrize("can", ["read", "write", "admin"])
@pytest.mark.parametrize("name", DIALECTS)
def test_instructions_mention_only_tools_that_the_client_has(name: str, can: Capability) -> None:
    dialect, principal = open_dialect(name), Principal(can=can)
    mentioned = set(re.findall(r"\w+", dialect.instructions_for(principal))) & dialect.tools.keys()
    assert mentioned
    assert [item for item in mentioned if not principal.may(dialect.tools[item].needs)] == []
