"""Streams of the stateless revision.

Opened by `subscriptions/listen`, tagged, cancelled, closed with a reply.
"""

from collections.abc import Callable
from typing import Any

import pytest
from mcp_types.methods import parse_server_result
from msgspec.json import decode

from polymnia.mcp.server import Server
from tests.mcp.conversation import JSON, SERVER_INFO, STATELESS, SUBSCRIPTION_ID, Client, new_server
from tests.mcp.dialect import CLOCK_URI, NAMES_URI, entity_uri, only_tools

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LIST_CHANGED = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


def listening(client: Client, identifier: Any = "s", **wanted: Any) -> JSON:
    """Open a stream; gives what its first message says will be kept."""
    message = client.message("subscriptions/listen", {"notifications": wanted}) | {"id": identifier}
    assert client.say(message) is None
    ((method, params),) = client.told()
    assert (method, params["_meta"]) == (ACKNOWLEDGED, {SUBSCRIPTION_ID: identifier})
    kept: JSON = params["notifications"]
    return kept


def on(identifier: Any, **params: Any) -> JSON:
    return {**params, "_meta": {SUBSCRIPTION_ID: identifier}}


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ({}, {}),
        ({"resourcesListChanged": True}, {"resourcesListChanged": True}),
        ({"resourcesListChanged": False, "resourceSubscriptions": []}, {}),
        (
            {"resourceSubscriptions": [NAMES_URI, CLOCK_URI]},
            {"resourceSubscriptions": [NAMES_URI, CLOCK_URI]},
        ),
        ({"toolsListChanged": True, "promptsListChanged": True}, {}),
        (
            {"resourcesListChanged": None, "resourceSubscriptions": None, "toolsListChanged": None},
            {},
        ),
        ({"later": True}, {}),
    ],
)
def test_a_stream_first_acknowledges_the_supported_filter(
    stateless: Client, wanted: JSON, kept: JSON
) -> None:
    assert listening(stateless, **wanted) == kept


def test_an_unsupported_filter_is_not_acknowledged() -> None:
    assert listening(Client(new_server(only_tools()), STATELESS), resourcesListChanged=True) == {}


@pytest.mark.parametrize(
    "params", [{}, {"notifications": None}, {"notifications": {"resourceSubscriptions": "x"}}]
)
def test_a_stream_without_a_valid_filter_is_refused(stateless: Client, params: JSON) -> None:
    assert stateless.error("subscriptions/listen", **params)["code"] == -32602
    assert stateless.told() == []


@pytest.mark.parametrize("identifier", ["s", "", 7, 0, 2**70])
def test_notifications_of_a_stream_carry_its_id(stateless: Client, identifier: Any) -> None:
    listening(
        stateless,
        identifier,
        resourcesListChanged=True,
        resourceSubscriptions=[NAMES_URI, CLOCK_URI],
    )
    stateless.call("remember", name="Ada")
    assert stateless.told() == [
        (LIST_CHANGED, on(identifier)),
        (UPDATED, on(identifier, uri=NAMES_URI)),
    ]


def test_a_stream_carries_only_what_it_was_opened_for(stateless: Client) -> None:
    listening(stateless, resourceSubscriptions=[entity_uri("Bob")])
    stateless.call("remember", name="Ada")
    assert stateless.told() == []


def test_each_stream_gets_its_own_notifications(stateless: Client) -> None:
    listening(stateless, "first", resourceSubscriptions=[NAMES_URI])
    listening(stateless, "second", resourceSubscriptions=[NAMES_URI, entity_uri("Ada")])
    stateless.call("remember", name="Ada")
    assert stateless.told() == [
        (UPDATED, on("first", uri=NAMES_URI)),
        (UPDATED, on("second", uri=entity_uri("Ada"))),
        (UPDATED, on("second", uri=NAMES_URI)),
    ]


def test_a_cancelled_stream_is_silent_and_unanswered(stateless: Client) -> None:
    listening(stateless, "gone", resourceSubscriptions=[NAMES_URI])
    listening(stateless, "kept", resourceSubscriptions=[NAMES_URI])
    stateless.notify("notifications/cancelled", requestId="gone")
    stateless.call("remember", name="Ada")
    assert stateless.told() == [(UPDATED, on("kept", uri=NAMES_URI))]
    stateless.session.close()
    assert [decode(item)["id"] for item in stateless.session.outbox] == ["kept"]


@pytest.mark.parametrize("identifier", ["s", 7, 2**70])
def test_an_open_stream_is_answered_when_the_session_ends(
    stateless: Client, identifier: Any
) -> None:
    listening(stateless, identifier)
    stateless.session.close()
    (reply,) = [decode(item) for item in stateless.session.outbox]
    parse_server_result("subscriptions/listen", STATELESS, reply["result"])
    assert (reply["id"], reply["result"]["_meta"][SUBSCRIPTION_ID]) == (identifier, identifier)
    assert reply["result"]["_meta"][SERVER_INFO]["name"] == "test-server"


def test_closing_a_session_twice_answers_its_streams_once(stateless: Client) -> None:
    listening(stateless)
    stateless.session.close()
    stateless.session.close()
    assert len(stateless.session.outbox) == 1


def test_subscriptions_and_streams_are_notified_separately(server: Server) -> None:
    client = Client(server)
    client.result("resources/subscribe", uri=NAMES_URI)
    stateless = Client(server, STATELESS)
    listening(stateless, resourceSubscriptions=[NAMES_URI])
    client.call("remember", name="Ada")
    assert client.told() == [(LIST_CHANGED, {}), (UPDATED, {"uri": NAMES_URI})]
    assert stateless.told() == [(UPDATED, on("s", uri=NAMES_URI))]


@pytest.mark.parametrize(
    "act", [lambda client: listening(client, "new"), lambda client: client.session.close()]
)
def test_streams_may_open_and_close_during_a_change(
    server: Server, stateless: Client, act: Callable[[Client], None]
) -> None:
    """Another thread may open or close a stream while a change is being told.

    Here, exactly then.
    """
    surprised = Surprised(server)
    for identifier in ("a", "b", "c"):
        listening(surprised.client, identifier, resourceSubscriptions=[NAMES_URI])
    surprised.act = act
    assert stateless.text("remember", name="Ada") == "remembered"


class Surprised:
    """A client whose transport, woken by the first notification of a change, does something else in
    between.
    """

    def __init__(self, server: Server) -> None:
        self.act: Callable[[Client], None] | None = None
        self.client = Client(server, STATELESS, wake=self._woken)

    def _woken(self) -> None:
        act, self.act = self.act, None
        if act is not None:
            self.client.session.outbox.clear()
            act(self.client)
