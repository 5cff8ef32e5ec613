"""Read LongMemEval's files: a user's sessions with an assistant, and questions about them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from bench.recall.questions import Asked, Case, Told

# Who says a turn becomes the entity it belongs to.
USER, ASSISTANT = "user", "assistant"


def is_longmemeval(samples: Any) -> bool:
    """Return True for the content of a file of LongMemEval."""
    return (
        isinstance(samples, list)
        and bool(samples)
        and isinstance(samples[0], dict)
        and "haystack_sessions" in samples[0]
    )


def load_longmemeval(
    samples: list[dict[str, Any]], *, roles: tuple[str, ...] = (USER,)
) -> list[Case]:
    """Return a case for each question of the files S and M, and one for the oracle file.

    A question of the oracle file comes only with the sessions that answer it, so the sessions of
    all are pooled in one memory. Questions whose id ends in `_abs` have no answer and are left out.
    """
    if any(_has_others(sample) for sample in samples):
        return [_case(sample["question_id"], [sample], roles) for sample in samples]
    return [_case("longmemeval", samples, roles)]


def _has_others(sample: dict[str, Any]) -> bool:
    """Return True if a question comes with sessions that do not answer it."""
    return not set(sample["haystack_session_ids"]) <= set(sample["answer_session_ids"])


def _case(name: str, samples: list[dict[str, Any]], roles: tuple[str, ...]) -> Case:
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
    return Case(name, "person", told, list(_questions(samples, roles)))


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
