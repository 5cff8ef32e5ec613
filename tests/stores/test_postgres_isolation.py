"""Workspaces in one database.

What belongs to one is invisible to the others, even for a role that goes around us.
"""

from collections.abc import Iterator
from struct import pack
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from polymnia.engine import notes
from polymnia.engine.graph import entities, facts
from polymnia.engine.history import trash
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import BadInput, StoreError, StoreSealed, WorkspaceArchived, WorkspaceNotFound
from polymnia.model import ChangeQuery, EntityDraft, FactAddition, Note, PassageKind
from polymnia.search.fulltext import TextQuery
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.contract import Catalogue
from polymnia.stores.postgres.catalogue import migrate_schema
from polymnia.stores.postgres.store import PostgresStore
from tests.postgres import new_database, shared_server

ME = "test"
PASSWORD = "app"
KINDS: tuple[PassageKind, ...] = ("fact",)


@pytest.fixture
def database() -> Iterator[str]:
    with new_database(shared_server()) as url:
        yield url


@pytest.fixture
def catalogue(database: str) -> Iterator[Catalogue]:
    catalogue = open_catalogue(database)
    assert catalogue is not None
    yield catalogue
    catalogue.close()


@pytest.fixture
def application(database: str) -> Iterator[str]:
    """Yield the URL of a role that may use the tables and owns none of them, as servers should."""
    role = f"app_{urlsplit(database).path[1:]}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), PASSWORD)
        )
        migrate_schema(database, grant_to=role)
        yield database.replace(urlsplit(database).netloc.partition("@")[0], f"{role}:{PASSWORD}")
        connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def memory_in(catalogue: Catalogue, name: str) -> Memory:
    catalogue.create(name)
    return Memory(catalogue.open(name))


def names(memory: Memory) -> list[str]:
    return [entity.name for entity in entities.read_all(memory).entities]


@pytest.mark.parametrize("row_security", ["off", "on"])
def test_workspaces_do_not_see_one_another(
    database: str, application: str, row_security: str
) -> None:
    open_store(f"{database}?row_security={row_security}").close()
    catalogue = open_catalogue(application)
    assert catalogue is not None
    one, two = memory_in(catalogue, "one"), memory_in(catalogue, "two")
    entities.create(one, [EntityDraft("Ann", "person", ("tea",))], by=ME)
    notes.commit(one, Note("plan", "tea"), by=ME)
    assert (names(one), names(two)) == (["Ann"], [])
    for memory in (one, two):
        with memory.reading() as read:
            found = (
                read.candidates(["tea"], 10),
                read.containing("tea"),
                read.passages_containing("ea", 10),
                read.match(TextQuery(("tea",)), KINDS),
                read.vocabulary("tea", "teb", 10),
                read.history.changes(ChangeQuery(limit=None))[::-1],
                read.counts().entities,
            )
        assert [bool(item) for item in found] == [memory is one] * 7
    assert entities.delete(two, ["Ann"], by=ME).entities == []
    assert names(one) == ["Ann"]
    for memory in (one, two):
        assert memory.store.check() == []
        memory.store.close()
    catalogue.close()


def test_an_archived_workspace_cannot_be_read_or_written_until_it_is_restored(
    catalogue: Catalogue,
) -> None:
    memory = memory_in(catalogue, "one")
    entities.create(memory, [EntityDraft("Ann", "person")], by=ME)
    archived = catalogue.update("one", status="archived")
    assert (archived.status, bool(catalogue.find_open({"one": memory.store}))) == (
        "archived",
        False,
    )
    with pytest.raises(WorkspaceArchived):
        catalogue.open("one")
    with pytest.raises(StoreSealed):
        entities.create(memory, [EntityDraft("Ben", "person")], by=ME)
    assert catalogue.update("one", status="active").status == "active"
    assert not bool(catalogue.find_open({"one": memory.store}))
    again = Memory(catalogue.open("one"))
    assert (names(again), bool(catalogue.find_open({"one": again.store}))) == (["Ann"], True)
    for item in (memory, again):
        item.store.close()


def test_a_deleted_workspace_leaves_no_rows(catalogue: Catalogue, database: str) -> None:
    memory = memory_in(catalogue, "one")
    entities.create(memory, [EntityDraft("Ann", "person", ("tea",))], by=ME)
    facts.add(memory, [FactAddition("Ann", ("milk",))], by=ME, skip_repeats=False)
    notes.commit(memory, Note("plan", "tea", ("t",)), by=ME)
    trash.purge(memory, days=-1)
    memory.store.follow()
    catalogue.delete("one")
    memory.store.close()
    with pytest.raises(WorkspaceNotFound):
        catalogue.find("one")
    with psycopg.connect(database) as connection:
        tables = connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class AS c "
            "JOIN pg_attribute AS a ON a.attrelid = c.oid "
            "WHERE a.attname = 'workspace_id' AND c.relkind IN ('r', 'p') "
            "AND c.relnamespace = 'polymnia'::regnamespace"
        ).fetchall()
        left = {
            table: connection.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.SQL(table))
            ).fetchall()[0][0]
            for (table,) in tables
        }
    assert {table: count for table, count in left.items() if count} == {}


def test_names_are_unique_whatever_their_case(catalogue: Catalogue) -> None:
    catalogue.create("Alpha")
    catalogue.create("beta")
    with pytest.raises(BadInput, match="there is a project Alpha already"):
        catalogue.create("ALPHA")
    with pytest.raises(BadInput, match="there is a project Alpha already"):
        catalogue.update("beta", new_name="alpha")
    assert catalogue.update("Alpha", new_name="ALPHA").name == "ALPHA"
    assert catalogue.update("beta", description="the second").description == "the second"
    assert [item.name for item in catalogue.find_all()] == ["ALPHA", "beta"]


def test_the_workspaces_of_a_server_are_those_of_the_database(
    catalogue: Catalogue, database: str
) -> None:
    catalogue.create("one")
    other = open_catalogue(database)
    assert other is not None
    workspaces = Workspaces(other)
    entities.create(workspaces.memory("one"), [EntityDraft("Ann", "person")], by=ME)
    catalogue.update("one", new_name="two")
    assert names(workspaces.memory("two")) == ["Ann"]
    catalogue.update("two", status="archived")
    with pytest.raises(WorkspaceArchived):
        workspaces.memory("two")
    workspaces.close()


def test_row_security_binds_a_role_that_goes_around_the_application(
    database: str, application: str
) -> None:
    open_store(f"{database}?row_security=on").close()
    store = open_store(f"{application}?workspace=one")
    memory = Memory(store)
    entities.create(memory, [EntityDraft("Ann", "person", ("tea",))], by=ME)
    other = open_store(f"{application}?workspace=two")
    entities.create(Memory(other), [EntityDraft("Ben", "person", ("milk",))], by=ME)
    assert (names(memory), names(Memory(other))) == (["Ann"], ["Ben"])
    with psycopg.connect(
        application, autocommit=True, options="-c search_path=polymnia,public"
    ) as connection:
        for table in ("cards", "observations", "words", "changes", "workspaces"):
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            with pytest.raises(psycopg.errors.UndefinedObject, match=r"polymnia\.workspace"):
                connection.execute(query)
        (one,) = connection.execute(
            "SELECT workspace_id FROM catalogue WHERE name = 'one'"
        ).fetchall()
        with connection.transaction():
            connection.execute("SELECT set_config('polymnia.workspace', %s, true)", [str(one[0])])
            assert connection.execute("SELECT name FROM cards").fetchall() == [("Ann",)]
            assert connection.execute("DELETE FROM relations RETURNING 1").fetchall() == []
            for call in (
                "matching_words(%s, 'milk')",
                "matching_texts(%s, '%%milk%%', '{observation}')",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                    connection.execute(f"SELECT * FROM {call}", [one[0] + 1])
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute("UPDATE cards SET workspace_id = workspace_id + 1")
    for item in (store, other):
        assert item.check() == []
        item.close()


def test_a_command_that_only_reads_does_not_ignore_row_security(application: str) -> None:
    with pytest.raises(StoreError, match="row-level security is off"):
        open_catalogue(f"{application}?row_security=on", read_only=True)


def test_row_security_is_switched_while_servers_run(database: str, application: str) -> None:
    memory = Memory(open_store(f"{application}?workspace=one&timeout=20"))
    entities.create(memory, [EntityDraft("Ann", "person")], by=ME)
    for switch in ("on", "off"):
        open_store(f"{database}?workspace=one&row_security={switch}").close()
        assert names(memory) == ["Ann"]
        entities.create(memory, [EntityDraft(switch, "thing")], by=ME)
        entities.delete(memory, [switch], by=ME)
    with psycopg.connect(application) as connection:
        assert connection.execute(
            "SELECT count(*) FROM polymnia.cards WHERE until IS NULL"
        ).fetchall() == [(1,)]
    memory.store.close()


def test_a_server_without_rights_to_the_schema_indexes_vectors_for_itself_alone(
    database: str, application: str
) -> None:
    open_store(f"{database}?row_security=on").close()
    store = open_store(f"{application}?workspace=one")
    assert isinstance(store, PostgresStore)
    drafts = [EntityDraft("Ann", "person", ("tea", "coffee", "water"))]
    entities.create(Memory(store), drafts, by=ME)
    model = store.vectors.add_model("made", "none", 2).number
    store.vector_indexes.indexed_from = 2
    with store.reading() as read:
        passages = [passage for passage, _ in read.vectors.pending(model, 3)]
    vectors = [pack("<2f", 1.0, float(number)) for number in range(3)]
    store.vectors.put(model, list(zip(passages, vectors, strict=True)))
    store.vector_indexes.wait()
    with store.reading() as read:
        assert list(read.vectors.nearest(model, vectors[2], 1)) == [passages[2]]
    near = f"polymnia.near_{store.workspace}_{model}_1"
    with psycopg.connect(database) as owner, psycopg.connect(application) as server:
        count = f"SELECT count(*) FROM {near}"
        assert owner.execute(count).fetchall() == [(3,)]
        with pytest.raises(errors.InsufficientPrivilege):
            server.execute(count)
    store.close()


def test_workspaces_that_are_read_together_are_apart(database: str, application: str) -> None:
    open_store(f"{database}?row_security=on").close()
    stores = [open_store(f"{application}?workspace={name}") for name in ("one", "two")]
    for store, name in zip(stores, ("Ann", "Ben"), strict=True):
        entities.create(Memory(store), [EntityDraft(name, "person", ("tea",))], by=ME)
    with stores[0].reading() as one, stores[1].reading() as two:
        first, second, both = one.together(
            lambda: [entity.name for entity in one.outlines()],
            lambda: [entity.name for entity in two.outlines()],
            lambda: one.existing_names(["Ann", "Ben"]) | two.existing_names(["Ann", "Ben"]),
        )
        assert "Ann" in first and "Ben" not in first
        assert "Ben" in second and "Ann" not in second
        assert both == {"Ann", "Ben"}
    for store in stores:
        store.close()


def test_a_change_before_the_first_is_no_change_of_another_workspace(catalogue: Catalogue) -> None:
    stores = []
    for name in ("first", "second"):
        catalogue.create(name)
        stores.append(catalogue.open(name))
    entities.create(Memory(stores[0]), [EntityDraft("A", "t")], by="another")
    with stores[1].reading() as read:
        changes = read.history.changes(ChangeQuery(after=-5))
    for store in stores:
        store.close()
    assert changes == []
