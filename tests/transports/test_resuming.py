"""Streams that a client resumes after it lost its connection."""

import json
from pathlib import Path

import pytest

from polymnia.transports.http.stream import parse_event_id
from tests.transports.running import Events, Running, Talk, Web, call, creation, listening

GRAPH_URI = "memory://knowledge-graph"


def begin(talk: Talk) -> Events:
    """Call a tool that tells something and then takes long."""
    response = talk.open("POST", talk.path, json.dumps(call("block_with_news", 7)).encode())
    return Events(response)


def resume(talk: Talk, blocking_port: int, last: str) -> Events:
    web = Web(blocking_port)
    web.headers = {**talk.headers, "Accept": "text/event-stream", "Last-Event-ID": last}
    return Events(web.open("GET", talk.path))


def release(blocking_port: int) -> None:
    talk = Talk(blocking_port)
    assert talk.call("release")["content"][0]["text"] == "begun"
    talk.close()


def test_a_stream_begins_with_an_event_to_resume_from_and_a_time_to_wait(
    blocking_port: int,
) -> None:
    talk = Talk(blocking_port)
    response = begin(talk).response
    assert [response.readline() for _ in range(3)] == [b"id: 1-0\n", b"retry: 1000\n", b"data: \n"]
    release(blocking_port)


def test_clients_of_older_revisions_get_no_event_without_a_message(blocking_port: int) -> None:
    talk = Talk(blocking_port, revision="2025-06-18")
    assert begin(talk).response.readline() == b"id: 1-1\n"
    release(blocking_port)


def test_a_call_goes_on_without_its_client_which_resumes_the_stream(blocking_port: int) -> None:
    talk = Talk(blocking_port)
    begun = begin(talk)
    assert begun.message()["params"]["data"] == "begun"
    talk.close()
    release(blocking_port)
    resumed = resume(talk, blocking_port, begun.id)
    assert resumed.message()["params"]["data"] == "ended"
    reply = resumed.message()
    assert (reply["id"], reply["result"]["content"][0]["text"]) == (7, "released")
    assert resumed.next() is None


def test_a_stream_is_resumed_while_the_call_runs(blocking_port: int) -> None:
    talk = Talk(blocking_port)
    begun = begin(talk)
    begun.message()
    talk.close()
    resumed = resume(talk, blocking_port, "1-0")
    assert resumed.message()["params"]["data"] == "begun"
    release(blocking_port)
    assert resumed.message()["params"]["data"] == "ended"
    assert resumed.message()["id"] == 7


def test_a_reply_is_sent_again_as_often_as_it_is_asked_for(blocking_port: int) -> None:
    talk = Talk(blocking_port)
    begun = begin(talk)
    begun.message()
    release(blocking_port)
    assert begun.message()["params"]["data"] == "ended"
    assert begun.message()["id"] == 7
    for _ in range(2):
        again = resume(talk, blocking_port, "1-1")
        assert again.message()["params"]["data"] == "ended"
        assert again.message()["id"] == 7


def test_another_session_cannot_resume_a_stream(blocking_port: int) -> None:
    talk, other = Talk(blocking_port), Talk(blocking_port)
    begun = begin(talk)
    begun.message()
    release(blocking_port)
    resumed = resume(other, blocking_port, begun.id)
    assert resumed.response.readline() == b"id: 1-0\n"  # a stream of its own
    resumed.response.close()


def test_notifications_are_sent_again_after_a_lost_connection(tmp_path: Path) -> None:
    with Running(tmp_path / "memory.db", "--dialect", "reference") as server:
        talk = Talk(server.port)
        talk.ask("resources/subscribe", uri=GRAPH_URI)
        with listening(talk) as events:
            talk.call("create_entities", **creation("Ada"))
            assert events.message()["params"] == {"uri": GRAPH_URI}
        number = events.id.partition("-")[0]
        resumed = resume(talk, server.port, f"{number}-0")
        assert resumed.message()["params"] == {"uri": GRAPH_URI}
        talk.call("create_entities", **creation("Bob"))
        assert resumed.message()["params"] == {"uri": GRAPH_URI}
        resumed.response.close()


@pytest.mark.parametrize(
    "value", ["", "1", "-", "1-", "-1", "a-1", "1-a", "²-1", "1-1-1", "9" * 50 + "-1"]
)
def test_the_ids_of_others_are_none_of_ours(value: str) -> None:
    assert parse_event_id(value) is None
