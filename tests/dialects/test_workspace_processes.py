"""Several processes append to one node at the same time.

Every ordinal is given once, and none is left out.
"""

import json
import subprocess
import sys

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft
from polymnia.stores import open_store
from tests.processes import TIMEOUT_S

PROCESSES, CALLS, TEXTS = 4, 25, 3
APPEND = f"""
import json, sys
from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.model import FactAddition
from polymnia.stores import open_store
url, name = sys.argv[1:]
store = open_store(url)
given = {{}}
for call in range({CALLS}):
    texts = tuple(f"{{name}} {{call}} {{number}}" for number in range({TEXTS}))
    (added,) = facts.add(Memory(store), [FactAddition("Ann", texts)], by=name)
    given |= {{each.ordinal: each.text for each in added.facts}}
store.close()
print(json.dumps(given))
"""


def test_ordinals_are_unique_and_in_order_whoever_appends(versioned_url: str) -> None:
    store = open_store(versioned_url)
    entities.create(Memory(store), [EntityDraft("Ann", "person")], by="test")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND, versioned_url, f"p{number}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    given: dict[int, str] = {}
    for process in running:
        out, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
        said = {int(ordinal): text for ordinal, text in json.loads(out).items()}
        assert not said.keys() & given.keys()
        given |= said
    (ann,) = entities.open_named(Memory(store), ["Ann"]).entities
    assert {fact.ordinal: fact.text for fact in ann.facts} == given
    assert sorted(given) == list(range(1, PROCESSES * CALLS * TEXTS + 1))
    store.close()
