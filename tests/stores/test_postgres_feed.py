"""The change feed in PostgreSQL.

Other servers are woken at once, but only while somebody follows.
"""

import logging
from queue import Queue
from threading import Event

import psycopg
import pytest

from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import Change, EntityDraft, Note, NoteScope
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from tests.postgres import new_database, new_workspace, shared_server
from tests.processes import TIMEOUT_S
from tests.stores.proxy import proxied

ME = "test"


def test_a_follower_is_woken_by_the_change_of_another_server() -> None:
    url = new_workspace()
    mine, theirs = open_store(url), open_store(url)
    is_woken = Event()
    feed = mine.follow(is_woken.set)
    assert feed() == []
    entities.create(Memory(theirs), [EntityDraft("Ann", "person")], by=ME)
    assert is_woken.wait(TIMEOUT_S)
    assert [change.after.entities[0].name for change in feed()] == ["Ann"]
    for store in (mine, theirs):
        store.close()


def test_a_notification_of_another_program_does_no_harm() -> None:
    url = new_workspace()
    mine, theirs = open_store(url), open_store(url)
    is_woken = Event()
    feed = mine.follow(is_woken.set)
    with psycopg.connect(shared_server(), autocommit=True) as connection:
        connection.execute("NOTIFY polymnia, 'hello'")
    entities.create(Memory(theirs), [EntityDraft("Ann", "person")], by=ME)
    assert is_woken.wait(TIMEOUT_S)
    assert [change.after.entities[0].name for change in feed()] == ["Ann"]
    for store in (mine, theirs):
        store.close()


def test_writers_notify_nobody_while_nobody_follows() -> None:
    with new_database(shared_server()) as database:
        store = open_store(f"{database}?workspace=one")
        memory = Memory(store)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("LISTEN polymnia")
            entities.create(memory, [EntityDraft("Ann", "person")], by=ME)
            assert list(connection.notifies(timeout=0)) == []
            feed = store.follow()
            entities.create(memory, [EntityDraft("Ben", "person")], by=ME)
            (heard,) = connection.notifies(timeout=TIMEOUT_S, stop_after=1)
            assert heard.payload == str(store.workspace)  # type: ignore[attr-defined]  # a PostgresStore
        del feed
        store.close()


def test_a_read_only_store_follows_without_writing() -> None:
    """So a replica can be followed, and a role that may only select."""
    with new_database(shared_server()) as database:
        theirs = open_store(f"{database}?workspace=one")
        replica = "target_session_attrs=any&options=-c%20default_transaction_read_only%3Don"
        mine = open_store(f"{database}?workspace=one&{replica}", read_only=True)
        feed = mine.follow()
        entities.create(Memory(theirs), [EntityDraft("Ann", "person")], by=ME)
        assert [change.after.entities[0].name for change in feed()] == ["Ann"]
        for store in (mine, theirs):
            store.close()


def test_a_feed_misses_nothing_when_its_connection_is_lost() -> None:
    with new_database(shared_server()) as database:
        url = f"{database}?workspace=one"
        mine, theirs = open_store(url), open_store(url)
        is_woken = Event()
        feed = mine.follow(is_woken.set)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'polymnia' AND datname = current_database()"
            )
        for name in ("Ann", "Ben"):
            entities.create(Memory(theirs), [EntityDraft(name, "person")], by=ME)
        assert is_woken.wait(TIMEOUT_S)
        assert [change.after.entities[0].name for change in feed()] == ["Ann", "Ben"]
        for store in (mine, theirs):
            store.close()


def test_a_server_follows_more_workspaces_than_a_directory_has_files_open() -> None:
    with new_database(shared_server()) as database:
        mine, theirs = open_workspaces(database), open_workspaces(f"{database}?timeout=29")
        told: Queue[str] = Queue()

        def listen(workspace: str, _: Change) -> None:
            told.put(workspace)

        names = [f"w{number}" for number in range(40)]
        for name in names:
            mine.create(name)
            mine.follow(listen, lambda: True, name)
        for name in names:
            entities.create(theirs.memory(name), [EntityDraft("Ann", "person")], by=ME)
        assert {told.get(timeout=TIMEOUT_S) for _ in names} == set(names)
        mine.close()
        theirs.close()


def test_a_server_of_many_workspaces_follows_them_again_after_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "polymnia.engine.workspaces")
    with new_database(shared_server()) as database, proxied(database) as (proxy, url):
        theirs = open_store(f"{database}?workspace=one")
        mine = open_workspaces(f"{url}?timeout=1")
        is_told = Event()
        mine.follow(lambda workspace, change: is_told.set(), lambda: True, "one")
        proxy.stall()
        while "cannot be followed" not in caplog.text:
            pass  # the database is out of reach for longer than a call waits
        proxy.resume()
        entities.create(Memory(theirs), [EntityDraft("Ann", "person")], by=ME)
        assert is_told.wait(TIMEOUT_S)
        mine.close()
        theirs.close()


def _abandoned(store: Store) -> list[NoteScope]:
    with store.reading() as read:
        return read.notes.abandoned_sessions()


def test_sessions_of_a_server_that_died_are_swept() -> None:
    """A server is known by a lock that its connection holds."""
    url = new_workspace()
    mine, theirs = open_store(url), open_store(f"{url}&timeout=29")
    scope = NoteScope("one", "ann")
    notes.commit(Memory(theirs), Note("key", "text", scope=scope), by=ME, member="them")
    notes.sweep_sessions(Memory(mine), by=ME)
    assert [item.key for item in notes.page(Memory(mine), scope)] == ["key"]
    theirs.close()
    while not _abandoned(mine):
        pass  # its connection is being closed
    notes.sweep_sessions(Memory(mine), by=ME)
    assert notes.page(Memory(mine), scope) == []
    mine.close()
