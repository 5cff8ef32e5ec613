"""Facts and entities that move to another workspace, and undo across workspaces."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.json import decode

from polymnia.dialects import open_dialect
from polymnia.engine.workspaces import open_workspaces
from polymnia.mcp.server import Server
from tests.dialects.conversation import Client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    workspaces = open_workspaces(f"{tmp_path}/store/")
    yield Client("native", Server(open_dialect("native"), workspaces, workspace="shop"))
    workspaces.close()


def remember(client: Client, name: str, *facts: str, workspace: str = "", when: str = "") -> str:
    entity = {"name": name, "type": "person", "facts": list(facts), "when": when}
    return client.text("remember", {"entities": [entity], "workspace": workspace})


def test_a_misfiled_fact_moves_with_its_date(client: Client) -> None:
    remember(client, "user", "On holiday in May", "Owns the parser", when="2020-11-02")
    reply = client.text("revise", {"name": "user", "facts": [{"old": "#1"}], "move_to": "personal"})
    assert reply.startswith("shop:2 moved to personal: user #1 (personal:1), with authors")
    there = client.text("open", {"names": ["user"], "workspace": "personal"})
    assert "On holiday in May [Mon 2 Nov 2020]" in there
    assert "Owns the parser" not in there
    assert "holiday" not in client.text("open", {"names": ["user"], "workspace": "shop"})


def test_an_entity_moves_with_its_numbers_tags_and_relations(client: Client) -> None:
    remember(client, "Ada", "drinks tea", "plays chess")
    client.text("forget", {"name": "Ada", "facts": ["#1"]})
    client.text("revise", {"name": "Ada", "add_tags": ["pinned"]})
    client.text("remember", {"relations": [{"from": "Ada", "type": "knows", "to": "Ben"}]})
    client.text("revise", {"name": "Ada", "move_to": "personal"})
    there = client.text("open", {"names": ["Ada"], "workspace": "personal"})
    for part in ("#2 plays chess", "(person), tags: pinned", "this -knows-> Ben"):
        assert part in there
    assert "There is no entity Ada" in client.text("open", {"names": ["Ada"], "workspace": "shop"})


def test_a_move_keeps_who_wrote_a_fact(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    other = Client("native", client.session.server)
    other.request(
        "initialize", protocolVersion="2025-11-25", clientInfo={"name": "codex", "version": "1"}
    )
    other.text("revise", {"name": "Ada", "move_to": "personal"})
    assert "by test, unless noted" in client.text("open", {"names": ["Ada"]})


def test_what_the_other_workspace_knows_already_is_not_repeated(client: Client) -> None:
    remember(client, "Ada", "drinks tea", workspace="personal")
    remember(client, "Ada", "drinks tea", "plays chess")
    reply = client.text("revise", {"name": "Ada", "move_to": "personal"})
    assert "Ada with 1 fact (1 known there)" in reply
    assert client.text("open", {"names": ["Ada"]}).count("  #") == 2


def test_a_move_is_taken_back_by_the_call_that_its_receipt_gives(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    reply = client.text("revise", {"name": "Ada", "move_to": "personal"})
    call = reply[reply.index("undo {") + len("undo ") :]
    client.text("undo", decode(call))
    opened = client.text("open", {"names": ["Ada"]})
    assert "In shop, by test, unless noted.\nAda (person)\n  #1 drinks tea" in opened
    assert "personal" not in opened


@pytest.mark.parametrize(("half", "other"), [("shop:2", "personal:1"), ("personal:1", "shop:2")])
def test_half_of_a_move_is_not_undone(client: Client, half: str, other: str) -> None:
    remember(client, "Ada", "drinks tea")
    client.text("revise", {"name": "Ada", "move_to": "personal"})
    refusal = client.error("undo", {"changes": [half]})
    assert f'undo {{"changes":["{half}","{other}"]}}' in refusal


def test_all_since_a_time_does_not_undo_half_of_a_move(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    client.text("revise", {"name": "Ada", "move_to": "personal"})
    refusal = client.error("undo", {"since": "1d"})
    assert "shop:2 is half of a move between workspaces, personal:1 is the other" in refusal


def test_a_move_to_where_it_is_changes_nothing(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    assert "already" in client.error("revise", {"name": "Ada", "move_to": "shop"})


def test_a_move_takes_no_new_text(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    facts = [{"old": "#1", "new": "drinks coffee"}]
    call = {"name": "Ada", "facts": facts, "move_to": "personal"}
    assert "only which to move" in client.error("revise", call)


def test_a_number_that_two_workspaces_have_is_not_undone(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    remember(client, "Ben", "drinks coffee", workspace="personal")
    refusal = "1 is a change in 2 workspaces: pass shop:1 (remember, test) or personal:1"
    assert refusal in client.error("undo", {"changes": [1]})


def test_a_number_that_one_workspace_has_is_enough(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    remember(client, "Ben", "drinks coffee", workspace="personal")
    remember(client, "Ben", "drinks water", workspace="personal")
    assert "undid personal:2" in client.text("undo", {"changes": [2]})


def test_a_move_with_a_conflict_is_undone_in_neither_workspace(client: Client) -> None:
    remember(client, "Ada", "drinks tea")
    client.text("revise", {"name": "Ada", "move_to": "personal"})
    remember(client, "Ada", "is a ship", workspace="shop")
    call = {"changes": ["shop:2", "personal:1"], "skip_conflicts": True}
    reply = client.text("undo", call)
    assert "the entity Ada: there is another entity Ada now by shop:3" in reply
    assert "drinks tea" in client.text("open", {"names": ["Ada"], "workspace": "personal"})
    assert "is a ship" in client.text("open", {"names": ["Ada"], "workspace": "shop"})
