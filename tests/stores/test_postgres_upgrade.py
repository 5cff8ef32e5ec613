"""Two versions on one database, and the schema upgraded by a role of its own.

The later version is a copy of this one with one more migration: nothing was released before it.
"""

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

import polymnia
from polymnia.auth.authenticator import tokens_of
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError, StoreTooNew
from polymnia.model import EntityDraft, Mark
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.postgres import database
from polymnia.stores.postgres.schema import newest_schema
from tests.processes import TIMEOUT_S, Log, polymnia_command
from tests.transports.running import Running, Talk, creation

LATER = 9000
ADDITIVE = f"-- usable by: {newest_schema()}\nALTER TABLE marks ADD COLUMN colour text;\n"
INDEXED = "CREATE UNIQUE INDEX IF NOT EXISTS marks_at ON polymnia.marks (workspace_id, name, at);\n"
CONTRACTING = "ALTER TABLE marks RENAME COLUMN name TO title;\n"
OWNER_RIGHTS = "GRANT CREATE ON DATABASE {} TO {}"


def later_version(directory: Path, migration: str) -> dict[str, str]:
    """Make a later version of the program; return the environment that runs it."""
    package = directory / "polymnia"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(polymnia.__file__).parent, package, ignore=ignored)
    file = package / "stores" / "postgres" / "migrations" / f"{LATER}_later.sql"
    file.write_text(migration, encoding="utf-8")
    return {"PYTHONPATH": str(directory)}


def migrate_schema(
    url: str, *flags: str, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    command = polymnia_command("migrate-schema", "--store", url, *flags)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment
    )


def test_two_versions_use_one_database_at_once(postgres_database: str, tmp_path: Path) -> None:
    later = later_version(tmp_path, ADDITIVE)
    with Running(postgres_database) as old:
        before = Talk(old.port)
        before.call("create_entities", **creation("Ann"))
        with Running(postgres_database, settings=later) as new:
            after = Talk(new.port)
            before.call("create_entities", **creation("Ben"))
            after.call("create_entities", **creation("Eve"))
            names = [
                [node["name"] for node in talk.call("read_graph")["structuredContent"]["entities"]]
                for talk in (before, after)
            ]
            assert names == [["Ann", "Ben", "Eve"]] * 2
            after.close()
        before.close()
    # The old version can also be started again, as when its host restarts or the upgrade is taken
    # back.
    with closing(open_store(postgres_database)) as store, store.reading() as read:
        assert read.counts().entities == 3
    checked = migrate_schema(postgres_database, "--check", "--json")
    assert json.loads(checked.stdout) == {
        "before": LATER,
        "schema": LATER,
        "known": newest_schema(),
        "usable_by": newest_schema(),
        "usable": True,
    }


def test_calls_go_on_while_a_migration_waits_for_a_reader(
    postgres_database: str, tmp_path: Path
) -> None:
    store = open_store(postgres_database)
    memory = Memory(store)
    later = later_version(tmp_path, ADDITIVE + INDEXED)
    command = polymnia_command("migrate-schema", "--store", postgres_database)
    with psycopg.connect(postgres_database) as reader:
        reader.execute("SELECT count(*) FROM polymnia.marks").fetchall()  # and stays idle
        migration = subprocess.Popen(command, stderr=subprocess.PIPE, env=later)
        said = Log(migration.stderr)
        said.wait_for("trying again")
        entities.create(memory, [EntityDraft("Ann", "person")], by="test")
        with store.writing() as writer:
            writer.history.set_mark("seen", Mark(1, 1))
    said.join()
    assert migration.wait(TIMEOUT_S) == 0
    with psycopg.connect(postgres_database) as connection:
        index = connection.execute("SELECT to_regclass('polymnia.marks_at')::text").fetchall()
    assert index == [("polymnia.marks_at",)]
    store.close()


def test_a_running_old_version_stops_with_a_sentence_when_the_schema_is_contracted(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres_database)
    memory = Memory(store)
    entities.create(memory, [EntityDraft("Ann", "person")], by="test")
    done = migrate_schema(postgres_database, environment=later_version(tmp_path, CONTRACTING))
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr(database, "_SCHEMA_CHECK_S", -1.0)
    with pytest.raises(StoreTooNew, match=f"schema {LATER}.*upgrade polymnia"):
        entities.read_all(memory)
    with pytest.raises(StoreTooNew):
        entities.create(memory, [EntityDraft("Ben", "person")], by="test")
    store.close()
    with pytest.raises(StoreTooNew):
        open_store(postgres_database)
    assert migrate_schema(postgres_database, "--check").returncode == 1


@pytest.fixture
def roles(postgres_database: str) -> Iterator[tuple[str, str]]:
    """URLs of a role that may create tables, and of one that may not."""
    names = [f"owner_{secrets.token_hex(4)}", f"server_{secrets.token_hex(4)}"]
    password = secrets.token_hex(8)
    parts = urlsplit(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as superuser:
        for name in names:
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            superuser.execute(statement.format(sql.Identifier(name), sql.Literal(password)))
        granted = sql.SQL(OWNER_RIGHTS).format(
            sql.Identifier(parts.path.lstrip("/")), sql.Identifier(names[0])
        )
        superuser.execute(granted)
        host = parts.netloc.rpartition("@")[2]
        yield (
            parts._replace(netloc=f"{names[0]}:{password}@{host}").geturl(),
            parts._replace(netloc=f"{names[1]}:{password}@{host}").geturl(),
        )
        for name in names:
            superuser.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
            superuser.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_the_schema_is_upgraded_by_its_own_role_and_servers_need_no_right_to_change_it(
    postgres_database: str, roles: tuple[str, str]
) -> None:
    owner, server = roles
    refused = migrate_schema(owner)
    assert refused.returncode == 1
    assert "run `CREATE EXTENSION vector;" in refused.stderr
    with psycopg.connect(postgres_database) as superuser:
        for name in ("vector", "pg_trgm", "btree_gin"):
            superuser.execute(sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(name)))
    with pytest.raises(StoreError, match=r"schema 0 and needs .* `polymnia migrate-schema`"):
        open_store(server)

    migrated = migrate_schema(owner, "--grant", urlsplit(server).username or "")
    assert migrated.returncode == 0, migrated.stderr
    assert f"migrated from schema 0 to {newest_schema()}" in migrated.stdout

    catalogue = open_catalogue(server)
    assert catalogue is not None
    catalogue.create("shop")
    catalogue.close()
    memory = Memory(open_store(f"{server}?workspace=shop"))
    entities.create(memory, [EntityDraft("Ann", "person", ("likes tea",))], by="test")
    assert entities.read_all(memory).entities[0].texts == ("likes tea",)
    memory.store.close()
    tokens = tokens_of(server)
    assert tokens is not None
    with closing(tokens):
        assert tokens.recognise(tokens.create("alice", can="read")).name == "alice"
