"""What a client received, in one form for all SDKs."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tests.processes import TIMEOUT_S

from .conversation import CALLS, GRAPH_URI, JSON, REFUSALS, STEPS, WRITES
from .server import Place

"""Seconds to wait for a message before a test fails; a healthy server needs milliseconds."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one tool call."""

    text: str
    structured: JSON | None
    is_error: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that one client received in the conversation."""

    revision: str
    tools: dict[str, JSON]
    replies: tuple[Reply, ...]
    resources: tuple[JSON, ...]
    contents: tuple[JSON, ...]

    @property
    def accepted(self) -> tuple[Reply, ...]:
        return self.replies[: len(STEPS)]

    @property
    def failed(self) -> Reply:
        return self.replies[len(STEPS)]

    @property
    def refused(self) -> tuple[Reply, ...]:
        return self.replies[len(STEPS) + 1 :][: len(REFUSALS)]

    @property
    def last(self) -> Reply:
        return self.replies[-1]


@dataclass(frozen=True, slots=True)
class Watch:
    """The URIs of the resources announced as updated before, during and after a subscription."""

    before: tuple[str, ...]
    during: tuple[str, ...]
    after: tuple[str, ...]


def parse_reply(result: JSON) -> Reply:
    [block] = result["content"]
    return Reply(block["text"], result.get("structuredContent"), result.get("isError", False))


def parse_transcript(heard: JSON) -> Transcript:
    return Transcript(
        revision=heard["revision"],
        tools={tool["name"]: tool for tool in heard["tools"]},
        replies=tuple(parse_reply(result) for result in heard["replies"]),
        resources=tuple(heard["resources"]),
        contents=tuple(heard["contents"]),
    )


def play_with(script: Sequence[str], server: Place, mode: str) -> Transcript:
    """Run the conversation in a client script."""
    calls = [asdict(call) for call in CALLS]
    return parse_transcript(run(script, {"task": "play", "mode": mode, "calls": calls}, server))


def watch_with(script: Sequence[str], server: Place, mode: str) -> Watch:
    """Subscribe to the graph and write to it in a client script."""
    writes = [asdict(write) for write in WRITES]
    heard = run(script, {"task": "watch", "mode": mode, "writes": writes}, server)
    return Watch(tuple(heard["before"]), tuple(heard["during"]), tuple(heard["after"]))


def run(script: Sequence[str], request: JSON, server: Place) -> JSON:
    """Run a client script and return what it prints; its errors go to the test's own stderr."""
    request = {**request, "server": asdict(server), "uri": GRAPH_URI, "patience": TIMEOUT_S}
    done = subprocess.run(
        script,
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=3 * TIMEOUT_S,
    )
    assert done.returncode == 0, f"{script[-1]} ended with {done.returncode}; see its stderr"
    heard: JSON = json.loads(done.stdout)
    return heard
