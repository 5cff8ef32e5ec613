"""Reading a LoCoMo-format file.

Conversations in sessions, and questions with the turns that answer them.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from bench.recall.questions import Asked, Case, Told

_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_LABEL = re.compile(r"D:?(\d+:\d+)")


def is_locomo(samples: Any) -> bool:
    """Return True for the content of a file of LoCoMo."""
    return (
        isinstance(samples, list)
        and bool(samples)
        and isinstance(samples[0], dict)
        and samples[0].keys() >= {"conversation", "qa"}
    )


def load_locomo(samples: list[dict[str, Any]]) -> list[Case]:
    """Return a case for each conversation.

    Questions of the fifth category have no answer and are left out.
    """
    return [_case(number, sample) for number, sample in enumerate(samples, 1)]


def _case(number: int, sample: dict[str, Any]) -> Case:
    name = str(sample.get("sample_id", number))
    told = [turn for session in _sessions(sample["conversation"]) for turn in session]
    return Case(name, "person", told, list(_questions(sample["qa"])))


def _sessions(conversation: dict[str, Any]) -> Iterator[list[Told]]:
    number = 1
    while f"session_{number}_date_time" in conversation:
        when = datetime.strptime(
            conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"
        )
        at = int(when.replace(tzinfo=UTC).timestamp()) * 1_000_000
        turns = conversation.get(f"session_{number}", [])
        yield [
            Told(turn["speaker"], _text(turn), at, turn["dia_id"].removeprefix("D"))
            for turn in turns
        ]
        number += 1


def _text(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shared image: {caption}]" if caption else str(turn["text"])


def _questions(listed: list[dict[str, Any]]) -> Iterator[Asked]:
    for item in listed:
        labels = {
            label for evidence in item.get("evidence", ()) for label in _LABEL.findall(evidence)
        }
        if item["category"] in _KINDS and labels:
            yield Asked(item["question"], _KINDS[item["category"]], dict.fromkeys(labels, 1))
