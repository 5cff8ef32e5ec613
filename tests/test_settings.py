"""Settings: which source has precedence, where the memory is, and what errors say."""

from pathlib import Path

import pytest

from polymnia.dialects import DIALECTS
from polymnia.errors import SettingsError
from polymnia.model import GroupRights
from polymnia.settings import Settings, load_settings


def load(flags: dict[str, object] | None = None, /, **environment: str) -> Settings:
    return load_settings(flags, {"HOME": "/home/someone", "XDG_DATA_HOME": "/data", **environment})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_by_default_the_memory_is_in_the_data_directory() -> None:
    settings = load()
    assert (settings.dialect, settings.store) == ("native", "/data/polymnia/workspaces/")


def test_a_single_file_from_earlier_is_still_used(tmp_path: Path) -> None:
    file = tmp_path / "polymnia" / "memory.db"
    file.parent.mkdir()
    file.touch()
    assert load(XDG_DATA_HOME=str(tmp_path)).store == str(file)
    (file.parent / "workspaces").mkdir()
    assert load(XDG_DATA_HOME=str(tmp_path)).store == f"{file.parent}/workspaces/"


def test_the_reference_dialect_chosen_by_name_uses_its_own_file() -> None:
    assert load({"dialect": "reference"}).store == "memory.jsonl"


@pytest.mark.parametrize(
    "path",
    ["/tmp/custom.jsonl", "data/graph.jsonl", "/old/memory.json", "/else/memory.db", "/a/b.mcpmem"],
)
def test_the_reference_variable_names_the_file(path: str) -> None:
    assert load({"dialect": "reference"}, MEMORY_FILE_PATH=path).store == path
    assert load(MEMORY_FILE_PATH=path).store == path


def test_a_file_in_the_reference_variable_without_a_known_suffix_is_json_lines() -> None:
    assert load(MEMORY_FILE_PATH="/some/file.txt").store == "jsonl:/some/file.txt"


def test_flags_override_variables_and_variables_override_the_file(config: Path) -> None:
    config.write_text('store = "file.db"\nlog_level = "error"\n')
    here = {"POLYMNIA_CONFIG": str(config)}
    assert load(**here).store == "file.db"
    assert load(**here, MEMORY_FILE_PATH="inherited.jsonl").store == "inherited.jsonl"
    assert (
        load(**here, MEMORY_FILE_PATH="inherited.jsonl", POLYMNIA_STORE="variable.db").store
        == "variable.db"
    )
    assert load({"store": "flag.db"}, **here, POLYMNIA_STORE="variable.db").store == "flag.db"
    assert load(**here).log_level == "error"
    assert load(**here, POLYMNIA_LOG_LEVEL="info").log_level == "info"


def test_the_graph_dialect_uses_its_own_file() -> None:
    graph: dict[str, object] = {"dialect": "graph"}
    assert load(graph).store == "memory.mcpmem"
    assert load(graph, MEMORY_FILE_PATH="notes.data").store == "binlog:notes.data"
    assert (
        load({**graph, "memory_file": "my-memory.bin"}, MEMORY_FILE_PATH="other.bin").store
        == "my-memory.bin"
    )


def test_the_vault_dialect_uses_its_own_file() -> None:
    vault: dict[str, object] = {"dialect": "vault"}
    assert load(vault).store == "memory.db"
    assert load(vault, MEMORY_MCP_DB_PATH="/data/agent.sqlite").store == "/data/agent.sqlite"
    assert load(vault, MEMORY_MCP_DB_PATH="/data/agent").store == "sqlite:/data/agent"
    assert load(MEMORY_MCP_DB_PATH="/data/agent.db").store == "/data/polymnia/workspaces/"


def test_our_variables_override_those_of_the_vault_dialect() -> None:
    theirs = {"MEMORY_MCP_SESSION_ID": "one", "MEMORY_MCP_SESSION_PERSIST": "true"}
    settings = load(**theirs)
    assert (settings.session_id, settings.session_persist, settings.embedding_dimension) == (
        "one",
        True,
        1536,
    )
    settings = load(**theirs, POLYMNIA_SESSION_ID="two", POLYMNIA_EMBEDDING_DIMENSION="384")
    assert (settings.session_id, settings.embedding_dimension) == ("two", 384)
    with pytest.raises(SettingsError):
        load(POLYMNIA_EMBEDDING_DIMENSION="0")


def test_a_file_flag_overrides_a_store_variable() -> None:
    assert load({"memory_file": "flag.jsonl"}, POLYMNIA_STORE="variable.db").store == "flag.jsonl"


def test_the_project_dialect_uses_a_directory_and_its_own_port() -> None:
    project: dict[str, object] = {"dialect": "project"}
    assert (load(project).store, load(project).address) == ("data/", "127.0.0.1:8081")
    assert load({**project, "data_dir": "./elsewhere"}).store == "directory:./elsewhere"
    assert load({**project, "data_dir": "a", "store": "b.db"}).store == "b.db"
    assert load({**project, "data_dir": "a"}, POLYMNIA_STORE="b.db").store == "directory:a"


def test_variables_can_hold_numbers() -> None:
    assert load(POLYMNIA_MAX_MESSAGE_BYTES="1000").max_message_bytes == 1000
    assert load(POLYMNIA_TRASH_DAYS="30").trash_days == 30


def test_a_broken_settings_file_is_a_clear_error(config: Path) -> None:
    config.write_text("store = ")
    with pytest.raises(SettingsError):
        load(POLYMNIA_CONFIG=str(config))


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"MEMORY_MCP_SESSION_PERSIST": "yes"},
            "MEMORY_MCP_SESSION_PERSIST: expected true or false, got 'yes'",
        ),
        ({"POLYMNIA_TRASH_DAYS": "many"}, "POLYMNIA_TRASH_DAYS: expected an integer, got 'many'"),
        ({"POLYMNIA_TRASH_DAYS": "-1"}, "POLYMNIA_TRASH_DAYS: expected an integer >= 0, got '-1'"),
        (
            {"POLYMNIA_TRANSPORT": "pigeon"},
            "POLYMNIA_TRANSPORT: 'pigeon' is not one of http, stdio, tcp",
        ),
        (
            {"POLYMNIA_DIALECT": "latin"},
            f"POLYMNIA_DIALECT: unknown dialect 'latin': use {', '.join(sorted(DIALECTS))}",
        ),
    ],
)
def test_a_wrong_value_names_its_variable(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**environment)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colour = 1", "colour: there is no such setting"),
        ("max_message_bytes = 'many'", "max_message_bytes: expected an integer, got 'many'"),
        ("dialects = ['graph', 1]", "dialects: expected a string, got ['graph', 1]"),
    ],
)
def test_a_wrong_value_names_the_settings_file(config: Path, text: str, sentence: str) -> None:
    config.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(POLYMNIA_CONFIG=str(config))
    assert str(caught.value) == f"{config}: {sentence}"


def test_a_wrong_value_names_its_flag() -> None:
    with pytest.raises(SettingsError, match=r"^--port: expected an integer or null, got 'x'$"):
        load({"port": "x"})


def test_groups_are_a_table_in_the_file_and_json_in_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[groups.staff]\ncan = "write"\nworkspaces = ["shop"]\n')
    expected = {"staff": GroupRights(can="write", workspaces=("shop",))}
    assert load(POLYMNIA_CONFIG=str(file)).groups == expected
    text = '{"staff": {"can": "write", "workspaces": ["shop"]}}'
    assert load(POLYMNIA_GROUPS=text).groups == expected
    with pytest.raises(SettingsError, match="POLYMNIA_GROUPS: not JSON"):
        load(POLYMNIA_GROUPS="staff")


@pytest.mark.parametrize(
    ("language", "embedder"),
    [
        ("de_DE.UTF-8", "multilingual"),
        ("cs_CZ", "multilingual"),
        ("en_GB.UTF-8", "local"),
        ("C.UTF-8", "local"),
    ],
)
def test_the_multilingual_model_is_used_where_another_language_is_spoken(
    language: str, embedder: str
) -> None:
    assert load_settings({}, {"LANG": language}).embedder == embedder
    assert load_settings({}, {"LANG": language, "POLYMNIA_EMBEDDER": "none"}).embedder == "none"
