"""Read LongMemEval's files: a user's sessions with an assistant, and questions about them."""

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import json

from bench.recall.questions import Asked, Case, Told

# Who says a turn becomes the entity it belongs to.
USER, ASSISTANT = "user", "assistant"


def is_longmemeval(samples: Any) -> bool:
    """Return True for the content of a file of LongMemEval."""
    return bool(samples) and "haystack_sessions" in samples[0]


def load_longmemeval(samples: list[dict[str, Any]], *, roles: tuple[str, ...] = (USER,)) -> Case:
    """Return one case: the sessions of all questions pooled in one memory.

    Questions whose id ends in `_abs` have no answer and are left out.
    """
    sessions: dict[str, list[Told]] = {}
    for sample in samples:
        listed = zip(
            sample["haystack_session_ids"],
            sample["haystack_dates"],
            sample["haystack_sessions"],
            strict=True,
        )
        for session, date, turns in listed:
            sessions.setdefault(session, list(_turns(session, date, turns, roles)))
    # In the order in which they happened: neighbouring turns count in the ranking.
    in_order = sorted(sessions.values(), key=lambda turns: turns[0].valid_at if turns else 0)
    told = [turn for turns in in_order for turn in turns]
    return Case("longmemeval", "person", told, list(_questions(samples, roles)))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, compressed or not."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return json.decode(data)


def _turns(
    session: str, date: str, turns: list[dict[str, Any]], roles: tuple[str, ...]
) -> Iterator[Told]:
    said_at = _microseconds(date)
    for number, turn in enumerate(turns):
        if turn["role"] in roles:
            yield Told(turn["role"], turn["content"], said_at, f"{session}:{number}")


def _microseconds(date: str) -> int:
    """Return the time of a date such as `2023/05/26 (Fri) 01:53`."""
    when = datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
    return int(when.timestamp()) * 1_000_000


def _questions(samples: list[dict[str, Any]], roles: tuple[str, ...]) -> Iterator[Asked]:
    for sample in samples:
        if sample["question_id"].endswith("_abs"):
            continue
        turns = {
            f"{session}:{number}": 1
            for session, listed in zip(
                sample["haystack_session_ids"], sample["haystack_sessions"], strict=True
            )
            for number, turn in enumerate(listed)
            if turn.get("has_answer") and turn["role"] in roles
        }
        answers = frozenset(sample["answer_session_ids"])
        yield Asked(sample["question"], sample["question_type"], turns, answers)
