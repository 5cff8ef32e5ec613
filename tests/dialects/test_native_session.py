"""What the native dialect is for.

A new user's ten questions, a whole session, and memory written by any dialect.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from polymnia.dialects import DIALECTS
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import Meaning, PendingQuestion, SharedEmbedder
from polymnia.stores import open_store
from tests.conftest import STORES
from tests.dialects import agents_page
from tests.dialects.conversation import Client
from tests.dialects.trial import QUESTIONS, REMEMBERED


@pytest.fixture
def memory(versioned_url: str) -> Iterator[Memory]:
    store = open_store(versioned_url)
    yield Memory(store)
    store.close()


class PatientMeaning(Meaning):
    """Waits for a question's vector, however busy the machine is."""

    def _start(self, questions: Sequence[str], timeout: float) -> PendingQuestion:
        return super()._start(questions, 60)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a memory that is searched by words and by the local model, all of it embedded."""
    store = open_store(str(tmp_path_factory.mktemp("trial") / "memory.db"))
    meaning = PatientMeaning(SharedEmbedder("local"))
    client = Client("native", Memory(store, meaning))
    client.text("remember", {"entities": REMEMBERED})
    meaning.index(store)
    yield client
    meaning.close()
    store.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_new_users_question_finds_the_fact_first(searched: Client, question: str) -> None:
    first, *_ = searched.items("recall", {"query": question})
    assert QUESTIONS[question] in first["text"]


def test_a_session_from_briefing_to_history(memory: Memory) -> None:
    client = Client("native", memory)
    assert "0 entities" in client.text("briefing")
    client.text(
        "remember",
        {
            "entities": REMEMBERED,
            "relations": [{"from": "Ada", "type": "owns", "to": "deployment"}],
        },
    )
    assert "Lisbon" in client.text("recall", {"query": "When did Ben move?"})
    client.text(
        "revise", {"name": "Ben", "facts": [{"old": "2", "new": "moved to Porto in June 2026"}]}
    )
    client.text("forget", {"name": "Ada", "facts": ["prefers Python to Java"]})
    receipt = client.text("forget", {"name": "style", "whole": True, "confirm": True})
    change = receipt.split()[0]
    assert "There is no entity style" in client.text("open", {"names": ["style"]})
    client.text("undo", {"changes": [change]})
    assert "120 characters" in client.text("open", {"names": ["style"]})
    operations = re.findall(r"^- .*?, test, (\w+):", client.text("history"), re.M)
    assert operations == ["undo", "forget", "forget", "revise", "remember"]
    ben = client.text("open", {"names": ["Ben"]})
    assert "Porto" in ben
    assert "Lisbon" not in ben
    assert "Lisbon" in client.text("open", {"names": ["Ben"], "superseded": True})
    assert "Python" not in client.text("open", {"names": ["Ada"]})
    assert "Ada -owns-> deployment" in client.text("explore", {"name": "deployment"})


@pytest.mark.parametrize("kind", STORES)
def test_the_core_works_on_every_store(kind: str, tmp_path: Path) -> None:
    memory = Memory(open_store(STORES[kind](tmp_path)))
    client = Client("native", memory)
    client.text("remember", {"entities": REMEMBERED})
    assert "dark coffee" in client.text("recall", {"query": "What does Ada drink?"})
    client.text("revise", {"name": "Ada", "rename": "Ada L."})
    assert "dark coffee" in client.text("open", {"names": ["Ada L."]})
    assert "6 entities" in client.text("briefing")
    memory.store.close()


ENTITY = {"name": "Grace", "entityType": "person", "observations": ["invented the zebracompiler"]}
# How each dialect writes that Grace invented the zebracompiler, and how it is found again.
WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "native": (
        "remember",
        {
            "entities": [
                {"name": "Grace", "type": "person", "facts": ["invented the zebracompiler"]}
            ]
        },
    ),
    "reference": ("create_entities", {"entities": [ENTITY]}),
    "graph": ("create_entities", {"entities": [ENTITY]}),
    "project": (
        "create_entities",
        {
            "entities": [
                {
                    "name": "Grace",
                    "entity_type": "person",
                    "observations": ["invented the zebracompiler"],
                }
            ]
        },
    ),
    "vault": (
        "commit_memory",
        {"key": "Grace", "content": "invented the zebracompiler", "scope": "vault"},
    ),
}
READS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("recall", {"query": "zebracompiler"}),
    "reference": ("search_nodes", {"query": "zebracompiler"}),
    "graph": ("search_nodes", {"query": "zebracompiler"}),
    "project": ("search_nodes", {"query": "zebracompiler"}),
    "vault": ("search_memories", {"query": "zebracompiler"}),
}
WRITES["workspace"] = WRITES["project"]
READS["workspace"] = ("search_nodes", {"query": "zebracompiler", "mode": "text"})
PAIRS = [(writer, reader) for writer in sorted(DIALECTS) for reader in sorted(DIALECTS)]


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_what_one_dialect_writes_every_other_one_finds(
    memory: Memory, writer: str, reader: str
) -> None:
    tool, arguments = WRITES[writer]
    Client(writer, memory).text(tool, arguments)
    tool, arguments = READS[reader]
    found = Client(reader, memory).call(tool, arguments)
    assert "invented the zebracompiler" in "\n".join([item["text"] for item in found["content"]])


@pytest.mark.parametrize("reader", ["graph", "project", "reference", "workspace"])
def test_a_note_is_shown_beside_the_entities_not_as_one_of_them(
    memory: Memory, reader: str
) -> None:
    tool, arguments = READS[reader]
    before = Client(reader, memory).call(tool, arguments)
    Client("vault", memory).text(*WRITES["vault"])
    found = Client(reader, memory).call(tool, arguments)
    assert (found["content"][0], found.get("structuredContent")) == (
        before["content"][0],
        before.get("structuredContent"),
    )
    assert found["content"][1]["text"].endswith(":\n- Grace: invented the zebracompiler")


@pytest.mark.parametrize("query", ["", "*", "nothing of the kind"])
def test_other_searches_show_no_notes(memory: Memory, query: str) -> None:
    Client("vault", memory).text(*WRITES["vault"])
    assert len(Client("reference", memory).call("search_nodes", {"query": query})["content"]) == 1


def test_the_session_on_the_page_for_agents_is_what_a_server_replies() -> None:
    shown = agents_page.session(agents_page.PAGE.read_text("utf-8"))
    assert len(shown) >= 10
    assert agents_page.replies([request for request, _ in shown]) == [reply for _, reply in shown]
