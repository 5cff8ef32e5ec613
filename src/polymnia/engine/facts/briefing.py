"""What an agent should know when a session starts: what is pinned and what changed lately."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory, find_by_name
from polymnia.model import Entity, Observation, Within
from polymnia.search.terms import terms_of
from polymnia.search.tokens import estimate_tokens, shorten_to
from polymnia.stores.contract import Reader

# Entities with this tag are always part of a briefing, with all their facts.
PINNED_TAG = "pinned"
# The type of entities whose facts are what was said: an agent has one for each session.
CONVERSATION = "conversation"
DEFAULT_TOKENS = 1_000
MAX_PINNED, MAX_RECENT, MAX_TYPES = 20, 20, 8
# More conversations would hide the facts. Other entities are looked for among this many.
MAX_CONVERSATIONS, MAX_RECENT_SCANNED = 2, 200
# The newest facts of an entity that is not pinned.
MAX_RECENT_FACTS = 3
# No fact takes more than this, so that one long text does not fill a briefing.
MAX_FACT_TOKENS = 80


class BriefedEntity(Struct, frozen=True):
    """An entity in a briefing: its summary and some facts, and how many facts were left out."""

    name: str
    type: str
    summary: str
    facts: tuple[str, ...]
    left_out: int
    is_pinned: bool

    @property
    def text(self) -> str:
        """The entity as lines of text."""
        heading = " ".join(f"- {self.name} ({self.type})".split())
        if self.summary:
            heading += f": {self.summary}"
        lines = [heading, *(f"  · {fact}" for fact in self.facts)]
        if self.left_out:
            lines.append(f"  · {self.left_out} more facts")
        return "\n".join(lines)


def brief_entities(memory: Memory, *, max_tokens: int = DEFAULT_TOKENS) -> list[BriefedEntity]:
    """Return the entities to know of, within a budget: pinned ones, then those updated last."""
    with memory.reading() as read:
        return _fit_budget(_brief_all(read), max_tokens)


def _brief_all(read: Reader) -> list[BriefedEntity]:
    pinned = find_pinned(read)
    recent = find_recent(read, {entity.name for entity in pinned})
    briefed = [_brief_entity(entity, is_pinned=True) for entity in pinned]
    return briefed + [_brief_entity(entity) for entity in recent]


def find_pinned(read: Reader) -> list[Entity]:
    """Return the entities that are pinned."""
    passages = read.candidates(terms_of(PINNED_TAG), 5 * MAX_PINNED, Within(tags=(PINNED_TAG,)))
    names = dict.fromkeys(passage.entity for passage in passages if passage.kind == "entity")
    return read.entities(list(names)[:MAX_PINNED]) if names else []


def find_recent(read: Reader, pinned: set[str]) -> list[Entity]:
    """Return the entities updated last, the latest first, with few conversations among them."""
    names: list[str] = []
    conversations = 0
    for entity in read.outlines(latest=MAX_RECENT_SCANNED):
        if entity.name in pinned:
            continue
        if entity.type == CONVERSATION:
            conversations += 1
            if conversations > MAX_CONVERSATIONS:
                continue
        names.append(entity.name)
    entities = find_by_name(read, names[:MAX_RECENT])
    return [entities[name] for name in names[:MAX_RECENT]]


def _brief_entity(entity: Entity, *, is_pinned: bool = False) -> BriefedEntity:
    chosen = entity.observations if is_pinned else _newest(entity.observations)
    facts = tuple(_shorten(observation.text) for observation in chosen)
    summary = _shorten(entity.summary or "")
    left_out = len(entity.observations) - len(facts)
    return BriefedEntity(entity.name, entity.type, summary, facts, left_out, is_pinned)


def _shorten(text: str) -> str:
    return shorten_to(" ".join(text.split()), MAX_FACT_TOKENS)


def _newest(observations: Sequence[Observation]) -> list[Observation]:
    def age(observation: Observation) -> tuple[int, int]:
        return observation.valid_at or observation.created_at, observation.ordinal

    return sorted(observations, key=age)[-MAX_RECENT_FACTS:]


def _fit_budget(entities: Iterable[BriefedEntity], max_tokens: int) -> list[BriefedEntity]:
    """Return the entities whose texts fit. The first is shortened rather than left out."""
    shown: list[BriefedEntity] = []
    for entity in entities:
        cost = estimate_tokens(entity.text) + 1
        if cost > max_tokens:
            if not shown:
                shown.append(_drop_facts(entity, max_tokens))
            break
        shown.append(entity)
        max_tokens -= cost
    return shown


def _drop_facts(entity: BriefedEntity, max_tokens: int) -> BriefedEntity:
    """Return the entity with as many facts as fit, at worst with none."""
    for count in range(len(entity.facts), 0, -1):
        left_out = entity.left_out + len(entity.facts) - count
        shorter = replace(entity, facts=entity.facts[:count], left_out=left_out)
        if estimate_tokens(shorter.text) <= max_tokens:
            return shorter
    return replace(entity, facts=(), left_out=entity.left_out + len(entity.facts))
