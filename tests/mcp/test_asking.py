"""Tools that ask their client something before they act, in both eras of the protocol."""

from collections.abc import Callable
from threading import Semaphore
from typing import Any

import pytest
from mcp_types.methods import parse_server_request
from msgspec import Struct
from msgspec.json import decode, encode

from polymnia.dialects.base import Call, Dialect, Reply, catalogue, tool
from polymnia.dialects.questions import confirmation, elicitation, list_roots
from polymnia.errors import BadInput
from polymnia.mcp import asking
from polymnia.mcp.server import Server
from tests.conformance.asking import sampling
from tests.mcp.conversation import (
    JSON,
    LATEST,
    STATELESS,
    Client,
    RecordingChannel,
    envelope,
    new_server,
)
from tests.processes import TIMEOUT_S

EVERYTHING: JSON = {"elicitation": {}, "sampling": {}, "roots": {}}
YES = {"action": "accept", "content": {"confirmed": True}}
NO = {"action": "decline"}


class Nothing(Struct, frozen=True):
    pass


class Erase(Struct, frozen=True):
    confirm: bool = False


@tool(Erase, needs="write")
def erase(call: Call, arguments: Erase) -> Reply:
    """Erase everything, once the user has agreed"""
    if not arguments.confirm:
        if not call.may_ask("elicitation"):
            raise BadInput("erasing needs confirm: true")
        if not call.ask(confirmation("sure", "Erase everything?")).is_accepted:
            raise BadInput("the user declined")
    return Reply("erased")


@tool(Nothing, needs="read")
def introduce(call: Call, arguments: Nothing) -> Reply:
    """Ask for one thing after the other"""
    text = {"type": "string"}
    name = (
        call.ask(elicitation("name", "Who are you?", {"name": text}, required=["name"])).content
        or {}
    )
    place = (
        call.ask(
            elicitation("place", "Where are you?", {"place": text}, required=["place"])
        ).content
        or {}
    )
    return Reply(f"{name['name']} in {place['place']}")


@tool(Nothing, needs="read")
def survey(call: Call, arguments: Nothing) -> Reply:
    """Ask for two things at once"""
    summary, roots = sampling("summary", "Summarize this.", max_tokens=50), list_roots()
    call.require_answers(summary, roots)
    return Reply(f"{call.ask(summary).text} {[root.uri for root in call.ask(roots).roots]}")


ASKING = Dialect(
    name="asking",
    server_name="asking",
    server_version="1",
    instructions="",
    tools=catalogue(erase, introduce, survey),
)


class Asked(Client):
    """A client with a handshake that can be asked, and what it is asked."""

    def __init__(
        self,
        server: Server,
        capabilities: JSON | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(server, LATEST, wake=wake, greet=False)
        declared = EVERYTHING if capabilities is None else capabilities
        info = {"name": "asked", "version": "1"}
        self.result("initialize", protocolVersion=LATEST, capabilities=declared, clientInfo=info)

    def start(self, name: str) -> int:
        """Call a tool that asks something first. Return the id of the call."""
        message = self.message("tools/call", {"name": name, "arguments": {}})
        answer = self.session.handle(encode(message))
        assert answer.body is None
        assert answer.is_pending
        identifier: int = message["id"]
        return identifier

    def sent(self) -> list[JSON]:
        """Return what the server has sent since the last look."""
        found = [decode(item) for item in self.session.outbox]
        self.session.outbox.clear()
        for item in found:
            if "method" in item and "id" in item:
                parse_server_request(item["method"], LATEST, item["params"])
        return found

    def answer(self, identifier: Any, result: JSON) -> None:
        assert self.say({"jsonrpc": "2.0", "id": identifier, "result": result}) is None


@pytest.fixture
def server() -> Server:
    return new_server(ASKING)


@pytest.fixture
def client(server: Server) -> Asked:
    return Asked(server)


def reply_text(reply: JSON) -> str:
    text: str = reply["result"]["content"][0]["text"]
    return text


def test_a_call_goes_on_when_the_user_has_agreed(client: Asked) -> None:
    identifier = client.start("erase")
    (question,) = client.sent()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Erase everything?"
    client.answer(question["id"], YES)
    (reply,) = client.sent()
    assert (reply["id"], reply_text(reply)) == (identifier, "erased")


@pytest.mark.parametrize(
    "answer", [NO, {"action": "cancel"}, {"action": "accept", "content": {"confirmed": False}}]
)
def test_a_call_does_nothing_when_the_user_has_not_agreed(client: Asked, answer: JSON) -> None:
    client.start("erase")
    (question,) = client.sent()
    client.answer(question["id"], answer)
    (reply,) = client.sent()
    assert reply["result"]["isError"]
    assert reply_text(reply) == "the user declined"


def test_a_client_that_cannot_be_asked_is_told_what_to_do_instead(server: Server) -> None:
    client = Asked(server, {})
    assert client.call("erase")["content"][0]["text"] == "erasing needs confirm: true"
    assert client.text("erase", confirm=True) == "erased"


def test_a_client_with_links_only_cannot_be_shown_a_form(server: Server) -> None:
    assert Asked(server, {"elicitation": {"url": {}}}).call("erase")["isError"]


def test_an_old_client_is_not_asked_what_its_revision_lacks(server: Server) -> None:
    client = Client(server, "2025-03-26", greet=False)
    info = {"name": "old", "version": "1"}
    client.result(
        "initialize", protocolVersion="2025-03-26", capabilities=EVERYTHING, clientInfo=info
    )
    assert client.call("erase")["isError"]


def test_a_call_may_ask_one_thing_after_the_other(client: Asked) -> None:
    client.start("introduce")
    (first,) = client.sent()
    client.answer(first["id"], {"action": "accept", "content": {"name": "Ada"}})
    (second,) = client.sent()
    assert second["params"]["message"] == "Where are you?"
    client.answer(second["id"], {"action": "accept", "content": {"place": "London"}})
    (reply,) = client.sent()
    assert reply_text(reply) == "Ada in London"


def test_a_call_may_ask_several_things_at_once(client: Asked) -> None:
    client.start("survey")
    asked = {item["method"]: item["id"] for item in client.sent()}
    client.answer(asked["roots/list"], {"roots": [{"uri": "file:///home/ada"}]})
    assert client.sent() == []
    sampled = {"role": "assistant", "content": {"type": "text", "text": "Short."}, "model": "m"}
    client.answer(asked["sampling/createMessage"], sampled)
    (reply,) = client.sent()
    assert reply_text(reply) == "Short. ['file:///home/ada']"


def test_other_calls_are_answered_while_one_waits(client: Asked) -> None:
    client.start("erase")
    assert client.text("erase", confirm=True) == "erased"


def test_an_error_of_the_client_becomes_the_tools_failure(client: Asked) -> None:
    client.start("erase")
    (question,) = client.sent()
    error = {"code": -1, "message": "nobody is here"}
    client.say({"jsonrpc": "2.0", "id": question["id"], "error": error})
    (reply,) = client.sent()
    assert reply["result"]["isError"]
    assert "nobody is here" in reply_text(reply)


@pytest.mark.parametrize("answer", [{}, {"action": "perhaps"}, {"action": 1}])
def test_a_malformed_answer_is_an_error(client: Asked, answer: JSON) -> None:
    client.start("erase")
    (question,) = client.sent()
    client.answer(question["id"], answer)
    (reply,) = client.sent()
    assert reply["error"]["code"] == -32602


def test_an_answer_is_taken_once(client: Asked) -> None:
    client.start("erase")
    (question,) = client.sent()
    client.answer(question["id"], YES)
    client.sent()
    client.answer(question["id"], YES)
    assert client.sent() == []


@pytest.mark.parametrize("identifier", ["polymnia-99", 1, 1.5, "nope"])
def test_an_answer_that_nobody_asked_for_is_ignored(client: Asked, identifier: Any) -> None:
    client.answer(identifier, YES)
    assert client.sent() == []


def test_a_call_that_is_cancelled_while_it_waits_is_not_answered(client: Asked) -> None:
    identifier = client.start("erase")
    (question,) = client.sent()
    client.notify("notifications/cancelled", requestId=identifier)
    client.answer(question["id"], YES)
    assert client.sent() == []


def test_a_session_that_ends_answers_what_waits(client: Asked) -> None:
    identifier = client.start("erase")
    client.sent()
    client.session.close()
    (reply,) = client.sent()
    assert reply["id"] == identifier
    assert "the session ended" in reply["error"]["message"]


def test_a_session_asks_a_bounded_number_of_questions(client: Asked) -> None:
    for _ in range(asking.MAX_PENDING):
        client.start("erase")
    assert "wait for answers" in client.error("tools/call", name="erase", arguments={})["message"]


def test_a_client_that_never_answers_gets_an_error_in_the_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_TIMEOUT_S", 0.01)
    sent = Semaphore(0)
    client = Asked(server, wake=sent.release)
    identifier = client.start("erase")
    assert all(sent.acquire(timeout=TIMEOUT_S) for _ in range(3))
    question, withdrawn, reply = client.sent()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    assert reply["id"] == identifier
    assert "did not answer in time" in reply_text(reply)


def test_question_and_reply_go_the_way_of_their_request(client: Asked) -> None:
    channel = RecordingChannel()
    message = client.message("tools/call", {"name": "erase", "arguments": {}})
    assert client.session.handle(encode(message), channel).is_pending
    client.answer(channel.notifications[0]["id"], YES)
    assert [reply_text(reply) for reply in channel.replies] == ["erased"]
    assert client.sent() == []


def test_nothing_is_asked_where_no_question_can_be_sent(client: Asked) -> None:
    message = client.message("tools/call", {"name": "erase", "arguments": {}})
    body = client.session.handle(encode(message), RecordingChannel(can_ask=False)).body
    assert b"erasing needs confirm" in (body or b"")


class TestStateless:
    """Without a handshake the answers come with a repetition of the request."""

    @pytest.fixture
    def client(self, server: Server) -> Client:
        return Client(server, STATELESS)

    def call(self, client: Client, name: str, **more: Any) -> JSON:
        meta = envelope(clientCapabilities=EVERYTHING)
        reply: JSON = client.ask("tools/call", name=name, arguments={}, _meta=meta, **more)
        return reply

    def test_a_result_says_what_is_needed(self, client: Client) -> None:
        result = self.call(client, "erase")["result"]
        assert result["resultType"] == "input_required"
        assert result["inputRequests"]["sure"]["method"] == "elicitation/create"
        assert isinstance(result["requestState"], str)

    def test_a_call_with_the_answer_is_carried_out(self, client: Client) -> None:
        asked = self.call(client, "erase")["result"]
        reply = self.call(
            client, "erase", inputResponses={"sure": YES}, requestState=asked["requestState"]
        )
        assert reply["result"]["resultType"] == "complete"
        assert reply_text(reply) == "erased"

    def test_earlier_answers_come_back_with_the_state(self, client: Client) -> None:
        first = self.call(client, "introduce")["result"]
        name = {"name": {"action": "accept", "content": {"name": "Ada"}}}
        second = self.call(
            client, "introduce", inputResponses=name, requestState=first["requestState"]
        )["result"]
        assert list(second["inputRequests"]) == ["place"]
        place = {"place": {"action": "accept", "content": {"place": "London"}}}
        reply = self.call(
            client, "introduce", inputResponses=place, requestState=second["requestState"]
        )
        assert reply_text(reply) == "Ada in London"

    def test_a_state_that_was_changed_is_refused(self, client: Client) -> None:
        state = self.call(client, "introduce")["result"]["requestState"]
        for changed in (
            state + "x",
            state + "=",
            state + "\n",
            state[:-8] + "AAAAAAAA",
            "",
            "nonsense",
            "é",
        ):
            reply = self.call(client, "introduce", requestState=changed)
            assert changed == "" or reply["error"]["code"] == -32602

    def test_a_state_of_another_tool_is_refused(self, client: Client) -> None:
        state = self.call(client, "introduce")["result"]["requestState"]
        assert self.call(client, "erase", requestState=state)["error"]["code"] == -32602

    def test_a_state_of_another_server_is_refused(self, client: Client) -> None:
        state = self.call(Client(new_server(ASKING), STATELESS), "erase")["result"]["requestState"]
        assert self.call(client, "erase", requestState=state)["error"]["code"] == -32602

    def test_a_state_expires(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(asking, "STATE_LIFETIME_S", -1)
        state = self.call(client, "erase")["result"]["requestState"]
        assert self.call(client, "erase", requestState=state)["error"]["code"] == -32602

    def test_only_what_the_client_declares_is_asked(self, client: Client) -> None:
        assert client.call("erase")["content"][0]["text"] == "erasing needs confirm: true"
        error = client.error("tools/call", name="survey", arguments={})
        assert error["data"]["requiredCapabilities"] == {"sampling": {}}
