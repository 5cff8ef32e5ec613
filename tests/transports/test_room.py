"""How much a process holds at once: bodies beyond it are refused, answers beyond it cost the slowest theirs."""

import pytest

from polymnia.errors import Refused
from polymnia.transports.http.visit import ABORT, Message, Room, Visit


class Caller:
    """A request, and whether its connection was ended."""

    def __init__(self) -> None:
        self.is_cut_off = False
        scope = {"method": "POST", "path": "/mcp", "query_string": b"", "headers": [], ABORT: self._cut_off}
        self.visit = Visit(scope, self._receive, self._send)

    def _cut_off(self) -> None:
        self.is_cut_off = True

    async def _receive(self) -> Message:
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        return None


def test_bodies_find_room_until_there_is_none() -> None:
    room = Room(100)
    room.take(60)
    room.take(40)
    with pytest.raises(Refused) as refusal:
        room.take(1)
    assert refusal.value.status == 503
    assert refusal.value.headers["retry-after"] == "1"
    room.taken -= 60
    room.take(60)


def test_an_empty_body_always_finds_room() -> None:
    room = Room(10)
    room.take(10)
    room.take(0)


def test_answers_beyond_the_room_cost_the_longest_under_way_their_connection() -> None:
    room = Room(100)
    first, second, third = Caller(), Caller(), Caller()
    with room.leaving(first.visit, 60), room.leaving(second.visit, 40):
        assert not first.is_cut_off
        with room.leaving(third.visit, 50):
            assert [each.is_cut_off for each in (first, second, third)] == [True, False, False]


def test_an_answer_larger_than_the_room_still_goes_out() -> None:
    room = Room(100)
    large, small = Caller(), Caller()
    with room.leaving(large.visit, 500):
        assert not large.is_cut_off
    with room.leaving(small.visit, 100):
        assert not small.is_cut_off
