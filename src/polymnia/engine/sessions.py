"""The life of a session's notes: they last while a conversation uses them, and no longer."""

from time import time_ns

from polymnia.engine.memory import Memory, Transaction
from polymnia.engine.notes import held
from polymnia.model import Rows

# A session that clients without a connection name for themselves ends when none of them has written to it for so long.
_UNUSED = 24 * 3600 * 1_000_000


def leave(memory: Memory, seat: str, *, by: str, keep: bool = False) -> None:
    """A conversation is over: the notes of sessions that nobody else uses go, unless they are to be kept."""
    with memory.reading() as read:
        if not held(memory, read).attends(seat):
            return
    with memory.writing("end_session", by) as transaction:
        held(memory, transaction.read).leave(seat)
        if not keep:
            _forget_abandoned(memory, transaction)


def sweep(memory: Memory, *, by: str) -> None:
    """Delete what sessions left behind whose server was killed; those of servers that run are left alone."""
    with memory.reading() as read:
        if not held(memory, read).abandoned():
            return
    with memory.writing("end_session", by) as transaction:
        held(memory, transaction.read).leave("", unused_since=0)
        _forget_abandoned(memory, transaction)


def expire(memory: Memory, *, by: str) -> None:
    """Delete the notes of sessions that were named for themselves and have not been written to for a day."""
    long_ago = time_ns() // 1000 - _UNUSED
    with memory.reading() as read:
        if not held(memory, read).attends("", unused_since=long_ago):
            return
    with memory.writing("end_session", by) as transaction:
        held(memory, transaction.read).leave("", unused_since=long_ago)
        _forget_abandoned(memory, transaction)


def _forget_abandoned(memory: Memory, transaction: Transaction) -> None:
    notes = held(memory, transaction.read)
    doomed = [note for scope in notes.abandoned() for note in notes.like(scope, key=None, tags=(), before=None)]
    transaction.apply(before=Rows(notes=tuple(doomed)))
