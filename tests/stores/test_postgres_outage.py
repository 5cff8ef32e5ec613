"""The database refuses connections.

Calls fail with a sentence, servers that start meanwhile wait for it.
"""

import subprocess
from collections.abc import Iterator

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import StoreUnavailable
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.postgres import PostgresServer, new_workspace, running_server
from tests.processes import TIMEOUT_S, Log, end_with_parent, polymnia_command
from tests.stores.proxy import proxied
from tests.transports.running import Running, Talk, Web, creation

# A call that waited this long would end the test run.
PATIENT = "timeout=3600"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that tests stop and start."""
    with running_server() as started:
        yield started


def test_reads_and_writes_fail_at_once_and_change_nothing() -> None:
    with proxied(f"{new_workspace()}&{PATIENT}") as (proxy, url):
        memory = Memory(open_store(url))
        proxy.close()
        with pytest.raises(StoreUnavailable, match="nothing was changed"):
            entities.read_all(memory)
        with pytest.raises(StoreUnavailable) as raised:
            entities.create(memory, [EntityDraft("Ann", "person")], by="test")
        assert "nothing was changed" in raised.value.public
        memory.store.close()


def test_calls_and_readiness_fail_while_the_database_is_down_and_work_again_after_it(
    server: PostgresServer,
) -> None:
    with Running(f"{server.url}?{PATIENT}") as running, Web(running.port) as web:
        talk = Talk(running.port)
        server.stop()
        assert web.send("GET", "/readyz").status == 503
        refusal = talk.call("create_entities", **creation("Ann"))
        assert refusal["isError"]
        assert "nothing was changed" in refusal["content"][0]["text"]
        assert web.send("GET", "/healthz").status == 200
        server.start()
        assert web.send("GET", "/readyz").status == 200
        assert not talk.call("create_entities", **creation("Ann")).get("isError")
        talk.close()


def test_a_server_that_starts_before_its_database_waits_for_it(server: PostgresServer) -> None:
    server.stop()
    command = polymnia_command("serve", "--store", server.url)
    command += ["--transport", "http", "--bind", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=end_with_parent)
    try:
        log = Log(process.stderr)
        log.wait_for("waiting for the database")
        server.start()
        with Web(log.port) as web:
            assert web.send("GET", "/readyz").status == 200
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
