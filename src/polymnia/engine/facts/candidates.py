"""Candidate facts: what a program noticed in a conversation, until somebody decides on it.

A memory keeps them as facts of one entity of the type UNCONFIRMED, so every store, search, history
and undo treats them like other facts, and every reply shows that nobody has confirmed them. Each
text begins with its kind: "decision: we deploy with Kamal". A candidate is named by its ordinal.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.graph.entities import new_entity
from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import BadInput
from polymnia.model import Entity, EntityDraft, Fact, FactSet, Rows, is_expired
from polymnia.search.similarity import normalize_text
from polymnia.stores.contract import Reader

CandidateKind = Literal["preference", "rule", "decision", "fix", "file", "fact"]
UNCONFIRMED = "unconfirmed"
NAME = "unconfirmed facts"
# Where an accepted fact goes unless the caller says otherwise: an entity and its type. A briefing
# has sections for the first three.
HOMES: dict[CandidateKind, tuple[str, str]] = {
    "preference": ("user", "person"),
    "rule": ("rules", "rule"),
    "decision": ("decisions", "decision"),
    "fix": ("fixes", "fix"),
    "file": ("files", "file"),
    "fact": ("project", "project"),
}
# A candidate that nobody looked at for so long was not needed.
EXPIRES_AFTER = 30 * 86_400_000_000
# More would not be looked at. New candidates wait until some are accepted, dismissed or expired.
MAX_WAITING = 100


class CandidateDraft(Struct, frozen=True):
    """A sentence that may be worth remembering. `valid_at` and `source` as in Fact."""

    kind: CandidateKind
    text: str
    valid_at: int = 0
    source: str = ""


class Candidate(Struct, frozen=True):
    """A candidate that waits. `into` is the entity that would get the fact."""

    ordinal: int
    kind: CandidateKind
    text: str
    into: str
    source: str = ""
    valid_at: int = 0
    created_at: int = 0


class CandidateReceipt(Struct, frozen=True):
    """What became of candidates, and the change, which is 0 if nothing was changed."""

    change: int
    candidates: tuple[Candidate, ...]


def offer_candidates(
    memory: Memory, drafts: Sequence[CandidateDraft], *, by: str
) -> CandidateReceipt:
    """Add candidates as one change. Skip those that the memory has, confirmed or not."""
    with memory.writing("remember", by) as transaction:
        read, at = transaction.read, transaction.at
        known = _find(read)
        entity = known or new_entity(EntityDraft(NAME, UNCONFIRMED), at)
        added = []
        for ordinal, draft in enumerate(_missing(read, entity, drafts), entity.next_ordinal):
            added.append(_fact(ordinal, draft, at))
        if added and known is None:
            created = replace(entity, facts=tuple(added), next_ordinal=len(added) + 1)
            transaction.apply(after=Rows(entities=(created,)))
        elif added:
            facts = FactSet(entity.name, tuple(added))
            transaction.apply(after=Rows(facts=(facts,)))
    return CandidateReceipt(transaction.change_id, tuple(map(_candidate, added)))


def list_candidates(memory: Memory, *, limit: int | None = None) -> list[Candidate]:
    """Return the candidates that wait, the newest first."""
    with memory.reading() as read:
        entity = _find(read)
    if entity is None:
        return []
    newest = [_candidate(fact) for fact in reversed(_living(entity))]
    return newest[:limit]


def accept_candidates(
    memory: Memory, ordinals: Collection[int], *, by: str, into: str = ""
) -> CandidateReceipt:
    """Make candidates facts of the entities they belong to, or of `into`, as one change.

    They keep their source and time. Raise BadInput if there is no such candidate.
    """
    with memory.writing("revise", by) as transaction:
        read, at = transaction.read, transaction.at
        entity, chosen = _choose(read, ordinals)
        candidates = [_candidate(fact) for fact in chosen]
        if into:
            candidates = [replace(candidate, into=into) for candidate in candidates]
        created, extended = _place(read, candidates, at)
        ended = FactSet(entity.name, chosen)
        transaction.apply(before=Rows(facts=(ended,)), after=Rows(tuple(created), tuple(extended)))
    return CandidateReceipt(transaction.change_id, tuple(candidates))


def dismiss_candidates(memory: Memory, ordinals: Collection[int], *, by: str) -> CandidateReceipt:
    """Delete candidates as one change. Raise BadInput if there is no such candidate."""
    with memory.writing("forget", by) as transaction:
        entity, chosen = _choose(transaction.read, ordinals)
        ended = FactSet(entity.name, chosen)
        transaction.apply(before=Rows(facts=(ended,)))
    return CandidateReceipt(transaction.change_id, tuple(map(_candidate, chosen)))


def _find(read: Reader) -> Entity | None:
    """Return the entity that holds the candidates, whatever its name is now."""
    entities = read.entities(kind=UNCONFIRMED, limit=1)
    return entities[0] if entities else None


def _living(entity: Entity) -> list[Fact]:
    return [fact for fact in entity.facts if not is_expired(fact)]


def _missing(
    read: Reader, entity: Entity, drafts: Sequence[CandidateDraft]
) -> list[CandidateDraft]:
    """Return the drafts that are neither waiting nor known, as many as may wait."""
    known = {normalize_text(_candidate(fact).text) for fact in entity.facts}
    for home in find_by_name(read, {HOMES[draft.kind][0] for draft in drafts}).values():
        known.update(map(normalize_text, home.texts))
    new: dict[str, CandidateDraft] = {}
    for draft in drafts:
        text = normalize_text(draft.text)
        if text not in known:
            new.setdefault(text, draft)
    room = max(MAX_WAITING - len(_living(entity)), 0)
    return list(new.values())[:room]


def _fact(ordinal: int, draft: CandidateDraft, at: int) -> Fact:
    text = f"{draft.kind}: {draft.text}"
    return Fact(ordinal, text, at, draft.valid_at, draft.source, at + EXPIRES_AFTER)


def _candidate(fact: Fact) -> Candidate:
    """Return a fact of the entity as a candidate. A person may have written one without a kind."""
    kind: CandidateKind = "fact"
    text = fact.text
    for known_kind in HOMES:
        if text.startswith(f"{known_kind}: "):
            kind, text = known_kind, text.removeprefix(f"{known_kind}: ")
            break
    into = HOMES[kind][0]
    return Candidate(fact.ordinal, kind, text, into, fact.source, fact.valid_at, fact.created_at)


def _choose(read: Reader, ordinals: Collection[int]) -> tuple[Entity, tuple[Fact, ...]]:
    """Return the entity and the candidates with these ordinals. Raise BadInput."""
    entity = _find(read)
    known = {fact.ordinal: fact for fact in entity.facts} if entity else {}
    unknown = [ordinal for ordinal in ordinals if ordinal not in known]
    if entity is None or unknown:
        numbers = ", ".join(f"#{ordinal}" for ordinal in unknown)
        raise BadInput(f"there is no candidate {numbers}: it was accepted, dismissed, or undone")
    return entity, tuple(known[ordinal] for ordinal in dict.fromkeys(ordinals))


def _place(
    read: Reader, candidates: Sequence[Candidate], at: int
) -> tuple[list[Entity], list[FactSet]]:
    """Return the entities to create, and what known entities gain."""
    types = dict(HOMES.values())
    known = find_by_name(read, {candidate.into for candidate in candidates})
    created, extended = [], []
    for name in dict.fromkeys(candidate.into for candidate in candidates):
        home = known.get(name) or new_entity(EntityDraft(name, types.get(name, "thing")), at)
        present = set(map(normalize_text, home.texts))
        added: list[Fact] = []
        for candidate in candidates:
            text = normalize_text(candidate.text)
            if candidate.into == name and text not in present:
                present.add(text)
                ordinal = home.next_ordinal + len(added)
                fact = Fact(ordinal, candidate.text, at, candidate.valid_at, candidate.source)
                added.append(fact)
        if name in known:
            extended.append(FactSet(name, tuple(added)))
        else:
            created.append(replace(home, facts=tuple(added), next_ordinal=len(added) + 1))
    return created, [facts for facts in extended if facts.facts]
