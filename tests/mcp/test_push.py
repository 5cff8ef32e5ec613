"""Notifications: changes of subscribed resources, log messages, progress."""

from typing import Any

import pytest
from msgspec.json import encode

from polymnia.mcp.params import LOG_LEVEL
from polymnia.mcp.server import Server
from tests.conformance.dialect import CONFORMING
from tests.mcp.conversation import (
    HANDSHAKE,
    REVISIONS,
    STATELESS,
    Client,
    RecordingChannel,
    new_server,
)
from tests.mcp.dialect import CLOCK_URI, NAMES_URI, entity_uri, only_tools

LIST_CHANGED = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
MESSAGE = "notifications/message"
PROGRESS = "notifications/progress"


def updates(client: Client) -> list[str]:
    """The addresses the client was told of since the last look."""
    return [params["uri"] for method, params in client.told() if method == UPDATED]


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_subscriber_is_notified_of_changes(revision: str) -> None:
    client = Client(revision=revision)
    assert client.result("resources/subscribe", uri=NAMES_URI) == {}
    client.call("remember", name="Ada")
    assert updates(client) == [NAMES_URI]


def test_without_a_subscription_no_notification_is_sent(server: Server, client: Client) -> None:
    other = Client(server)
    client.result("resources/subscribe", uri=NAMES_URI)
    other.call("remember", name="Ada")
    assert (updates(client), updates(other)) == ([NAMES_URI], [])


def test_an_unchanged_resource_sends_no_notification(client: Client) -> None:
    for uri in (CLOCK_URI, entity_uri("Bob")):
        client.result("resources/subscribe", uri=uri)
    client.call("remember", name="Ada")
    assert updates(client) == []


def test_a_resource_of_a_template_can_be_subscribed_to(client: Client) -> None:
    client.result("resources/subscribe", uri=entity_uri("Ada"))
    client.call("remember", name="Ada")
    client.call("remember", name="Bob")
    client.call("forget", name="Ada")
    assert updates(client) == [entity_uri("Ada")] * 2


def test_a_call_that_changes_nothing_sends_no_notification(client: Client) -> None:
    client.result("resources/subscribe", uri=NAMES_URI)
    client.call("remember", name="Ada")
    client.told()
    client.call("remember", name="Ada")
    client.call("forget", name="Nobody")
    client.text("nothing")
    assert client.told() == []


def test_subscribing_twice_is_subscribing_once(client: Client) -> None:
    client.result("resources/subscribe", uri=NAMES_URI)
    client.result("resources/subscribe", uri=NAMES_URI)
    client.call("remember", name="Ada")
    assert updates(client) == [NAMES_URI]


def test_after_unsubscribing_no_notification_is_sent(client: Client) -> None:
    client.result("resources/subscribe", uri=NAMES_URI)
    client.result("resources/unsubscribe", uri=NAMES_URI)
    client.call("remember", name="Ada")
    assert updates(client) == []


def test_unsubscribing_from_what_was_never_subscribed_to_is_no_error(client: Client) -> None:
    assert client.result("resources/unsubscribe", uri=NAMES_URI) == {}


def test_a_new_resource_changes_the_list(client: Client) -> None:
    client.call("remember", name="Ada")
    assert client.told() == [(LIST_CHANGED, {})]


def test_without_initialize_list_changes_are_not_sent(server: Server, stateless: Client) -> None:
    Client(server).call("remember", name="Ada")
    assert stateless.told() == []


@pytest.mark.parametrize("uri", ["test://nope", "test://entity/", "other://names", ""])
def test_what_can_never_exist_cannot_be_subscribed_to(client: Client, uri: str) -> None:
    assert client.error("resources/subscribe", uri=uri)["code"] == -32002


def test_a_dialect_without_resources_sends_no_notifications() -> None:
    client = Client(new_server(only_tools()))
    client.error("resources/subscribe", uri=NAMES_URI)
    client.call("remember", name="Ada")
    assert client.told() == []


def test_a_closed_session_sends_no_notifications(server: Server, client: Client) -> None:
    client.result("resources/subscribe", uri=NAMES_URI)
    client.session.close()
    Client(server).call("remember", name="Ada")
    server.log("error", "test", "too late")
    assert client.told() == []


def test_a_queued_notification_wakes_the_transport(server: Server) -> None:
    queued: list[int] = []
    watched = Client(server, wake=lambda: queued.append(len(watched.session.outbox)))
    watched.text("count", steps=3)
    assert queued == []
    watched.result("tools/call", name="count", arguments={"steps": 3}, _meta={"progressToken": "t"})
    assert queued == [1, 2, 3]


LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.mark.parametrize("level", LEVELS)
def test_log_messages_are_sent_from_the_chosen_level_upwards(
    server: Server, client: Client, level: str
) -> None:
    assert client.result("logging/setLevel", level=level) == {}
    for item in LEVELS:
        server.log(item, "test", f"it is {item}")
    told = [(item, "test", f"it is {item}") for item in LEVELS[LEVELS.index(level) :]]
    assert [
        (params["level"], params["logger"], params["data"]) for _, params in client.told()
    ] == told


@pytest.mark.parametrize("level", ["loud", "", "ERROR", None, 3])
def test_a_level_that_does_not_exist_is_refused(client: Client, level: Any) -> None:
    assert client.error("logging/setLevel", level=level)["code"] == -32602


def test_the_level_of_one_client_is_not_that_of_another(server: Server, client: Client) -> None:
    other = Client(server)
    client.result("logging/setLevel", level="debug")
    server.log("info", "test", "something")
    assert ([method for method, _ in client.told()], other.told()) == ([MESSAGE], [])


def test_without_initialize_no_log_messages_are_sent(server: Server, stateless: Client) -> None:
    server.log("emergency", "test", "something")
    assert stateless.told() == []


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", ["t", "", 0, 7, 2**70])
def test_progress_is_reported_under_the_token_it_was_asked_with(
    revision: str, token: str | int
) -> None:
    client = Client(revision=revision)
    client.result(
        "tools/call", name="count", arguments={"steps": 2}, _meta={"progressToken": token}
    )
    assert client.told() == [
        (PROGRESS, {"progressToken": token, "progress": 1, "total": 2, "message": "step 1"}),
        (PROGRESS, {"progressToken": token, "progress": 2, "total": 2, "message": "step 2"}),
    ]


def test_progress_without_a_total_or_a_message_has_none(client: Client) -> None:
    client.result("tools/call", name="hint", _meta={"progressToken": "t"})
    assert client.told() == [(PROGRESS, {"progressToken": "t", "progress": 0.5})]


@pytest.mark.parametrize("revision", REVISIONS)
def test_without_a_token_there_is_no_progress(revision: str) -> None:
    client = Client(revision=revision)
    client.text("count", steps=2)
    assert client.told() == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_call_logs_from_the_level_its_client_has_set_upwards(level: str) -> None:
    client = Client(new_server(CONFORMING))
    client.result("logging/setLevel", level=level)
    client.text("test_logging_tool")
    assert logged(client) == [
        name for name in ("debug", "emergency") if LEVELS.index(name) >= LEVELS.index(level)
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_stateless_call_logs_from_the_level_it_names_upwards(level: str) -> None:
    client = Client(new_server(CONFORMING), STATELESS)
    client.result("tools/call", name="test_logging_tool", _meta={LOG_LEVEL: level})
    assert logged(client) == [
        name for name in ("debug", "emergency") if LEVELS.index(name) >= LEVELS.index(level)
    ]


def test_a_stateless_call_that_names_no_level_logs_nothing() -> None:
    client = Client(new_server(CONFORMING), STATELESS)
    client.text("test_logging_tool")
    assert logged(client) == []


def test_what_a_call_logs_goes_where_its_other_notifications_go() -> None:
    client = Client(new_server(CONFORMING))
    channel = RecordingChannel()
    message = client.message("tools/call", {"name": "test_logging_tool", "arguments": {}})
    client.session.handle(encode(message), channel)
    assert ([item["params"]["data"] for item in channel.notifications], client.told()) == (
        ["something great"],
        [],
    )


def test_a_stateless_request_with_a_level_that_does_not_exist_is_refused(stateless: Client) -> None:
    error = stateless.error("tools/list", _meta={LOG_LEVEL: "loud"})
    assert (error["code"], "emergency" in error["message"]) == (-32602, True)


def logged(client: Client) -> list[str]:
    """The levels of the log messages a client was told."""
    return [params["level"] for method, params in client.told() if method == MESSAGE]
