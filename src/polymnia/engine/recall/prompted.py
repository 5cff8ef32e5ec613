"""Facts for a prompt: the few that clearly bear on what a user has just typed, or none.

A tool call asks a question and gets the best answer there is. Here the user did not ask, so a wrong
line costs more than a missing one. Candidates come from words alone, and the model's cosine only
judges them: that needs neither numpy nor an index of all vectors, which would cost a new process
200 ms.

The score is that of recall (`search/scoring.py`). A turn of a conversation is judged by its words
alone: among turns, which are short and many on the same topic, the cosine told less than the words
did. `python -m bench.agents.prompts` measures what MIN_SCORE gives.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import score_candidates, start_searches
from polymnia.model import Passage
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.hits import best_hits
from polymnia.search.question import content_words
from polymnia.search.scoring import score
from polymnia.stores.contract import Reader

MAX_FACTS = 3
# The best candidates by words, which are compared by meaning.
MAX_CANDIDATES = 8
# A prompt may contain a page of code or a log. What a task is about stands at its beginning.
MAX_PROMPT_CHARACTERS = 1_000
# A prompt with fewer words that mean something is a reply ("yes, do it") and needs no memory.
MIN_CONTENT_WORDS = 2
# What coding agents treat as a command: /help, !ls, #note.
_COMMAND_MARKS = ("/", "!", "#")
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)

# A fact clearly bears on a prompt from this score on, unless it is far behind the best one.
MIN_SCORE, MAX_GAP = 7.0, 2.0


class PromptVector(Struct, frozen=True):
    """A prompt as a little-endian float32 vector of the model with that identity."""

    identity: str
    vector: bytes


class PromptFact(Struct, frozen=True):
    """A fact, and by how much its score is above the least that counts."""

    passage: Passage
    evidence: float


def searchable_text(prompt: str) -> str:
    """Return what to search for; empty for a command or a short reply."""
    text = _CODE_BLOCK.sub(" ", prompt).strip()[:MAX_PROMPT_CHARACTERS]
    if text.startswith(_COMMAND_MARKS):
        return ""
    if len(set(content_words(text))) < MIN_CONTENT_WORDS:
        return ""
    return text


def facts_for_prompt(
    memory: Memory, text: str, vector: PromptVector | None = None
) -> list[PromptFact]:
    """Return the facts that clearly bear on the text, best first; most often none.

    Without a vector, words alone decide.
    """
    by_words = Memory(memory.store)
    with memory.reading() as read:
        searches = start_searches(by_words, read, [text], None, None)
        scored = score_candidates(read, searches, None)
        hits = best_hits(searches[0].query.folded, scored, MAX_CANDIDATES)
        hits = [hit for hit in hits if hit.passage.kind == "fact"]
        noted = [hit.passage for hit in hits if not hit.passage.is_turn]
        cosines = _cosines(read, vector, noted)
    facts = []
    for hit in hits:
        signals = replace(hit.signals, meaning=cosines.get(hit.passage.id))
        facts.append(PromptFact(hit.passage, score(signals) - MIN_SCORE))
    facts.sort(key=lambda fact: -fact.evidence)
    least = max(0.0, facts[0].evidence - MAX_GAP) if facts else 0.0
    return [fact for fact in facts if fact.evidence >= least]


def _cosines(
    read: Reader, vector: PromptVector | None, passages: Sequence[Passage]
) -> dict[int, float]:
    """Return the cosine of the prompt with each passage that has a vector of its model."""
    if vector is None or not passages:
        return {}
    for model in read.vectors.models():
        if model.identity == vector.identity:
            ids = [passage.id for passage in passages]
            asked, norm = unpack_vector(vector.vector), length(vector.vector)
            cosines = {}
            for passage_id, stored in read.vectors.vectors(model.number, ids).items():
                cosines[passage_id] = cosine(asked, norm, stored, length(stored))
            return cosines
    return {}
