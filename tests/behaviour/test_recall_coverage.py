"""Recall while only some passages have vectors: none of them is at a disadvantage."""

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import RecallResult, recall
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.errors import EmbedderError
from polymnia.model import EntityDraft, PassageKey
from polymnia.stores import open_store
from tests.behaviour.graphs import ME
from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

BATCH = 32  # texts that are embedded at once
PER_ENTITY = 100


class LimitedEmbedder(BagEmbedder):
    """Embeds questions, and a limited number of texts."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._left = limit

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if not asking:
            if self._left < len(texts):
                raise EmbedderError("it has embedded enough")
            self._left -= len(texts)
        return super().embed(texts, asking=asking)


def texts(count: int) -> list[str]:
    """Return texts whose words are as frequent as in real text."""
    chance = random.Random(7)
    words = ["".join(chance.choices("bcdfghklmnprst", k=5)) for _ in range(400)]
    shares = [1 / (place + 5) for place in range(len(words))]
    return [" ".join(chance.choices(words, shares, k=9)) for _ in range(count)]


def ask(
    path: str, written: list[str], questions: list[str], limit: int | None
) -> list[RecallResult]:
    """Ask all questions of a memory in which only some texts can be embedded.

    None means words alone.
    """
    store = open_store(path)
    memory = Memory(store)
    meaning = None
    if limit is not None:
        embedder = LimitedEmbedder(limit)
        meaning = Meaning(SharedEmbedder("local", lambda url: embedder))
    starts = range(0, len(written), PER_ENTITY)
    drafts = [EntityDraft(f"Page {n}", "page", tuple(written[n : n + PER_ENTITY])) for n in starts]
    entities.create(memory, drafts, by=ME)
    if meaning is not None:
        with suppress(EmbedderError):  # it embeds no more than the limit
            meaning.index(store)
    asked = Memory(store, meaning)
    found = [recall(asked, question, timeout=TIMEOUT_S) for question in questions]
    store.close()
    return found


def keys(found: RecallResult) -> list[PassageKey]:
    return [hit.passage.key for hit in found.hits]


def test_with_one_per_cent_of_the_vectors_the_hits_are_those_of_words_alone(tmp_path: Path) -> None:
    written = texts(100 * BATCH)
    questions = [" ".join(text.split()[2:6]) for text in written[::400]]
    by_words = ask(str(tmp_path / "words.db"), written, questions, None)
    partly = ask(str(tmp_path / "partly.db"), written, questions, BATCH)
    note = (
        "1% of the memory is embedded so far; until a tenth is, everything is found by words alone"
    )
    assert {found.note for found in partly} == {note}
    assert [found.coverage for found in partly] == [0.01] * len(questions)
    assert [keys(found) for found in partly] == [keys(found) for found in by_words]


@pytest.mark.parametrize(("limit", "coverage"), [(None, 0.0), (BATCH, 0.5), (2 * BATCH, 1.0)])
def test_recall_reports_the_coverage(tmp_path: Path, limit: int | None, coverage: float) -> None:
    written = texts(2 * BATCH)
    (found,) = ask(str(tmp_path / "memory.db"), written, written[:1], limit)
    assert found.coverage == coverage


def test_the_note_of_a_half_embedded_memory_says_so(tmp_path: Path) -> None:
    written = texts(2 * BATCH)
    (found,) = ask(str(tmp_path / "memory.db"), written, written[:1], BATCH)
    assert found.note == "50% of the memory is embedded so far; the rest is found by words alone"


def test_a_few_facts_that_wait_for_vectors_are_not_worth_a_note(tmp_path: Path) -> None:
    written = texts(25 * BATCH)
    (found,) = ask(str(tmp_path / "memory.db"), written, written[:1], 24 * BATCH)
    assert (found.note, found.coverage) == ("", 0.96)
