"""The shape of the house: which way imports point, who may touch what, how long things get."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.stores.sql import load_queries

SOURCE = Path(__file__).parent.parent / "src" / "polymnia"
FILES = sorted(SOURCE.rglob("*.py"))

# Each layer may import those above it and itself.
LAYERS = [
    {"errors", "model", "__init__"},
    {"search"},
    {"disk", "embedders", "stores"},
    {"engine"},
    {"dialects"},
    {"mcp"},
    {"transports", "auth", "web"},
    {"settings"},
    {"app"},
    {"cli", "__main__"},
]
ALLOWED_BROAD_EXCEPT = {"mcp/session.py"}


def part(path: Path) -> str:
    """The first name below the package: what a layer is called."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def level(name: str) -> int:
    (found,) = [number for number, layer in enumerate(LAYERS) if name in layer]
    return found


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported_parts(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "polymnia":
            below = (node.module or "").split(".")[1:]
            yield from below[:1] or [each.name if (SOURCE / each.name).exists() else "__init__" for each in node.names]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_inward(path: Path) -> None:
    outward = [each for each in imported_parts(path) if level(each) > level(part(path))]
    assert outward == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_says_first_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_stay_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400
    long = [each.name for each in functions(path) if (each.end_lineno or 0) - each.lineno >= 50]
    assert long == []


def users_of(module: str, *attributes: str) -> set[str]:
    """The files that use one of the module's attributes, or import the module at all when none is named."""
    found = set()
    for path in FILES:
        text = path.read_text("utf-8")
        if attributes and any(f"{module}.{attribute}" in text for attribute in attributes):
            found.add(str(path.relative_to(SOURCE)))
        if not attributes and (f"import {module}" in text or f"from {module}" in text):
            found.add(str(path.relative_to(SOURCE)))
    return found


def test_only_settings_reads_the_environment() -> None:
    assert users_of("os", "environ", "getenv") == {"settings.py"}


def test_the_sqlite_driver_stays_in_its_store() -> None:
    assert {name.rsplit("/", 1)[0] for name in users_of("apsw")} == {"search", "stores/sqlite", "stores/directory"}


def test_only_the_command_line_prints() -> None:
    printers = {
        str(path.relative_to(SOURCE))
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert {name.split("/")[0] for name in printers} == {"cli"}


def test_there_is_one_broad_except() -> None:
    broad = {
        str(path.relative_to(SOURCE))
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    }
    assert broad == ALLOWED_BROAD_EXCEPT


@pytest.mark.parametrize("package", ["sqlite", "directory"])
def test_every_named_query_says_why_and_is_used(package: str) -> None:
    used = "\n".join(path.read_text("utf-8") for path in (SOURCE / "stores" / package).glob("*.py"))
    text = (SOURCE / "stores" / package / "queries.sql").read_text("utf-8")
    for name in load_queries(SOURCE / "stores" / package):
        assert f'"{name}"' in used, name
        assert f"-- name: {name}\n-- " in text, name
