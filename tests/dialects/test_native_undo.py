"""Undo over the native dialect: what stands in its way, and what it says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polymnia.dialects import open_dialect
from polymnia.engine.workspaces import open_workspaces
from polymnia.mcp.server import Server
from tests.dialects.conversation import Client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    workspaces = open_workspaces(f"{tmp_path}/store/")
    yield Client("native", Server(open_dialect("native"), workspaces, workspace="shop"))
    workspaces.close()


def remember(client: Client, name: str, *facts: str, **more: Any) -> str:
    return client.text("remember", {"name": name, "facts": list(facts), **more})


def replace(client: Client, name: str, old: str, new: str) -> str:
    return client.text("revise", {"name": name, "facts": [{"old": old, "new": new}]})


def link_gate(client: Client) -> None:
    remember(client, "gate", "Opens at 7")
    remember(client, "gate", "Opens at 8")
    replace(client, "gate", "#1", "#2")


def merge_kettles(client: Client) -> None:
    remember(client, "kettle", "Holds two litres")
    remember(client, "big kettle", "Stands in the yard")
    client.text("revise", {"name": "kettle", "merge": ["big kettle"]})


def test_a_fact_and_its_link_are_undone_together(client: Client) -> None:
    link_gate(client)
    client.text("undo", {"changes": ["shop:2", "shop:3"]})
    assert "#1 Opens at 7" in client.text("open", {"names": ["gate"]})


def test_a_fact_is_removed_if_another_one_was_linked(client: Client) -> None:
    remember(client, "gate", "Opens at 7 in summer")
    remember(client, "gate", "Opens at 8 in summer")
    remember(client, "gate", "Painted green")
    replace(client, "gate", "#1", "#2")
    assert "undid shop:3" in client.text("undo", {"changes": ["shop:3"]})


def test_a_merged_fact_that_was_replaced_since_is_a_conflict(client: Client) -> None:
    merge_kettles(client)
    replace(client, "kettle", "#2", "Stands in the kitchen")
    assert "! kettle #2 was changed since by shop:4: undo shop:4 first" in (
        client.text("undo", {"changes": ["shop:3"]})
    )


def test_a_merge_is_undone_without_what_was_replaced_since(client: Client) -> None:
    merge_kettles(client)
    replace(client, "kettle", "#2", "Stands in the kitchen")
    client.text("undo", {"changes": ["shop:3"], "skip_conflicts": True})
    assert "yard" not in client.text("open", {"names": ["kettle", "big kettle"]})


def test_a_merge_and_a_later_replacement_are_undone_together(client: Client) -> None:
    merge_kettles(client)
    replace(client, "kettle", "#2", "Stands in the kitchen")
    client.text("undo", {"changes": ["shop:3", "shop:4"]})
    assert "#1 Stands in the yard" in client.text("open", {"names": ["big kettle"]})


def test_a_merge_is_undone_though_another_fact_was_replaced_since(client: Client) -> None:
    merge_kettles(client)
    replace(client, "kettle", "#1", "Holds three litres")
    assert "undid shop:3" in client.text("undo", {"changes": ["shop:3"]})


def test_a_conflict_names_the_newest_change_in_its_way(client: Client) -> None:
    remember(client, "door", "Is red")
    edit = {"old": "#1", "new": "Is blue", "wrong": True}
    client.text("revise", {"name": "door", "facts": [edit]})
    remember(client, "window", "Is clean")
    assert "! door #1 was changed since by shop:2: undo shop:2 first, or pass skip_conflicts" in (
        client.text("undo", {"changes": ["shop:1"]})
    )


def test_a_conflict_counts_facts_that_were_added(client: Client) -> None:
    remember(client, "door", "Is red")
    remember(client, "door", "Creaks")
    assert "! the entity door: 1 fact was added since by shop:2: undo shop:2 first" in (
        client.text("undo", {"changes": ["shop:1"]})
    )


def test_a_dry_run_does_not_repeat_a_secret(client: Client) -> None:
    token = "ghp_" + "a1B2" * 9
    remember(client, "deploy", f"Uses {token}")
    planned = client.text("undo", {"changes": ["shop:1"], "dry_run": True})
    assert "- deploy #1 [hidden: a GitHub token]" in planned


def test_an_undo_names_what_the_restored_fact_contradicts(client: Client) -> None:
    remember(client, "unlock", "A lock answers within 8 seconds")
    edit = {"old": "#1", "new": "A lock answers within 12 seconds"}
    change = client.text("revise", {"name": "unlock", "facts": [edit]}).split()[0]
    remember(client, "unlock", "A lock answers within 12 seconds in the protocol")
    text = client.text("undo", {"changes": [change]})
    assert 'unlock #1 may contradict #3 "A lock answers within 12 seconds in' in text
    mend = 'revise {"name":"unlock","facts":[{"old":"#3","new":"#1"}]}'
    assert mend in text
    recalled = client.text("recall", {"query": "how many seconds does a lock have to answer?"})
    assert "within 8 seconds\n" in recalled
    assert "in the protocol [newer: #1]" in recalled
    assert mend in client.text("review", {})
