"""Let Strands' own memory manager write to the store and search it."""

import asyncio

from memory import open_memory
from strands.memory import MemoryManager

from polymnia_frameworks.strands import PolymniaMemoryStore


async def main(memory):
    store = PolymniaMemoryStore(memory, entity="Ada")
    manager = MemoryManager(stores=[store])
    await manager.add("Prefers tea over coffee")
    await manager.add("Prefers tea over coffee")
    await manager.add("Deploys run on Fridays", {"metadata": {"entity": "release"}})
    entries = await manager.search("what does Ada drink: tea or coffee?")
    assert entries[0].content == "Ada: Prefers tea over coffee", entries
    assert (entries[0].store_name, entries[0].metadata["entity"]) == ("polymnia", "Ada")
    assert len([entry for entry in entries if "tea" in entry.content]) == 1
    release = await manager.search("when do we deploy?", {"max_search_results": 1})
    assert [entry.content for entry in release] == ["release: Deploys run on Fridays"]

    tool_use = {"toolUse": {"toolUseId": "1", "name": "run", "input": {}}}
    messages = [
        {"role": "user", "content": [{"text": "My cat is called Zuse"}]},
        {"role": "assistant", "content": [tool_use]},
    ]
    await store.add_messages(messages)
    found = await store.search("what is the cat called?", {"max_search_results": 1})
    assert found[0].content.endswith("user: My cat is called Zuse"), found


with open_memory() as memory:
    asyncio.run(main(memory))
print("passed")
