"""How much a process holds at once: bodies beyond it are refused, answers beyond it cost the slowest theirs."""

from contextlib import AbstractContextManager

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


def sending(room: Room, caller: Caller, size: int, moved_at: float) -> AbstractContextManager[None]:
    caller.visit.moved_at = moved_at
    return room.leaving(caller.visit, size)


def test_answers_beyond_the_room_cost_who_takes_nothing_their_connection() -> None:
    room = Room(100)
    stuck, moving = Caller(), Caller()
    with sending(room, stuck, 60, 10.0), sending(room, moving, 60, 15.0):
        room.relieve(16.0)
        assert (stuck.is_cut_off, moving.is_cut_off) == (True, False)


def test_no_more_are_let_go_than_have_to_be() -> None:
    room = Room(100)
    first, second, third = Caller(), Caller(), Caller()
    with sending(room, first, 40, 1.0), sending(room, second, 40, 1.0), sending(room, third, 40, 1.0):
        room.relieve(100.0)
        assert [each.is_cut_off for each in (first, second, third)] == [True, False, False]


def test_with_room_enough_nobody_is_let_go() -> None:
    room = Room(100)
    stuck = Caller()
    with sending(room, stuck, 100, 1.0):
        room.relieve(100.0)
    with sending(room, Caller(), 100, 1.0):
        room.relieve(100.0)
    assert not stuck.is_cut_off
