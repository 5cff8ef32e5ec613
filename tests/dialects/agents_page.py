"""The session in docs/agents.md.

`python -m tests.dialects.agents_page` writes its replies into the page.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.json import decode

from polymnia.engine.memory import Memory
from polymnia.stores import open_store
from tests.dialects.conversation import Client

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
_EXCHANGE = re.compile(
    r"```json\n(?P<request>\{\"tool\".*?\})\n```\n\n```text\n(?P<reply>.*?)\n```", re.DOTALL
)
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\dZ")
_SHOWN_TIME = "2026-11-16T09:30Z"
_TODAY = re.compile(r"(Today|noted|write) [A-Z][a-z]{2} \d+ [A-Z][a-z]{2}")
_SHOWN_TODAY = r"\1 Mon 16 Nov"
_MINUTE = re.compile(r", [A-Z][a-z]{2} \d+ [A-Z][a-z]{2}(?: \d\d:\d\d)?, ")
_SHOWN_MINUTE = ", Mon 16 Nov 09:30, "


def session(text: str) -> list[tuple[str, str]]:
    """Return the requests and replies on the page."""
    return [(found["request"], found["reply"]) for found in _EXCHANGE.finditer(text)]


def replies(requests: list[str]) -> list[str]:
    """Return what a server with an empty memory replies to the requests, with one time for all."""
    with TemporaryDirectory() as directory:
        memory = Memory(open_store(str(Path(directory) / "memory.db")))
        client = Client("native", memory)
        calls = [decode(request) for request in requests]
        found = []
        for call in calls:
            reply = client.text(call["tool"], call["arguments"])
            reply = _MINUTE.sub(_SHOWN_MINUTE, _TIME.sub(_SHOWN_TIME, reply))
            found.append(_TODAY.sub(_SHOWN_TODAY, reply))
        memory.store.close()
    return found


def rewrite() -> None:
    text = PAGE.read_text("utf-8")
    given = iter(replies([request for request, _ in session(text)]))
    PAGE.write_text(
        _EXCHANGE.sub(
            lambda found: f"```json\n{found['request']}\n```\n\n```text\n{next(given)}\n```", text
        ),
        "utf-8",
    )


if __name__ == "__main__":
    rewrite()
