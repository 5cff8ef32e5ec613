"""PgBouncer in front of the database: session mode works, transaction mode is recognized."""

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.pgbouncer import pooled


def test_a_pooler_in_session_mode_works(postgres_database: str) -> None:
    with pooled(postgres_database, "session") as url:
        memory = Memory(open_store(url))
        entities.create(memory, [EntityDraft("Ann", "person", ("likes tea",))], by="test")
        (ann,) = entities.open_named(memory, ["Ann"]).entities
        assert ann.texts == ("likes tea",)
        memory.store.close()


def test_a_pooler_in_transaction_mode_is_refused_with_a_sentence(postgres_database: str) -> None:
    expected = "is a pooler in transaction mode.*pool_mode = session"
    with pooled(postgres_database, "transaction") as url:
        for _ in range(3):  # with a new pool, and with backends that were used before
            with pytest.raises(StoreError, match=expected):
                open_store(url)
