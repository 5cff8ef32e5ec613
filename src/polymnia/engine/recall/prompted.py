"""Facts for a prompt: the few that clearly bear on what a user has just typed, or none.

A tool call asks a question and gets the best answer there is. Here the user did not ask, so a wrong
line costs more than a missing one. Candidates come from words alone, and the model's cosine only
judges them: that needs neither numpy nor an index of all vectors, which would cost a new process
200 ms.

A fact that has a vector is judged by both, a turn of a conversation by its words: among turns,
which are short and many on the same topic, the cosine told less than the words did.

    evidence = FACT_ZERO + FACT_COSINE cosine + FACT_WORDS words - FACT_GAP gap - FACT_ASKS asks
    evidence = ZERO + WORDS words + SHARE share - GAP gap - ASKS asks

`words` and `asks` are signals of recall, `share` is the share of the prompt's words, and `gap` how
far its score is below the best one. `python -m bench.agents.prompts` measures what this gives.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import score_candidates, start_searches
from polymnia.model import Hit, Passage
from polymnia.search.embedding import cosine, length, unpack_vector
from polymnia.search.hits import best_hits
from polymnia.search.question import content_words
from polymnia.search.terms import terms_of
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

# Fitted as logistic regressions, so that 0 means an even chance.
FACT_ZERO, FACT_COSINE, FACT_WORDS, FACT_GAP, FACT_ASKS = -4.2, 6.75, 1.15, 0.37, 2.5
ZERO, WORDS, SHARE, GAP, ASKS = -4.4, 3.1, 0.9, 0.28, 3.2
MIN_EVIDENCE = 0.0


class PromptVector(Struct, frozen=True):
    """A prompt as a little-endian float32 vector of the model with that identity."""

    identity: str
    vector: bytes


class PromptFact(Struct, frozen=True):
    """A fact, and how strongly it bears on the prompt: log odds, of any sign."""

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
    facts = []
    for fact in rate_candidates(memory, text, vector):
        if fact.evidence >= MIN_EVIDENCE:
            facts.append(fact)
    facts.sort(key=lambda fact: -fact.evidence)
    return facts


def rate_candidates(
    memory: Memory, text: str, vector: PromptVector | None = None
) -> list[PromptFact]:
    """Return the candidates by words, each with its evidence."""
    by_words = Memory(memory.store)
    with memory.reading() as read:
        searches = start_searches(by_words, read, [text], None, None)
        query = searches[0].query
        hits = best_hits(query.folded, score_candidates(read, searches, None), MAX_CANDIDATES)
        hits = [hit for hit in hits if hit.passage.kind == "fact"]
        facts = [hit.passage for hit in hits if not hit.passage.is_turn]
        cosines = _cosines(read, vector, facts)
    rated = []
    for hit in hits:
        gap = hits[0].score - hit.score
        if hit.passage.id in cosines:
            evidence = _evidence_of_fact(hit, cosines[hit.passage.id], gap)
        else:
            share = query.matcher.share(terms_of(hit.passage.words))
            evidence = _evidence_by_words(hit, share, gap)
        rated.append(PromptFact(hit.passage, evidence))
    return rated


def _evidence_of_fact(hit: Hit, likeness: float, gap: float) -> float:
    matching = FACT_COSINE * likeness + FACT_WORDS * hit.signals.words
    return FACT_ZERO + matching - FACT_GAP * gap - FACT_ASKS * hit.signals.asks


def _evidence_by_words(hit: Hit, share: float, gap: float) -> float:
    matching = WORDS * hit.signals.words + SHARE * share
    return ZERO + matching - GAP * gap - ASKS * hit.signals.asks


def _cosines(
    read: Reader, vector: PromptVector | None, passages: Sequence[Passage]
) -> dict[int, float]:
    """Return the cosine of the prompt with each passage that has a vector of its model."""
    if vector is None or not passages:
        return {}
    for model in read.vectors.models():
        if model.identity == vector.identity:
            ids = [passage.id for passage in passages]
            return _compare(vector.vector, read.vectors.vectors(model.number, ids))
    return {}


def _compare(asked: bytes, vectors: dict[int, bytes]) -> dict[int, float]:
    numbers, norm = unpack_vector(asked), length(asked)
    cosines = {}
    for passage_id, vector in vectors.items():
        cosines[passage_id] = cosine(numbers, norm, vector, length(vector))
    return cosines
