"""Run an agent with a session, with a model that is scripted, and compare it with the SDK's own."""

import asyncio

from agents import Agent, Model, ModelResponse, Runner, SQLiteSession, Usage
from agents.memory import Session
from memory import open_memory
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from polymnia_frameworks.openai_agents import PolymniaSession


class Scripted(Model):
    """Answers with the number of items that it was given."""

    async def get_response(self, *arguments, **options):
        given = options.get("input", arguments[1] if len(arguments) > 1 else [])
        text = f"{len(given)} items"
        content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
        message = ResponseOutputMessage(
            id="m", content=content, role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *arguments, **options):
        raise NotImplementedError


async def converse(session):
    agent = Agent(name="clerk", model=Scripted())
    first = await Runner.run(agent, "Hello", session=session)
    second = await Runner.run(agent, "And now?", session=session)
    outputs = [first.final_output, second.final_output]
    items = await session.get_items()
    latest = await session.get_items(limit=2)
    popped = await session.pop_item()
    left = await session.get_items()
    await session.clear_session()
    cleared = [await session.get_items(), await session.pop_item()]
    return [outputs, items, latest, popped, left, cleared]


async def main(memory):
    session = PolymniaSession(memory, "user/1")
    assert isinstance(session, Session)
    ours = await converse(session)
    assert ours == await converse(SQLiteSession("user/1")), ours
    await session.add_items([{"role": "user", "content": "kept"}])
    await PolymniaSession(memory, "user").add_items([{"role": "user", "content": "other"}])
    again = PolymniaSession(memory, "user/1")
    assert [item["content"] for item in await again.get_items()] == ["kept"]


with open_memory() as memory:
    asyncio.run(main(memory))
print("passed")
