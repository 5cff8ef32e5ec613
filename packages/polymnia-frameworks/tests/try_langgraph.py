"""Compare the store with LangGraph's own in every operation, then try expiry and search."""

import asyncio
import time

from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from memory import open_memory

from polymnia_frameworks.langgraph import PolymniaStore

USERS, DOCS = ("users", "1"), ("docs",)


def run_all(store):
    """Return what a store answers to the same operations."""
    answers = []
    for number in range(6):
        store.put(("users", str(number % 3)), f"key {number}/%", {"n": number, "of": {"a": [1]}})
    store.put(USERS, "key 1/%", {"n": 10, "name": "É"})
    store.delete(("users", "0"), "key 0/%")
    store.delete(("users", "0"), "unknown")
    answers.append(store.get(USERS, "key 1/%").value)
    answers.append(store.get(USERS, "unknown"))
    filters = [{}, {"n": 4}, {"n": {"$gt": 3}}, {"n": {"$gte": 4, "$lt": 10}}, {"n": {"$ne": 4}}]
    filters += [{"of": {"a": [1]}}, {"name": {"$eq": "É"}}]
    for prefix in ((), ("users",), ("users", "1"), ("user",)):
        for conditions in filters:
            items = store.search(prefix, filter=conditions, limit=50)
            answers.append(sorted((item.namespace, item.key, item.value["n"]) for item in items))
    answers.append(len(store.search(("users",), limit=2)))
    answers.append(len(store.search(("users",), limit=10, offset=4)))
    answers.append(store.list_namespaces())
    answers.append(store.list_namespaces(prefix=("users",), max_depth=1))
    answers.append(store.list_namespaces(suffix=("2",)))
    answers.append(store.list_namespaces(prefix=("*", "1")))
    answers.append(store.list_namespaces(limit=1, offset=1))
    # Reads of a batch see what was there before it, and the last put counts.
    put = PutOp(USERS, "key 1/%", {"n": 11})
    batch = [GetOp(USERS, "key 1/%"), put, PutOp(USERS, "key 1/%", {"n": 12}), SearchOp(USERS)]
    read, *_ = store.batch(batch)
    answers.append((read.value["n"], store.get(USERS, "key 1/%").value["n"]))
    answers.append(asyncio.run(store.aget(USERS, "key 1/%")).value)
    return answers


def refuses_a_dotted_label(store):
    try:
        store.batch([GetOp(("a.b",), "key")])
    except InvalidNamespaceError:
        return True
    return False


with open_memory() as memory:
    store = PolymniaStore(memory)
    assert run_all(store) == run_all(InMemoryStore())
    assert refuses_a_dotted_label(store)

    store.put(DOCS, "python", {"text": "A tutorial about Python programming"})
    store.put(DOCS, "bread", {"text": "How to bake bread at home"})
    store.put(DOCS, "hidden", {"text": "Python programming, but not searched"}, index=False)
    hits = store.search(DOCS, query="programming in Python")
    assert (hits[0].key, hits[0].score is not None) == ("python", True), hits
    assert {hit.key: hit.score for hit in hits}["hidden"] is None
    assert [hit.key for hit in store.search(DOCS, query="baking bread", limit=1)] == ["bread"]

    created = store.get(DOCS, "bread").created_at
    store.put(DOCS, "bread", {"text": "Rye"})
    assert store.get(DOCS, "bread").created_at == created < store.get(DOCS, "bread").updated_at

    store.put(DOCS, "gone", {"text": "old"}, ttl=-1)
    assert store.get(DOCS, "gone") is None
    assert "gone" not in {item.key for item in store.search(DOCS)}
    store.put(DOCS, "kept", {"text": "new"}, ttl=60)
    before = [tag for tag in memory.notes.get("langgraph/docs/kept").tags if "expires" in tag]
    time.sleep(0.002)
    store.get(DOCS, "kept", refresh_ttl=False)
    assert before[0] in memory.notes.get("langgraph/docs/kept").tags
    store.get(DOCS, "kept")
    assert before[0] not in memory.notes.get("langgraph/docs/kept").tags
    assert store.sweep_ttl() == 1
    assert memory.notes.get("langgraph/docs/gone") is None
print("passed")
