"""With `secrets = refuse`, no text of any write of any dialect may hold a key or token."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode, encode

from polymnia.dialects.base import ServerRules
from polymnia.dialects.registry import open_dialect
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.graph import entities, relations
from polymnia.engine.history import trash, undo
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import DEFAULT, one_workspace, open_workspaces
from polymnia.errors import BadInput
from polymnia.mcp.server import Server
from polymnia.model import EntityDraft, Relation
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, names, texts
from tests.dialects.conversation import Client

# Made up for this test: the right shape with no account behind it.
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
# Calls that succeed. Each text that begins with `new` is replaced by the token in a call of its
# own.
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "native",
        "remember",
        {
            "entities": [
                {
                    "name": "new name",
                    "type": "new type",
                    "facts": ["new fact"],
                    "summary": "new summary",
                    "tags": ["new tag"],
                }
            ],
            "relations": [{"from": "new source", "to": "new target", "type": "new relation"}],
            "source": "new document",
        },
    ),
    (
        "native",
        "revise",
        {
            "name": "Ada",
            "rename": "new name",
            "type": "new type",
            "summary": "new summary",
            "add_tags": ["new tag"],
            "facts": [{"old": "1", "new": "new fact"}],
        },
    ),
    (
        "native",
        "write_note",
        {"key": "new key", "content": "new content", "tags": ["new tag"]},
    ),
    (
        "reference",
        "create_entities",
        {"entities": [{"name": "new", "entityType": "new type", "observations": ["new fact"]}]},
    ),
    (
        "reference",
        "create_relations",
        {"relations": [{"from": "new one", "to": "new other", "relationType": "new type"}]},
    ),
    (
        "reference",
        "add_observations",
        {"observations": [{"entityName": "Ada", "contents": ["new fact"]}]},
    ),
    (
        "graph",
        "upsert_entities",
        {"entities": [{"name": "new", "entityType": "new type", "observations": ["new fact"]}]},
    ),
    (
        "graph",
        "create_entities",
        {"entities": [{"name": "new", "entityType": "new type", "observations": ["new fact"]}]},
    ),
    (
        "graph",
        "add_observations",
        {"observations": [{"entityName": "Ada", "contents": ["new fact"]}]},
    ),
    (
        "graph",
        "create_relations",
        {"relations": [{"from": "Ada", "to": "Ben", "relationType": "new type"}]},
    ),
    (
        "workspace",
        "create_entities",
        {
            "entities": [
                {
                    "name": "new",
                    "entity_type": "new type",
                    "observations": ["new fact"],
                    "summary": "new summary",
                    "tags": ["new tag"],
                }
            ]
        },
    ),
    ("workspace", "set_summary", {"name": "Ada", "summary": "new summary"}),
    ("workspace", "set_tags", {"name": "Ada", "tags": ["new tag"]}),
    (
        "workspace",
        "add_observations",
        {"observations": [{"entity_name": "Ada", "contents": ["new fact"]}]},
    ),
    (
        "workspace",
        "replace_observation",
        {"entity_name": "Ada", "ordinal": 1, "new_content": "new fact"},
    ),
    (
        "workspace",
        "create_relations",
        {"relations": [{"from_entity": "Ben", "to_entity": "Ada", "relation_type": "new type"}]},
    ),
    (
        "workspace",
        "update_relation_type",
        {"from_entity": "Ada", "to_entity": "Ben", "old_type": "knows", "new_type": "new type"},
    ),
    (
        "project",
        "create_entities",
        {"entities": [{"name": "new", "entity_type": "new type", "observations": ["new fact"]}]},
    ),
    (
        "project",
        "add_observations",
        {"observations": [{"entity_name": "Ada", "contents": ["new fact"]}]},
    ),
    (
        "project",
        "create_relations",
        {"relations": [{"from": "Ben", "to": "Ada", "relation_type": "new type"}]},
    ),
    (
        "vault",
        "commit_memory",
        {
            "scope": "vault",
            "key": "new key",
            "content": "new content",
            "tags": ["new tag"],
            "embedding": [1.0, 0.0, 0.0],
        },
    ),
]


def make_cases() -> Iterator[Any]:
    for dialect, tool, arguments in CALLS:
        text = encode(arguments).decode()
        for part in [
            part for part in text.split('"') if part.startswith("new") and part != "new_content"
        ]:
            if f'"{part}":' in text:  # a field of that name
                continue
            secret = decode(text.replace(f'"{part}"', f'"{TOKEN}"', 1))
            yield pytest.param(dialect, tool, arguments, secret, id=f"{dialect} {tool}: {part}")


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def open_client(dialect: str, path: Path, *, refuses: bool) -> tuple[Memory, Client]:
    memory = Memory(open_store(str(path)), secrets="refuse" if refuses else "warn")
    drafts = [EntityDraft("Ada", "person", ("tea",)), EntityDraft("Ben", "person")]
    entities.create(memory, drafts, by=ME)
    relations.create(memory, [Relation("Ada", "Ben", "knows")], by=ME)
    server = Server(
        open_dialect(dialect, ServerRules(dimension=3, toolsets=("all",))),
        one_workspace(memory, DEFAULT),
    )
    return memory, Client(dialect, server)


@pytest.mark.parametrize(("dialect", "tool", "plain", "secret"), list(make_cases()))
def test_every_text_of_a_write_is_refused_if_it_holds_a_secret(
    dialect: str, tool: str, plain: dict[str, Any], secret: dict[str, Any], store_path: Path
) -> None:
    memory, client = open_client(dialect, store_path, refuses=True)
    refusal = client.call(tool, secret)
    assert "looks like a GitHub token" in encode(refusal).decode()
    assert not client.call(tool, plain).get("isError")
    memory.store.close()
    content = b"".join(file.read_bytes() for file in store_path.parent.iterdir() if file.is_file())
    assert TOKEN.encode() not in content


def test_the_name_and_description_of_a_workspace_are_refused_too(tmp_path: Path) -> None:
    with closing(open_workspaces(f"{tmp_path}/", secrets="refuse")) as workspaces:
        workspaces.create("plans")
        with pytest.raises(BadInput, match="looks like a GitHub token"):
            workspaces.create("other", TOKEN)
        with pytest.raises(BadInput, match="looks like a GitHub token"):
            workspaces.describe("plans", TOKEN)
        with pytest.raises(BadInput, match="looks like a GitHub token"):
            workspaces.rename("plans", f"x {TOKEN}")


def test_a_secret_that_is_stored_already_does_not_block_other_changes() -> None:
    store = open_store(":memory:")
    facts = EntityFacts(name="Ada", facts=(FactDraft(f"uses {TOKEN}"),))
    remember(Memory(store), [facts], by=ME)
    memory = Memory(store, secrets="refuse")
    remember(memory, [EntityFacts(name="Ada", tags=("person",))], by=ME)
    entities.delete(memory, ["Ada"], by=ME)
    trash.restore(memory, "Ada", by=ME)
    undo.undo(memory, [4], by=ME)
    assert names(entities.read_all(memory)) == []
    undo.undo(memory, [5], by=ME)
    assert texts(memory, "Ada") == (f"uses {TOKEN}",)
    store.close()
