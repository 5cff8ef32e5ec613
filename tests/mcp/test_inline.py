"""Which messages are answered inline: those whose work is small, as far as anyone can tell beforehand or finds out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.json import encode

from polymnia.dialects.base import Dialect
from polymnia.dialects.registry import open_dialect
from polymnia.engine import entities, relations
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import OneWorkspace
from polymnia.mcp.jsonrpc import INVALID_REQUEST, Answer
from polymnia.mcp.methods import MAX_INLINE_BYTES
from polymnia.mcp.params import BATCHES
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session, parse
from polymnia.model import EntityDraft, Relation
from polymnia.stores.open import open_store
from tests.transports.running import call, request


@pytest.fixture(scope="module")
def dialect() -> Dialect:
    return open_dialect("reference")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    store = open_store(str(tmp_path / "memory.db"))
    yield Memory(store)
    store.close()


@pytest.fixture
def session(memory: Memory, dialect: Dialect) -> Session:
    return Session(Server(dialect, OneWorkspace(memory)))


def create(memory: Memory, name: str, *texts: str) -> None:
    entities.create(memory, [EntityDraft(name, "person", texts)], by="test")


def inline(session: Session, message: object) -> Answer | None:
    body = encode(message)
    return session.handle_inline(parse(body), len(body))


def read(*names: str) -> object:
    return call("open_nodes", names=list(names))


def test_a_point_read_is_answered_inline(memory: Memory, session: Session) -> None:
    create(memory, "Ada", "writes programs")
    answer = inline(session, read("Ada"))
    assert answer is not None
    assert b"writes programs" in (answer.body or b"")


def test_point_reads_stay_inline_however_many_there_are(memory: Memory, session: Session) -> None:
    create(memory, "Ada", *(f"fact {number}" for number in range(20)))
    assert all(inline(session, read("Ada")) is not None for _ in range(500))


def test_a_read_of_a_long_text_is_not_answered_inline(memory: Memory, session: Session) -> None:
    create(memory, "Ada", "x" * 1_000_000)
    assert inline(session, read("Ada")) is None


def test_a_read_of_many_observations_is_not_answered_inline(
    memory: Memory, session: Session
) -> None:
    create(memory, "Ada", *(f"fact {number}" for number in range(5_000)))
    assert inline(session, read("Ada")) is None


def test_a_read_of_many_relations_is_not_answered_inline(memory: Memory, session: Session) -> None:
    create(memory, "Ada")
    relations.create(
        memory, [Relation("Ada", f"Bob {number}", "knows") for number in range(5_000)], by="test"
    )
    assert inline(session, read("Ada")) is None


def test_what_is_not_answered_inline_is_answered_elsewhere(
    memory: Memory, session: Session
) -> None:
    create(memory, "Ada", "x" * 1_000_000)
    create(memory, "Bob", "short")
    assert inline(session, read("Ada")) is None
    assert b"x" * 1_000_000 in (session.handle(encode(read("Ada"))).body or b"")
    assert inline(session, read("Bob")) is not None


@pytest.mark.parametrize("tool", ["search_nodes", "read_graph", "create_entities"])
def test_other_tools_are_not_answered_inline(session: Session, tool: str) -> None:
    assert inline(session, call(tool)) is None


def test_a_long_message_is_not_answered_inline(session: Session) -> None:
    assert inline(session, read(*["x" * 100] * (MAX_INLINE_BYTES // 100))) is None
    ping = encode(request("ping"))
    assert session.handle_inline(parse(ping), len(ping)) is not None
    assert session.handle_inline(parse(ping), MAX_INLINE_BYTES + 1) is None


@pytest.mark.parametrize("batch", [[], [request("ping")]])
def test_a_batch_is_not_answered_inline(session: Session, batch: list[object]) -> None:
    session.revision = BATCHES
    assert inline(session, batch) is None


def test_a_batch_in_a_revision_without_batches_is_refused_inline(session: Session) -> None:
    answer = inline(session, [request("ping")])
    assert answer is not None
    assert answer.error_code == INVALID_REQUEST


def test_reads_of_a_store_that_may_wait_are_not_answered_inline(
    dialect: Dialect, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "memory.jsonl"))
    session = Session(Server(dialect, OneWorkspace(Memory(store))))
    assert inline(session, read("Ada")) is None
    store.close()
