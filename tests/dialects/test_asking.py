"""What the tools of the product ask their client before they act, and what they do where it cannot
be asked.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.json import decode, encode

from polymnia.dialects import open_dialect
from polymnia.dialects.base import ServerRules
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import open_workspaces
from polymnia.mcp.server import Server
from polymnia.stores import open_store
from tests.dialects.conversation import Client

JSON = dict[str, Any]
YES: JSON = {"action": "accept", "content": {"confirmed": True}}
NO: JSON = {"action": "decline"}
MANY = {"name": "Ada", "facts": [f"fact {number}" for number in range(40)]}


class AskedClient(Client):
    """A client that can be asked.

    `answer` returns the result for a request of the server, or raises.
    """

    def __init__(
        self, dialect: str, server: Memory | Server, answer: Callable[[str, JSON], JSON]
    ) -> None:
        super().__init__(dialect, server)
        self.asked: list[JSON] = []
        self._answer = answer
        capabilities: JSON = {"elicitation": {}}
        info = {"name": "asked", "version": "1"}
        super().request(
            "initialize", protocolVersion="2025-11-25", clientInfo=info, capabilities=capabilities
        )

    def request(self, method: str, **params: Any) -> Any:
        """Return the result of a request, after every question about it was answered."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        body = self.session.handle(encode(message)).body
        while body is None:
            question = decode(self.session.outbox.popleft())
            self.asked.append(question["params"])
            answer = self._answer(question["method"], question["params"])
            self.session.handle(encode({"jsonrpc": "2.0", "id": question["id"], **answer}))
            body = self.session.outbox.pop() if len(self.session.outbox) == 1 else None
        reply = decode(body)
        assert "error" not in reply, reply
        return reply["result"]


@pytest.fixture
def memory(versioned_url: str) -> Iterator[Memory]:
    store = open_store(versioned_url)
    yield Memory(store)
    store.close()


def agreeing(memory: Memory | Server, result: JSON) -> AskedClient:
    return AskedClient("native", memory, lambda method, params: {"result": result})


def test_a_user_who_declines_keeps_many_facts(memory: Memory) -> None:
    client = agreeing(memory, NO)
    client.text("remember", {"entities": [MANY]})
    assert "declined" in client.error("forget", {"name": "Ada", "whole": True, "confirm": True})
    assert "fact 1" in client.text("open", {"names": ["Ada"]})


def test_many_single_facts_are_asked_about_too(memory: Memory) -> None:
    client = agreeing(memory, YES)
    client.text("remember", {"entities": [MANY]})
    client.text("forget", {"name": "Ada", "facts": [str(number) for number in range(1, 31)]})
    assert [item["message"] for item in client.asked] == [
        "Forget Ada: 30 facts and relations in all?"
    ]


def test_without_elicitation_many_facts_need_a_confirmation(memory: Memory) -> None:
    client = Client("native", memory)
    client.text("remember", {"entities": [MANY]})
    refusal = client.error("forget", {"name": "Ada", "whole": True})
    assert refusal == "Forgetting Ada deletes 40 facts. Ask the user, then pass confirm: true."
    client.text("forget", {"name": "Ada", "whole": True, "dry_run": True})
    client.text("forget", {"name": "Ada", "whole": True, "confirm": True})
    assert "There is no entity Ada" in client.text("open", {"names": ["Ada"]})


def conflicting(client: Client) -> None:
    """Make a change that can be undone in part only: change 2 adds to what change 1 created."""
    client.text(
        "remember", {"entities": [{"name": "Ada", "facts": ["drinks tea"]}, {"name": "Bob"}]}
    )
    client.text("remember", {"entities": [{"name": "Ada", "facts": ["lives in Paris"]}]})


def test_a_user_may_undo_what_has_no_conflict(memory: Memory) -> None:
    client = agreeing(memory, YES)
    conflicting(client)
    client.text("undo", {"changes": [1]})
    (asked,) = client.asked
    assert asked["message"].startswith("Undo change 1 except for what was changed since?")
    assert "1 fact was added since by default:2" in asked["message"]
    text = client.text("open", {"names": ["Ada", "Bob"]})
    assert "lives in Paris" in text
    assert "There is no entity Bob" in text


def test_a_user_who_declines_an_undo_keeps_everything(memory: Memory) -> None:
    client = agreeing(memory, NO)
    conflicting(client)
    assert "the user declined; nothing was undone" in client.error("undo", {"changes": [1]})
    assert "Bob (thing)" in client.text("open", {"names": ["Bob"]})


def test_an_undo_without_conflicts_asks_nothing(memory: Memory) -> None:
    client = agreeing(memory, NO)
    conflicting(client)
    client.text("undo", {"changes": [2]})
    client.text("undo", {"changes": [1], "skip_conflicts": True})
    assert client.asked == []


@pytest.mark.parametrize("answer", [YES, NO], ids=["agrees", "declines"])
def test_a_workspace_is_deleted_only_with_the_users_consent(tmp_path: Any, answer: JSON) -> None:
    workspaces = open_workspaces(f"{tmp_path}/store/")
    dialect = open_dialect("native", ServerRules(toolsets=("admin",)))
    client = agreeing(Server(dialect, workspaces, workspace="app"), answer)
    client.text("manage_workspace", {"action": "create", "name": "old"})
    result = client.call("manage_workspace", {"action": "delete", "name": "old"})
    assert result.get("isError", False) == (answer is NO)
    assert client.asked[0]["message"] == "Delete the workspace old with everything in it?"
    plain = Client("native", Server(dialect, workspaces, workspace="app"))
    assert "pass confirm: true" in plain.error(
        "manage_workspace", {"action": "delete", "name": "app"}
    )
    workspaces.close()


def test_the_progress_of_a_review_increases(memory: Memory) -> None:
    client = Client("native", memory)
    client.text(
        "remember", {"entities": [{"name": f"e{number}", "facts": ["a"]} for number in range(30)]}
    )
    client.session.outbox.clear()
    client.request("tools/call", name="review", arguments={}, _meta={"progressToken": "p"})
    told = [decode(item)["params"]["progress"] for item in client.session.outbox]
    assert len(told) > 1
    assert all(earlier < later for earlier, later in itertools.pairwise(told))
