"""Settings: defaults, then the settings file, then the environment (read nowhere else), then flags."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from polymnia.errors import SettingsError

_PREFIX = "POLYMNIA_"
DEFAULT_DIALECT = "reference"
# Where a dialect that was asked for by name keeps its memory when no store was.
_OWN_STORE = {"graph": "memory.mcpmem", "project": "data/", "reference": "memory.jsonl", "vault": "memory.db"}
# The variable its clients' configurations already set.
_OWN_VARIABLE = {"graph": "MEMORY_FILE_PATH", "reference": "MEMORY_FILE_PATH", "vault": "MEMORY_MCP_DB_PATH"}
# And the format it is in there, when its ending does not tell.
_OWN_SCHEME = {"graph": "binlog", "reference": "jsonl", "vault": "sqlite"}
# The port its clients' configurations already name.
_OWN_PORT = {"graph": 8080, "project": 8081, "workspace": 8765}
_PORT = 8765
# Settings with several values; in a variable they are separated by commas.
_LISTS = ("dialects", "allow_hosts", "allow_origins")
# Settings whose variables some clients' configurations already set under another name.
_ALSO_CALLED = {"session_id": "MEMORY_MCP_SESSION_ID", "session_persist": "MEMORY_MCP_SESSION_PERSIST"}
_ENDINGS = (".jsonl", ".json", ".db", ".sqlite", ".sqlite3", ".mcpmem", ".bin")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be chosen, as it was."""

    dialect: str = DEFAULT_DIALECT
    store: str = ""
    transport: Literal["stdio", "tcp", "http"] = "stdio"
    bind: str = ""
    port: int | None = None
    dialects: tuple[str, ...] = ()
    workspace: str = ""
    read_only: bool = False
    insecure: bool = False
    tokens: str = ""
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    public_url: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_key: str = ""
    metrics: bool = False
    workers: int = 1
    max_sessions: int = 10_000
    session_minutes: int = 30
    log_level: str = "warning"
    max_message_bytes: int = 64 * 1024 * 1024
    session_id: str = ""
    session_persist: bool = False
    embedding_dimension: Annotated[int, Meta(ge=1)] = 1536
    trash_days: Annotated[int, Meta(ge=0)] = 0
    embedder: str = "local"
    embedder_key: str = ""

    @property
    def address(self) -> str:
        """HOST:PORT to listen on, each part from where it was given."""
        host, colon, port = self.bind.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = self.bind, ""
        if self.port is not None:
            port = str(self.port)
        return f"{host or '127.0.0.1'}:{port or _OWN_PORT.get(self.dialect, _PORT)}"


def load_settings(flags: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this run, the store among them. Raises SettingsError."""
    environment = os.environ if environment is None else environment
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    chosen = {**_from_file(environment), **_from_environment(environment), **given}
    chosen["store"] = _store(chosen, given, environment)
    for other in ("memory_file", "data_dir"):
        chosen.pop(other, None)
    for name in _LISTS:
        if isinstance(chosen.get(name), str):
            chosen[name] = [each.strip() for each in chosen[name].split(",") if each.strip()]
    try:
        return convert(chosen, Settings, strict=False)
    except ValidationError as exc:
        raise SettingsError(f"settings: {exc}") from exc


def _store(chosen: Mapping[str, Any], given: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The first of the places a store can be named in, nearest first."""
    dialect = chosen.get("dialect") or DEFAULT_DIALECT
    places = (
        given.get("store"),
        f"directory:{given['data_dir']}" if given.get("data_dir") else None,
        _own_file(dialect, given.get("memory_file", "")),
        environment.get(f"{_PREFIX}STORE"),
        _own_file(dialect, environment.get(_OWN_VARIABLE.get(dialect, ""), "")),
        chosen.get("store"),
        _OWN_STORE.get(dialect) if "dialect" in chosen else None,
    )
    return next((place for place in places if place), str(_data_file(environment)))


def _own_file(dialect: str, path: str) -> str:
    """A file named in the dialect's own way: in its own format, whatever the ending, unless it is one we know."""
    if not path or Path(path).suffix.lower() in _ENDINGS or dialect not in _OWN_SCHEME:
        return path
    return f"{_OWN_SCHEME[dialect]}:{path}"


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {variable: name for name, variable in _ALSO_CALLED.items()}
    names |= {f"{_PREFIX}{name.upper()}": name for name in Settings.__struct_fields__}
    return {name: environment[variable] for variable, name in names.items() if environment.get(variable)}


def _from_file(environment: Mapping[str, str]) -> dict[str, Any]:
    path = Path(environment.get(f"{_PREFIX}CONFIG") or _config_directory(environment) / "config.toml")
    if not path.is_file():
        return {}
    import tomllib  # only where there is a file to read

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise SettingsError(f"{path}: {exc}") from exc


def _data_file(environment: Mapping[str, str]) -> Path:
    return _place(environment, "XDG_DATA_HOME", ".local/share") / "memory.db"


def _config_directory(environment: Mapping[str, str]) -> Path:
    return _place(environment, "XDG_CONFIG_HOME", ".config")


def _place(environment: Mapping[str, str], variable: str, under_home: str) -> Path:
    """The user's directory of that kind, as the platform has it."""
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "polymnia"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/polymnia"
    return Path(environment.get(variable) or Path.home() / under_home) / "polymnia"
