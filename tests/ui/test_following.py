"""Following the history without a browser: events that say that there is news, and the new rows."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.auth.authenticator import tokens_of
from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.model import FactAddition
from tests.processes import TIMEOUT_S
from tests.transports.running import Events, Running
from tests.ui.client import Visitor, make_token
from tests.ui.pages import harbour


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Memory]]:
    with harbour(tmp_path_factory.mktemp("ui")) as both:
        yield both


def follow(visitor: Visitor, path: str = "/ui/history/events") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", visitor.port, timeout=TIMEOUT_S)
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    return connection.getresponse()


def observe(memory: Memory, *texts: str) -> None:
    for text in texts:
        facts.add(memory, [FactAddition("billing-worker", (text,))], by="second", skip_repeats=True)


def test_a_change_of_another_process_is_announced_and_then_shown(
    site: tuple[Running, Memory],
) -> None:
    running, memory = site
    visitor = Visitor(running.port)
    shown = visitor.get("/ui/history")
    last = int(shown.text.split('data-last="')[1].split('"')[0])
    response = follow(visitor)
    assert response.status == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    observe(memory, "one", "two", "three")
    events, count, newest = Events(response), 0, 0
    while count < 3:
        event = events.next()
        assert event is not None
        news = json.loads(event[1])
        count, newest = count + news["count"], news["last"]
    response.close()
    assert (count, newest) == (3, last + 3)
    rows = visitor.get(f"/ui/history?after={last}", HX_Request="true")
    assert rows.text.count("<li") == 3
    assert "<html" not in rows.text
    assert "second added a fact to billing-worker" in rows.words
    assert visitor.get(f"/ui/history?after={newest}", HX_Request="true").text.count("<li") == 0


def test_a_stream_of_nothing_is_refused(site: tuple[Running, Memory]) -> None:
    assert follow(Visitor(site[0].port), "/ui/history/events?w=nowhere").status == 404


def test_revoking_the_token_ends_the_stream(tmp_path: Path) -> None:
    with harbour(tmp_path) as (running, _):
        store = str(tmp_path / "memory.db")
        visitor = Visitor(running.port)
        visitor.log_in(make_token(store, "phone", "read"))
        response = follow(visitor)
        assert response.status == 200
        tokens = tokens_of(store)
        assert tokens is not None
        tokens.revoke("phone")
        assert Events(response).next() is None
        response.close()


def test_the_server_stops_while_pages_follow(tmp_path: Path) -> None:
    with harbour(tmp_path) as (running, _):
        response = follow(Visitor(running.port))
        assert running.stop() == 0
        assert Events(response).next() is None
        response.close()
