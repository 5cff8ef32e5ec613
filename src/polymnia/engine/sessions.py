"""Verbs on sessions: delete their notes when no conversation uses them any more."""

from time import time_ns

from polymnia.engine.memory import Memory, Transaction
from polymnia.engine.notes import require
from polymnia.model import Rows

# Clients without a connection name their session in each request. It ends when no client has used it for a day.
UNUSED_LIFETIME_US = 24 * 3600 * 1_000_000


def leave(memory: Memory, member: str, *, by: str, keep: bool = False) -> None:
    """End a conversation. Delete the notes of sessions that no other conversation uses, unless they are persistent."""
    require(memory)
    with memory.reading() as read:
        if not read.sessions.has_joined(member):
            return
    with memory.writing("end_session", by) as transaction:
        transaction.read.sessions.leave(member)
        if not keep:
            _delete_abandoned(transaction)


def sweep(memory: Memory, *, by: str) -> None:
    """Delete the notes that sessions of killed servers left behind."""
    require(memory)
    with memory.reading() as read:
        if not read.sessions.abandoned():
            return
    with memory.writing("end_session", by) as transaction:
        transaction.read.sessions.leave("", unused_since=0)
        _delete_abandoned(transaction)


def expire(memory: Memory, *, by: str) -> None:
    """Delete the notes of sessions that clients named themselves and have not used for a day."""
    require(memory)
    long_ago = time_ns() // 1000 - UNUSED_LIFETIME_US
    with memory.reading() as read:
        if not read.sessions.has_joined("", unused_since=long_ago):
            return
    with memory.writing("end_session", by) as transaction:
        transaction.read.sessions.leave("", unused_since=long_ago)
        _delete_abandoned(transaction)


def _delete_abandoned(transaction: Transaction) -> None:
    read = transaction.read
    notes = [
        note
        for scope in read.sessions.abandoned()
        for note in read.notes.like(scope, key=None, tags=(), before=None)
    ]
    transaction.apply(before=Rows(notes=tuple(notes)))
