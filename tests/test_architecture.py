"""Check the shape of the code.

The direction of imports, the single homes, the size of files and functions.

Each test lists its offenders, so one failure shows everything that has to change.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from polymnia.stores.contract import TABLES
from polymnia.stores.sql import read_queries
from tests.groups import EVERY_STORE, MARKED, ONE_AT_A_TIME

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "polymnia"
FILES = sorted(SOURCE.rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))

# A layer may import itself and the layers above it in this list.
LAYERS = [
    {"arguments", "errors", "model", "__init__"},
    {"search", "telemetry"},
    {"disk", "embedders", "stores"},
    {"engine"},
    {"dialects"},
    {"importers", "markdown"},
    {"mcp"},
    {"transports", "auth"},
    {"log_lines", "settings"},
    {"clients", "hooks", "workspace_choice"},
    {"web"},
    {"app"},
    {"api"},
    {"cli", "__main__"},
]
SQLITE_DRIVER_HOMES = {"stores/sqlite", "stores/directory", "search/terms.py"}
# `stores/versioned/tables.py` puts these names together.
TABLE_QUERIES = {f"{verb}_{table}" for verb in ("read", "write") for table in TABLES}
BROAD_EXCEPT_HOME = {"mcp/session.py"}

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 100


def test_imports_point_inward() -> None:
    offenders = [
        f"{name(path)} imports {imported}"
        for path in FILES
        for imported in imported_layers(path)
        # The package offers the names of the API to type checkers, and imports it on first use.
        if level(imported) > level(layer(path)) and name(path) != "__init__.py"
    ]
    assert offenders == []


def test_every_file_starts_with_a_docstring() -> None:
    assert [name(path) for path in FILES if not ast.get_docstring(tree(path))] == []


def test_files_are_short() -> None:
    lengths = {name(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {file: length for file, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    offenders = [
        f"{name(path)}:{function.lineno} {function.name}"
        for path in FILES
        for function in functions(path)
        if length(function) > MAX_FUNCTION_LINES
    ]
    assert offenders == []


def test_only_stores_import_a_concrete_store() -> None:
    offenders = {
        name(path)
        for path in FILES
        if layer(path) != "stores"
        and any(is_concrete_store(module) for module in imported_modules(path))
    }
    assert offenders == set()


def test_only_settings_reads_the_environment() -> None:
    assert {name(path) for path in FILES if {"os.environ", "os.getenv"} & attributes(path)} == {
        "settings.py"
    }


def test_only_the_sqlite_stores_import_the_sqlite_driver() -> None:
    users = [
        path
        for path in FILES
        if "apsw" in {module.split(".")[0] for module in imported_modules(path)}
    ]
    offenders = [
        name(path) for path in users if not {name(path), name(path.parent)} & SQLITE_DRIVER_HOMES
    ]
    assert offenders == []


def test_only_the_postgresql_store_imports_its_driver() -> None:
    users = [
        path
        for path in FILES
        if "psycopg" in {module.split(".")[0] for module in imported_modules(path)}
    ]
    assert users
    assert [name(path) for path in users if name(path.parent) != "stores/postgres"] == []


def test_only_the_command_line_prints() -> None:
    offenders = [
        name(path) for path in FILES if layer(path) != "cli" and "print" in called_names(path)
    ]
    assert offenders == []


def test_only_one_module_has_a_broad_except() -> None:
    assert {name(path) for path in FILES if has_broad_except(path)} == BROAD_EXCEPT_HOME


def test_every_named_query_has_a_reason() -> None:
    offenders = [
        f"{name(file)}: {query}"
        for file in query_files()
        for query in read_queries(file)
        if f"-- name: {query}\n-- " not in file.read_text("utf-8")
    ]
    assert offenders == []


def test_every_named_query_is_used() -> None:
    offenders = [
        f"{name(file)}: {query}"
        for file in query_files()
        for query in read_queries(file)
        if query not in TABLE_QUERIES
        and f'"{query}"' not in source_of(file.parent) + source_of(file.parent.parent / "versioned")
    ]
    assert offenders == []


def test_tests_import_helpers_from_modules_that_are_not_tests() -> None:
    of_a_test = re.compile(
        r"^\s*(from|import) tests\S*\.test_|^\s*from tests\S* import test_", re.M
    )
    assert [path.name for path in TEST_FILES if of_a_test.search(path.read_text("utf-8"))] == []


def test_every_path_in_the_test_groups_exists() -> None:
    listed = {*EVERY_STORE, *ONE_AT_A_TIME, *(path for paths in MARKED.values() for path in paths)}
    assert {path for path in listed if not (ROOT / "tests" / path).exists()} == set()


def name(path: Path) -> str:
    """Return the path below the package, as the lists above spell it."""
    return path.relative_to(SOURCE).as_posix()


def layer(path: Path) -> str:
    """Return the first name below the package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def level(layer_name: str) -> int:
    (found,) = [number for number, names in enumerate(LAYERS) if layer_name in names]
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


@cache
def imported_modules(path: Path) -> list[str]:
    """Return every module that the file imports anywhere, and every name that it imports from one,
    with dots.
    """
    found: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            found.append(node.module or ".")
            found += [f"{node.module or ''}.{alias.name}" for alias in node.names]
    return found


def imported_layers(path: Path) -> set[str]:
    """Return the layers that the file imports.

    `from polymnia import __version__` counts as `__init__`.
    """
    below = [
        module.split(".")[1] for module in imported_modules(path) if module.startswith("polymnia.")
    ]
    known = set().union(*LAYERS)
    return {item if item in known or (SOURCE / item).exists() else "__init__" for item in below}


def is_concrete_store(module: str) -> bool:
    """Tell whether the module is of a store: of a package in stores/ other than the contract."""
    parts = module.split(".")
    if parts[:2] != ["polymnia", "stores"] or len(parts) < 3:
        return False
    return parts[2] != "contract" and (SOURCE / "stores" / parts[2]).is_dir()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def attributes(path: Path) -> set[str]:
    """Return the attributes of plain names that the file uses, and the names that it imports, with
    dots.
    """
    used = {
        f"{node.value.id}.{node.attr}"
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return used | set(imported_modules(path))


def called_names(path: Path) -> set[str]:
    return {
        node.func.id
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def has_broad_except(path: Path) -> bool:
    return any(
        isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
        for node in nodes(path)
    )


def query_files() -> list[Path]:
    return sorted((SOURCE / "stores").glob("*/*.sql"))


@cache
def source_of(package: Path) -> str:
    """Return the text of a package's own modules."""
    return "\n".join(path.read_text("utf-8") for path in package.glob("*.py"))


def test_no_two_migrations_of_a_store_have_the_same_number() -> None:
    for folder in (SOURCE / "stores").glob("*/migrations"):
        numbers = [file.name.partition("_")[0] for file in folder.glob("*.sql")]
        assert len(numbers) == len(set(numbers)), folder
