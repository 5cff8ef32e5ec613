"""Remember entities, observations and relations in one change: create what is new, extend what is known."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.entities import new_entity
from polymnia.engine.memory import Memory
from polymnia.engine.relations import ends_of
from polymnia.engine.secrets import SecretRule, find_secret
from polymnia.errors import BadInput
from polymnia.model import Entity, EntityDraft, Observation, ObservationSet, Relation, Rows
from polymnia.search.dates import stamped_time
from polymnia.search.similarity import are_names_alike, normalize_text, similar_observations
from polymnia.search.terms import terms_of
from polymnia.stores.contract import Reader

Outcome = Literal["created", "added", "unchanged"]

DEFAULT_TYPE = "thing"
MAX_SIMILAR_NAMES = 3
# Names to compare a new name with.
_MAX_CANDIDATES = 50


class FactDraft(Struct, frozen=True):
    """A text to remember. `valid_at` and `source` as in Observation."""

    text: str
    valid_at: int = 0
    source: str = ""


class EntityFacts(Struct, frozen=True, kw_only=True):
    """What to remember of an entity. The type counts only if the entity is new; a summary replaces the former one."""

    name: str
    type: str = ""
    facts: tuple[FactDraft, ...] = ()
    summary: str | None = None
    tags: tuple[str, ...] = ()


class FactReceipt(Struct, frozen=True):
    """What became of a text: its ordinal, why it was not added, and what the entity has that says something similar.

    `secret` is the kind of key or token that the text seems to contain.
    """

    text: str
    outcome: Outcome
    ordinal: int
    reason: str = ""
    similar: tuple[Observation, ...] = ()
    secret: str = ""


class EntityReceipt(Struct, frozen=True):
    """What became of an entity, and names that may mean the same one."""

    name: str
    type: str
    outcome: Outcome
    reason: str = ""
    facts: tuple[FactReceipt, ...] = ()
    similar_names: tuple[str, ...] = ()


class RelationReceipt(Struct, frozen=True):
    """What became of a relation."""

    relation: Relation
    outcome: Outcome
    reason: str = ""


class RememberReceipt(Struct, frozen=True):
    """What was remembered, item by item. The change is 0 if nothing changed or the store has no history."""

    change: int
    at: int
    entities: tuple[EntityReceipt, ...]
    relations: tuple[RelationReceipt, ...]


def remember(
    memory: Memory,
    entities: Sequence[EntityFacts],
    relations: Sequence[Relation] = (),
    *,
    by: str,
    secrets: SecretRule = "warn",
) -> RememberReceipt:
    """Create or extend entities and relate them, as one change. Return a receipt for each item.

    A text that an entity already has, whatever its case and spaces, is not added again. Raise BadInput for a blank name
    or text, and for a text that looks like a key if those are refused.
    """
    wanted = _join(entities)
    found = (
        {fact.text: find_secret(fact.text) for each in wanted for fact in each.facts}
        if secrets != "off"
        else {}
    )
    _require(wanted, relations, found if secrets == "refuse" else {})
    with memory.writing("remember", by) as transaction:
        known = {each.name: each for each in transaction.read.find({each.name for each in wanted})}
        # One microsecond apart, so that their times show the order in which they were given.
        times = count(transaction.at)
        extended = [
            _Extension(known[each.name], each, times) for each in wanted if each.name in known
        ]
        created = [
            _create(each, transaction.at, times) for each in wanted if each.name not in known
        ]
        names = {each.name for each in (*created, *known.values())}
        linked, links = _link(transaction.read, relations, names, transaction.at)
        similar = {each.name: _similar_names(transaction.read, each) for each in created}
        transaction.apply(
            before=Rows(entities=tuple([each.entity for each in extended if each.card])),
            after=Rows(
                entities=(*created, *(each.card for each in extended if each.card)),
                observations=tuple([each.added for each in extended if each.added.observations]),
                relations=tuple(linked),
            ),
            touched=ends_of(linked),
            new_ids=True,
        )
    receipts = {each.entity.name: each.receipt(found) for each in extended}
    receipts |= {each.name: _created_receipt(each, similar[each.name], found) for each in created}
    change = transaction.change.id if transaction.change else 0
    return RememberReceipt(
        change, transaction.at, tuple([receipts[each.name] for each in wanted]), links
    )


def _join(entities: Sequence[EntityFacts]) -> list[EntityFacts]:
    """Return each name once, with everything that was given for it."""
    joined: dict[str, EntityFacts] = {}
    for each in entities:
        first = joined.setdefault(each.name, each)
        if first is not each:
            joined[each.name] = replace(
                first,
                type=first.type or each.type,
                facts=first.facts + each.facts,
                summary=first.summary if each.summary is None else each.summary,
                tags=first.tags + each.tags,
            )
    return list(joined.values())


def _require(
    entities: Sequence[EntityFacts], relations: Sequence[Relation], secrets: dict[str, str]
) -> None:
    """Raise BadInput for anything that is blank, and for a text with one of these secrets."""
    for each in entities:
        if not each.name.strip():
            raise BadInput("an entity needs a name; say what the facts are about")
        if any(not fact.text.strip() for fact in each.facts):
            raise BadInput(f"an observation of {each.name} is blank; leave it out")
    for relation in relations:
        if not all(part.strip() for part in relation.key):
            raise BadInput("a relation needs two names and a type")
    for kind in secrets.values():
        if kind:
            raise BadInput(
                f"a text looks like {kind}, so nothing was stored; remember where it is kept instead"
            )


def _create(wanted: EntityFacts, at: int, times: Iterator[int]) -> Entity:
    draft = EntityDraft(
        wanted.name,
        wanted.type or DEFAULT_TYPE,
        (),
        wanted.summary,
        tuple(dict.fromkeys(wanted.tags)),
    )
    entity = new_entity(draft, at)
    facts = list({normalize_text(fact.text): fact for fact in reversed(wanted.facts)}.values())[
        ::-1
    ]
    observations = [
        _observation(ordinal, fact, next(times)) for ordinal, fact in enumerate(facts, 1)
    ]
    return replace(entity, observations=tuple(observations), next_ordinal=len(observations) + 1)


def _observation(ordinal: int, fact: FactDraft, at: int) -> Observation:
    return Observation(
        ordinal, fact.text, at, fact.valid_at or stamped_time(fact.text), fact.source
    )


class _Extension:
    """What a known entity gains: observations, and a new card if its tags or summary change."""

    def __init__(self, entity: Entity, wanted: EntityFacts, times: Iterator[int]) -> None:
        self.entity = entity
        self._wanted = wanted
        present = {normalize_text(each.text): each for each in entity.observations}
        self._facts: list[tuple[FactDraft, Observation, bool]] = []
        added: list[Observation] = []
        for fact in wanted.facts:
            same = present.get(normalize_text(fact.text))
            if same is None:
                same = _observation(entity.next_ordinal + len(added), fact, next(times))
                added.append(same)
                present[normalize_text(fact.text)] = same
                self._facts.append((fact, same, True))
            else:
                self._facts.append((fact, same, False))
        self.added = ObservationSet(entity.name, tuple(added))
        self.card = self._new_card(next(times))

    def receipt(self, secrets: dict[str, str]) -> EntityReceipt:
        facts = tuple([self._fact_receipt(*each, secrets) for each in self._facts])
        asked = self._wanted.type
        reason = (
            f"it stays a {self.entity.type}; revise changes a type"
            if asked not in ("", self.entity.type)
            else ""
        )
        outcome: Outcome = "added" if self.card or self.added.observations else "unchanged"
        return EntityReceipt(self.entity.name, self.entity.type, outcome, reason, facts)

    def _fact_receipt(
        self, fact: FactDraft, stored: Observation, is_new: bool, secrets: dict[str, str]
    ) -> FactReceipt:
        if not is_new:
            return FactReceipt(fact.text, "unchanged", stored.ordinal, "already known")
        similar = similar_observations(fact.text, self.entity)
        return FactReceipt(
            fact.text, "added", stored.ordinal, "", similar, secrets.get(fact.text, "")
        )

    def _new_card(self, at: int) -> Entity | None:
        tags = tuple(dict.fromkeys((*self.entity.tags, *self._wanted.tags)))
        summary = self._wanted.summary
        if tags == self.entity.tags and summary in (None, self.entity.summary):
            return None
        changed = replace(self.entity, tags=tags, updated_at=at)
        return changed if summary is None else replace(changed, summary=summary, summary_at=at)


def _created_receipt(
    entity: Entity, similar: tuple[str, ...], secrets: dict[str, str]
) -> EntityReceipt:
    facts = [
        FactReceipt(each.text, "added", each.ordinal, secret=secrets.get(each.text, ""))
        for each in entity.observations
    ]
    return EntityReceipt(entity.name, entity.type, "created", "", tuple(facts), similar)


def _link(
    read: Reader, relations: Sequence[Relation], names: set[str], at: int
) -> tuple[list[Relation], tuple[RelationReceipt, ...]]:
    """Return the relations to create, and the receipts of all."""
    wanted = {each.key: each for each in relations}
    present = read.linked(wanted)
    ends = {end for each in wanted.values() for end in (each.source, each.target)}
    missing = ends - names - read.known(ends - names)
    new = [replace(each, created_at=at) for key, each in wanted.items() if key not in present]
    receipts = [_relation_receipt(each, each.key in present, missing) for each in wanted.values()]
    return new, tuple(receipts)


def _relation_receipt(relation: Relation, is_known: bool, missing: set[str]) -> RelationReceipt:
    if is_known:
        return RelationReceipt(relation, "unchanged", "already known")
    unknown = [end for end in dict.fromkeys((relation.source, relation.target)) if end in missing]
    reason = f"there is no entity {' or '.join(unknown)} yet" if unknown else ""
    return RelationReceipt(relation, "created", reason)


def _similar_names(read: Reader, entity: Entity) -> tuple[str, ...]:
    """Return names of other entities that may mean the same thing."""
    candidates = read.names_with(terms_of(entity.name), _MAX_CANDIDATES)
    others = [each for each in read.outlines(candidates) if are_names_alike(entity, each)]
    return tuple([each.name for each in others[:MAX_SIMILAR_NAMES]])
