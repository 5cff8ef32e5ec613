"""The dialects, and what each declares: default store, variables, flags, port and legacy files."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.errors import SettingsError

if TYPE_CHECKING:
    from polymnia.dialects.base import Dialect, ServerRules

DEFAULT_DIALECT = "native"
DEFAULT_PORT = 8765


class StoreFlag(Struct, frozen=True):
    """A flag that names the store. Without a scheme its value is a file of the dialect."""

    names: tuple[str, ...]
    metavar: str
    help: str
    scheme: str | None = None


class DialectSpec(Struct, frozen=True, kw_only=True):
    """What settings and commands must know of a dialect before it is imported.

    `module` has a `DIALECT` or, if note rules matter to it, a function `make_dialect(rules)`.
    """

    module: str
    # The store if the dialect is chosen by name and no store is.
    store: str
    port: int = DEFAULT_PORT
    # The variable with which its clients' configurations name the store.
    store_variable: str = ""
    # The store scheme of a file that such a variable or flag names and whose suffix says nothing.
    scheme: str = ""
    # Other variables that its clients' configurations set: variable -> setting.
    variables: Mapping[str, str] = {}
    # Flags of its own that name the store: destination -> flag.
    flags: Mapping[str, StoreFlag] = {}
    # The form of other programs' files at the place of its store, for `stores.adopt_legacy`.
    legacy: str = ""


_MEMORY_FILE = {
    "memory_file": StoreFlag(
        ("--memory-file", "-f"), "FILE", "the memory file, in the dialect's own format"
    )
}
_DATA_DIR = {
    "data_dir": StoreFlag(
        ("--data-dir",), "DIR", "a directory of workspaces; same as --store DIR/", "directory"
    )
}

DIALECTS: Mapping[str, DialectSpec] = {
    "graph": DialectSpec(
        module="polymnia.dialects.graph",
        store="memory.mcpmem",
        port=8080,
        store_variable="MEMORY_FILE_PATH",
        scheme="binlog",
        flags=_MEMORY_FILE,
    ),
    # Its own store is the user's data directory. A client that was configured for `reference`
    # keeps its file.
    "native": DialectSpec(
        module="polymnia.dialects.native",
        store="",
        store_variable="MEMORY_FILE_PATH",
        scheme="jsonl",
        flags=_MEMORY_FILE,
    ),
    "project": DialectSpec(
        module="polymnia.dialects.project", store="data/", port=8081, flags=_DATA_DIR
    ),
    "reference": DialectSpec(
        module="polymnia.dialects.reference",
        store="memory.jsonl",
        store_variable="MEMORY_FILE_PATH",
        scheme="jsonl",
        flags=_MEMORY_FILE,
        legacy="json-file",
    ),
    "vault": DialectSpec(
        module="polymnia.dialects.vault",
        store="memory.db",
        store_variable="MEMORY_MCP_DB_PATH",
        scheme="sqlite",
        variables={
            "MEMORY_MCP_SESSION_ID": "session_id",
            "MEMORY_MCP_SESSION_PERSIST": "session_persist",
        },
        legacy="memories-table",
    ),
    "workspace": DialectSpec(module="polymnia.dialects.workspace", store="data/", flags=_DATA_DIR),
}

STORE_FLAGS: Mapping[str, StoreFlag] = {
    name: flag for spec in DIALECTS.values() for name, flag in spec.flags.items()
}


def find_spec(name: str) -> DialectSpec:
    """Return the declaration of a dialect. Raise SettingsError if it does not exist."""
    if name not in DIALECTS:
        raise SettingsError(f"unknown dialect {name!r}: use {', '.join(sorted(DIALECTS))}")
    return DIALECTS[name]


def open_dialect(name: str, rules: "ServerRules | None" = None) -> "Dialect":
    """Import a dialect, with the server's rules. Raise SettingsError if it does not exist."""
    module = import_module(find_spec(name).module)
    if rules is not None and hasattr(module, "make_dialect"):
        made: Dialect = module.make_dialect(rules)
        return made
    dialect: Dialect = module.DIALECT
    return dialect
