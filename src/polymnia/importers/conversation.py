"""A conversation becomes an entity, and each turn a dated fact."""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.briefing import CONVERSATION
from polymnia.importers.base import Report, title_of
from polymnia.model import Entity, Fact

_ID_LENGTH = 8
# Where a UUID has its version. Version 7 begins with the time, so only the end is distinctive.
_VERSION_AT, _TIME_FIRST = 14, "7"


class Turn(Struct, frozen=True):
    """The words of one speaker, and when they were said; 0 if that is unknown."""

    speaker: str
    text: str
    at: int


class Conversation(Struct, frozen=True):
    """A conversation to import. `source` names the program, the id is unique there.

    `project` is the name of the directory in which it took place; the entity has it as a tag.
    """

    source: str
    id: str
    title: str
    created_at: int
    summary: str = ""
    project: str = ""


def conversation_entity(
    conversation: Conversation, turns: Iterable[Turn], report: Report
) -> Entity | None:
    """Return the entity of a conversation; None if it has no turns. Report secrets.

    A turn without a time gets that of the turn before it.
    """
    source = f"{conversation.source}:{conversation.id}"
    facts: list[Fact] = []
    at = conversation.created_at
    for turn in turns:
        at = turn.at or at
        ordinal = len(facts) + 1
        text = report.screen(f"{source}, turn {ordinal}", turn.text)
        facts.append(Fact(ordinal, f"{turn.speaker}: {text}", at, at, source))
    if not facts:
        return None
    if report.screen(f"{source}, title", conversation.title) != conversation.title:
        conversation = replace(conversation, title="")
    summary = report.screen(f"{source}, summary", conversation.summary)
    return Entity(
        name_of(conversation),
        CONVERSATION,
        tuple(facts),
        next_ordinal=len(facts) + 1,
        summary=summary or None,
        tags=(conversation.project,) if conversation.project else (),
        created_at=conversation.created_at or facts[0].valid_at,
        updated_at=at,
    )


def name_of(conversation: Conversation) -> str:
    """Return a name that no other conversation has, and that is the same at every import."""
    title = title_of(conversation.title) or "Conversation"
    moment = datetime.fromtimestamp(conversation.created_at / 1_000_000, UTC)
    day = f"{moment:%Y-%m-%d}, " if conversation.created_at else ""
    is_time_first = conversation.id[_VERSION_AT : _VERSION_AT + 1] == _TIME_FIRST
    distinctive = conversation.id.rpartition("_")[2]  # OpenCode's ids begin with `ses_`
    short = distinctive[-_ID_LENGTH:] if is_time_first else distinctive[:_ID_LENGTH]
    return f"{title} ({day}{short})"
