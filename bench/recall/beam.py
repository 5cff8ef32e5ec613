"""Read BEAM's chats: a user and an assistant in batches of turns, and probing questions.

Each chat is a folder. The sizes 100K, 500K and 1M have this form; the chats of 10M are in plans,
whose message ids repeat, and are not read.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.recall.questions import Asked, Case, Told

CHAT = Path("chat.json")
QUESTIONS = Path("probing_questions") / "probing_questions.json"
# Only the user's messages are told: the answers of an assistant are long, and rarely evidence.
USER = "user"
# How a message of the user ends: the number of the question it was generated for.
_ORIGIN = re.compile(r"\s*->->\s*\d+,\d+\s*$")


def chat_folders(directory: Path) -> list[Path]:
    """Return the folders of chats in a directory, in the order of their numbers, or itself."""
    if (directory / CHAT).exists():
        return [directory]
    folders = [chat.parent for chat in directory.glob(f"*/{CHAT}")]
    return sorted(folders, key=lambda folder: (len(folder.name), folder.name))


def load_chat(name: str, batches: list[dict[str, Any]], probing: dict[str, Any]) -> Case:
    """Return the case of one chat, given the content of its two files.

    Questions without a message of the user as evidence are left out, as all on abstention are.
    """
    told = [message for batch in batches for message in _messages(batch)]
    known = {message.label for message in told}
    return Case(name, "person", told, list(_questions(probing, known)))


def _messages(batch: dict[str, Any]) -> Iterator[Told]:
    said_at = 0
    for turn in batch["turns"]:
        for message in turn:
            if message["role"] != USER:
                continue
            if anchor := message.get("time_anchor"):
                said_at = _microseconds(anchor)
            text = _ORIGIN.sub("", message["content"])
            yield Told(USER, text, said_at, str(message["id"]))


def _microseconds(anchor: str) -> int:
    """Return the time of a date such as `March-15-2024`."""
    when = datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
    return int(when.timestamp()) * 1_000_000


def _questions(probing: dict[str, Any], known: set[str]) -> Iterator[Asked]:
    for ability, listed in probing.items():
        for question in listed:
            sources = {str(number) for number in _numbers(question.get("source_chat_ids", ()))}
            evidence = sources & known
            if evidence:
                kind = ability.replace("_", " ")
                yield Asked(question["question"], kind, dict.fromkeys(evidence, 1))


def _numbers(sources: Any) -> Iterator[int]:
    """Yield the message ids of a list, or of an object with lists."""
    if isinstance(sources, int):
        yield sources
        return
    if isinstance(sources, str):
        raise TypeError(f"source_chat_ids has {sources!r}")
    parts = sources.values() if isinstance(sources, dict) else sources
    for part in parts:
        yield from _numbers(part)
