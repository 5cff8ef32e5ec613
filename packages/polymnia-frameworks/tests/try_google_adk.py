"""Store a session of ADK, search it as its user and as another, and delete a memory."""

import asyncio

from google.adk.cli.service_registry import get_service_registry
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai.types import Content, Part
from memory import open_memory

from polymnia_frameworks.google_adk import PolymniaMemoryService, register


def said(author, text, timestamp):
    content = Content(role="user", parts=[Part(text=text), Part(text="a thought", thought=True)])
    return Event(author=author, content=content, timestamp=timestamp)


async def texts(service, query, user="ada"):
    reply = await service.search_memory(app_name="shop", user_id=user, query=query)
    return [(entry.author, entry.content.parts[0].text) for entry in reply.memories]


async def main(memory):
    service = PolymniaMemoryService(memory)
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="shop", user_id="ada")
    await sessions.append_event(session, said("user", "I am allergic to peanuts", 1_760_000_000))
    await sessions.append_event(session, said("clerk", "I will note the allergy", 1_760_000_060))
    await service.add_session_to_memory(session)
    await service.add_session_to_memory(session)
    found = await texts(service, "what is the user allergic to?")
    assert found[0] == ("user", "I am allergic to peanuts"), found
    assert len(found) == len(set(found)), found
    assert await texts(service, "what is the user allergic to?", user="bob") == []

    entry = MemoryEntry(content=Content(parts=[Part(text="Likes rye bread")]), author="clerk")
    await service.add_memory(app_name="shop", user_id="ada", memories=[entry])
    reply = await service.search_memory(app_name="shop", user_id="ada", query="rye bread")
    best = reply.memories[0]
    assert (best.author, best.content.parts[0].text) == ("clerk", "Likes rye bread"), best
    first = await service.search_memory(app_name="shop", user_id="ada", query="allergic peanuts")
    assert first.memories[0].timestamp.startswith("2025-10-09T08:53"), first.memories[0]

    await service.delete_memory(app_name="shop", user_id="ada", memory_id=best.id)
    assert ("clerk", "Likes rye bread") not in await texts(service, "rye bread")
    try:
        await service.delete_memory(app_name="shop", user_id="bob", memory_id=first.memories[0].id)
        raise AssertionError("another user's memory was deleted")
    except ValueError:
        pass

    register(memory)
    service = get_service_registry().create_memory_service("polymnia://team", agents_dir=".")
    assert (await texts(service, "peanuts"))[0][1] == "I am allergic to peanuts"


with open_memory() as memory:
    asyncio.run(main(memory))
print("passed")
