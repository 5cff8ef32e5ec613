"""The same conversation over stdio, TCP, streamable HTTP and SSE.

Every byte of every reply is the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.groups import mostly_matrix
from tests.transports.script import Line, with_a_handshake, without
from tests.transports.wires import WIRES, Server

SCRIPTS = {"with a handshake": with_a_handshake, "without": without}
OTHERS = [name for name in WIRES if name != "stdio"]


class Heard(NamedTuple):
    """All that a client heard: a reply for each question, and what it was told besides."""

    replies: list[bytes]
    told: list[bytes]


Hold = Callable[[str, str], Heard]


@pytest.fixture(scope="module", params=mostly_matrix(["reference", "graph"], ["reference"]))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def hold(dialect: str, tmp_path_factory: pytest.TempPathFactory) -> Hold:
    """Hold a conversation over a transport, with a new server.

    A second time gives what was heard the first time.
    """
    held: dict[tuple[str, str], Heard] = {}

    def hold(transport: str, script: str) -> Heard:
        if (transport, script) not in held:
            lines = SCRIPTS[script](dialect)
            held[transport, script] = heard_over(
                transport, dialect, lines, tmp_path_factory.mktemp(transport)
            )
        return held[transport, script]

    return hold


def heard_over(transport: str, dialect: str, lines: list[Line], directory: Path) -> Heard:
    server = Server(directory, dialect, transport)
    try:
        wire = WIRES[transport](server)
        replies = []
        for line in lines:
            if line.is_answered:
                replies.append(wire.ask(line.message))
            else:
                wire.tell(line.message)
        told = wire.end()
        assert server.wait() == 0
        return Heard(replies, told)
    finally:
        server.end()


@pytest.mark.parametrize("script", mostly_matrix(SCRIPTS, unmarked=["with a handshake"]))
@pytest.mark.parametrize("transport", OTHERS)
def test_every_reply_is_the_one_that_stdio_gives(
    transport: str, script: str, dialect: str, hold: Hold
) -> None:
    questions = [line.message for line in SCRIPTS[script](dialect) if line.is_answered]
    expected = list(zip(questions, hold("stdio", script).replies, strict=True))
    assert list(zip(questions, hold(transport, script).replies, strict=True)) == expected


@pytest.mark.parametrize("script", mostly_matrix(SCRIPTS, unmarked=["with a handshake"]))
@pytest.mark.parametrize("transport", OTHERS)
def test_notifications_come_in_the_same_order_as_over_stdio(
    transport: str, script: str, hold: Hold
) -> None:
    assert hold(transport, script).told == hold("stdio", script).told


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_causes_notifications(script: str, dialect: str, hold: Hold) -> None:
    told = b"".join(hold("stdio", script).told)
    assert (b"notifications/resources/updated" in told) == (dialect == "reference")
