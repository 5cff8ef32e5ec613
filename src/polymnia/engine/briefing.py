"""What an agent should know at the start of a session: what is pinned, what changed lately, and how much there is."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from polymnia.engine.memory import Memory
from polymnia.model import ChangeQuery, Counts, Entity, Observation, TypeCount, Within
from polymnia.search.terms import terms_of
from polymnia.search.tokens import estimate_tokens, shorten_to
from polymnia.stores.contract import Reader

# Entities with this tag are always part of a briefing, with all their facts.
PINNED_TAG = "pinned"
# The type of entities whose facts are what was said. There may be one for each session of an agent.
CONVERSATION = "conversation"
DEFAULT_TOKENS = 1_000
MAX_PINNED, MAX_RECENT, MAX_TYPES = 20, 20, 8
# Conversations in a briefing: more of them would hide the facts. Other entities are searched among this many recent
# ones.
MAX_CONVERSATIONS, MAX_LOOKED_AT = 2, 200
# The newest facts of an entity that is not pinned.
MAX_RECENT_FACTS = 3
# No fact takes more than this, so that one long text does not fill a briefing.
MAX_FACT_TOKENS = 80


class BriefedEntity(Struct, frozen=True):
    """An entity in a briefing: its summary and some facts, shortened, and how many facts were left out."""

    name: str
    type: str
    summary: str
    facts: tuple[str, ...]
    left_out: int
    is_pinned: bool

    @property
    def text(self) -> str:
        """The entity as lines of text."""
        head = " ".join(f"- {self.name} ({self.type})".split()) + (
            f": {self.summary}" if self.summary else ""
        )
        more = [f"  · {self.left_out} more facts"] if self.left_out else []
        return "\n".join([head, *(f"  · {fact}" for fact in self.facts), *more])


class Briefing(Struct, frozen=True):
    """What a memory holds and the entities to know of: pinned ones, then those updated last, as many as fit."""

    counts: Counts
    types: tuple[TypeCount, ...]
    entities: tuple[BriefedEntity, ...]
    left_out: int
    last_change_at: int = 0
    last_actor: str = ""


def brief(memory: Memory, *, max_tokens: int = DEFAULT_TOKENS) -> Briefing:
    """Return what to know of a memory, within a budget for the texts of the entities."""
    with memory.reading() as read:
        counts, types = read.counts(), read.entity_types()
        told = _brief_all(read)
        last = (
            read.history.latest(ChangeQuery(limit=1)) if memory.store.capabilities.history else []
        )
    shown = _fit_budget(told, max_tokens)
    at, actor = (last[0].at, last[0].actor) if last else (0, "")
    return Briefing(
        counts, tuple(types[:MAX_TYPES]), tuple(shown), counts.entities - len(shown), at, actor
    )


def brief_entities(memory: Memory, *, max_tokens: int = DEFAULT_TOKENS) -> list[BriefedEntity]:
    """Return only the entities of a briefing, without counts, which take long in a large memory."""
    with memory.reading() as read:
        return _fit_budget(_brief_all(read), max_tokens)


def _brief_all(read: Reader) -> list[BriefedEntity]:
    pinned = _find_pinned(read)
    recent = _find_recent(read, {each.name for each in pinned})
    return [_brief_entity(each, is_pinned=True) for each in pinned] + [
        _brief_entity(each) for each in recent
    ]


def _find_pinned(read: Reader) -> list[Entity]:
    found = read.candidates(terms_of(PINNED_TAG), 5 * MAX_PINNED, Within(tags=(PINNED_TAG,)))
    names = list(dict.fromkeys([each.entity for each in found if each.kind == "entity"]))
    return read.find(names[:MAX_PINNED]) if names else []


def _find_recent(read: Reader, known: set[str]) -> list[Entity]:
    """Return the entities updated last, the latest first, with few conversations among them."""
    latest = [each for each in read.recent(0, MAX_LOOKED_AT) if each.name not in known]
    surplus = {
        each.name
        for each in [each for each in latest if each.type == CONVERSATION][MAX_CONVERSATIONS:]
    }
    names = [each.name for each in latest if each.name not in surplus][:MAX_RECENT]
    found = {each.name: each for each in read.find(names)} if names else {}
    return [found[name] for name in names]


def _brief_entity(entity: Entity, *, is_pinned: bool = False) -> BriefedEntity:
    chosen = entity.observations if is_pinned else _newest(entity.observations)
    facts = tuple([shorten_to(" ".join(each.text.split()), MAX_FACT_TOKENS) for each in chosen])
    summary = shorten_to(" ".join((entity.summary or "").split()), MAX_FACT_TOKENS)
    left_out = len(entity.observations) - len(facts)
    return BriefedEntity(entity.name, entity.type, summary, facts, left_out, is_pinned)


def _newest(observations: Sequence[Observation]) -> list[Observation]:
    latest = sorted(observations, key=lambda each: (each.valid_at or each.created_at, each.ordinal))
    return latest[-MAX_RECENT_FACTS:]


def _fit_budget(entities: Iterable[BriefedEntity], max_tokens: int) -> list[BriefedEntity]:
    """Return the entities whose texts fit into the budget. The first is shortened rather than left out."""
    shown: list[BriefedEntity] = []
    for each in entities:
        cost = estimate_tokens(each.text) + 1
        if cost > max_tokens:
            if not shown:
                shown.append(_shorten_entity(each, max_tokens))
            break
        shown.append(each)
        max_tokens -= cost
    return shown


def _shorten_entity(entity: BriefedEntity, max_tokens: int) -> BriefedEntity:
    facts: tuple[str, ...] = ()
    for count in range(len(entity.facts) + 1):
        tried = BriefedEntity(
            entity.name,
            entity.type,
            entity.summary,
            entity.facts[:count],
            entity.left_out + len(entity.facts) - count,
            entity.is_pinned,
        )
        if estimate_tokens(tried.text) > max_tokens:
            break
        facts = tried.facts
    left_out = entity.left_out + len(entity.facts) - len(facts)
    return BriefedEntity(
        entity.name, entity.type, entity.summary, facts, left_out, entity.is_pinned
    )
