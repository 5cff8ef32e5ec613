"""Processes that change the same entities of one workspace at once, and what must be true
afterwards.

    python -m tests.stores.postgres_load --processes 8 --operations 1000 [--faults] [--row-security]

It starts a server of its own; POLYMNIA_TEST_POSTGRES_PROGRAMS names the programs of another
version. With --faults, backends are killed and the server is restarted meanwhile. With
--row-security, the processes use a role that row-level security binds.
"""

import argparse
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from urllib.parse import urlsplit

import psycopg
from msgspec import Struct, json
from psycopg import sql

from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError, StoreUnavailable
from polymnia.model import Change, ChangeQuery, EntityDraft, FactAddition, Relation
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from polymnia.stores.postgres.catalogue import migrate_schema
from tests.postgres import PostgresServer, running_server
from tests.processes import end_with_parent

ROOT = Path(__file__).parent.parent.parent
NAMES = [f"entity {number}" for number in range(10)]


class Outcome(Struct):
    """What one process was told.

    Texts and relations that were added, and texts that were removed.
    """

    added: list[str] = []
    removed: list[str] = []
    linked: list[tuple[str, str, str]] = []
    failures: int = 0


def prepare(url: str) -> None:
    """Create the workspace with the entities that the processes change."""
    store = open_store(url)
    entities.create(Memory(store), [EntityDraft(name, "thing") for name in NAMES], by="test")
    store.close()


def _protected(owner: str) -> str:
    """Switch row-level security on; return the URL of a role that it binds."""
    role, password = "load", secrets.token_hex(8)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), password)
        )
    migrate_schema(owner, grant_to=role)
    open_store(f"{owner}?row_security=on").close()
    parts = urlsplit(owner)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{password}@{host}").geturl()


def run_load(url: str, *, processes: int, operations: int) -> list[Outcome]:
    """Run the processes to their end, and return what each was told."""
    command = [
        sys.executable,
        "-m",
        "tests.stores.postgres_load",
        "--worker",
        url,
        "--operations",
        str(operations),
    ]
    running = [
        subprocess.Popen(
            [*command, "--number", str(number)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            preexec_fn=end_with_parent,
        )
        for number in range(processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return [json.decode(output, type=Outcome) for output in outputs]


def check_load(url: str, outcomes: list[Outcome], *, sure: bool) -> None:
    """Assert that nothing was lost, made twice or out of order.

    Without `sure`, failed calls may have succeeded.
    """
    store = open_store(url)
    with store.reading() as read:
        graph, changes = read.entities(), read.history.changes(ChangeQuery(limit=None))[::-1]
        links = {relation.key for relation in read.relations()}
    texts = [text for entity in graph for text in entity.texts]
    expected = {text for outcome in outcomes for text in outcome.added} - {
        text for outcome in outcomes for text in outcome.removed
    }
    assert len(texts) == len(set(texts))
    assert expected - set(texts) == set()
    assert {key for outcome in outcomes for key in outcome.linked} - links == set()
    if sure:
        assert set(texts) == expected
        assert links == {key for outcome in outcomes for key in outcome.linked}
        assert [outcome.failures for outcome in outcomes] == [0] * len(outcomes)
    assert [change.id for change in changes] == list(range(1, len(changes) + 1))
    times = [change.at for change in changes]
    assert times == sorted(set(times))
    assert [entity.texts for entity in graph] == [_replay(changes, entity.name) for entity in graph]
    assert all(len({one.ordinal for one in entity.facts}) == len(entity.facts) for entity in graph)
    assert store.check() == []
    store.close()


@contextmanager
def faults(server: PostgresServer) -> Iterator[None]:
    """Kill backends and restart the server, in turn, during the block."""
    stop = Event()
    thread = Thread(target=_disturb, args=(server, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _disturb(server: PostgresServer, stop: Event) -> None:
    for turn in range(1_000_000):
        if stop.wait(0.3):
            return
        if turn % 8 == 7:
            server.stop(immediately=turn % 16 == 15)
            server.start()
        elif turn % 8 == 3:
            _crash_backend(server)
        else:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'polymnia'"
                )


def _crash_backend(server: PostgresServer) -> None:
    """Kill a backend like a kernel that is out of memory.

    The server then ends all others, and recovers.
    """
    with psycopg.connect(server.url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'polymnia' LIMIT 1"
        )
        for (process,) in found.fetchall():
            os.kill(process, signal.SIGKILL)
            with suppress(psycopg.OperationalError):
                connection.execute("SELECT pg_sleep(60)")  # until the server ends this backend too
    # PostgreSQL 18 does not end if it is stopped during this recovery.
    while True:
        with suppress(psycopg.OperationalError):
            psycopg.connect(server.url).close()
            return


def _replay(changes: list[Change], name: str) -> tuple[str, ...]:
    """Return the texts that the changes leave an entity."""
    texts: dict[int, str] = {}
    for change in changes:
        for fact in change.before.facts:
            if fact.entity == name:
                texts = {
                    key: text
                    for key, text in texts.items()
                    if key not in {one.ordinal for one in fact.facts}
                }
        for fact in change.after.facts:
            if fact.entity == name:
                texts |= {one.ordinal: one.text for one in fact.facts}
    return tuple([texts[key] for key in sorted(texts)])


def _work(url: str, number: int, operations: int) -> Outcome:
    store = _open(url)
    memory, chance, outcome = Memory(store), Random(number), Outcome()
    for turn in range(operations):
        try:
            _operate(memory, chance, outcome, f"{number}.{turn}")
        except StoreError:
            outcome.failures += 1
    store.close()
    return outcome


def _open(url: str) -> Store:
    while True:
        try:
            return open_store(url)
        except StoreUnavailable:
            continue


def _operate(memory: Memory, chance: Random, outcome: Outcome, label: str) -> None:
    name, kind = chance.choice(NAMES), chance.randrange(10)
    if kind < 4:
        facts.add(memory, [FactAddition(name, (f"{name}: {label}",))], by=label, skip_repeats=True)
        outcome.added.append(f"{name}: {label}")
    elif kind < 5 and (mine := sorted(set(outcome.added) - set(outcome.removed))):
        text = chance.choice(mine)
        outcome.removed.append(text)  # even if the answer is lost, it may be gone
        facts.remove(memory, [(text.partition(":")[0], (text,))], by=label)
    elif kind < 6:
        key = (name, chance.choice(NAMES), f"knows {label}")
        relations.create(memory, [Relation(*key)], by=label)
        outcome.linked.append(key)
    else:
        entities.open_named(memory, [name])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--row-security", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        sys.stdout.buffer.write(
            json.encode(_work(options.worker, options.number, options.operations))
        )
        return
    with running_server(fsync=True) as server:
        url = f"{_protected(server.url) if options.row_security else server.url}?workspace=load"
        prepare(url)
        if options.faults:
            with faults(server):
                outcomes = run_load(url, processes=options.processes, operations=options.operations)
        else:
            outcomes = run_load(url, processes=options.processes, operations=options.operations)
        check_load(url, outcomes, sure=not options.faults)
    failures = sum(outcome.failures for outcome in outcomes)
    print(
        f"{options.processes} processes, {options.operations} operations each: "
        f"nothing lost, {failures} calls to retry"
    )


if __name__ == "__main__":
    os.environ.setdefault("POLYMNIA_EMBEDDER", "none")
    _main()
