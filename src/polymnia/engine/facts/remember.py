"""Remember entities, facts and relations in one change: create what is new, extend the rest."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.curation.contradictions import find_changed
from polymnia.engine.facts.conflicts import Conflict, find_conflicts
from polymnia.engine.facts.names import (
    DEFAULT_TYPE,
    find_candidates,
    guess_entity,
    similar_names,
)
from polymnia.engine.facts.revise import FactIndex, moved_ends, name_fact
from polymnia.engine.facts.secrets import find_secret
from polymnia.engine.graph.entities import new_entity
from polymnia.engine.graph.relations import ends_of
from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import BadInput
from polymnia.model import Entity, EntityDraft, Fact, FactSet, Relation, Rows
from polymnia.search.dates import stamped_time
from polymnia.search.similarity import normalize_text
from polymnia.search.terms import fold
from polymnia.stores.contract import Reader

Outcome = Literal["created", "added", "unchanged"]

# Entities of these types are open until their status says otherwise.
TODO_TYPES = ("todo", "task", "to-do")
OPEN = "open"


class FactDraft(Struct, frozen=True):
    """A text to remember. `valid_at` and `source` as in Fact.

    `replaces` is the ordinal, the text or the beginning of the text of a fact that it ends.
    """

    text: str
    valid_at: int = 0
    source: str = ""
    replaces: int | str | None = None
    expires: int = 0


class EntityFacts(Struct, frozen=True, kw_only=True):
    """What to remember about an entity.

    The type counts only if the entity is new. A summary replaces the former one, and so do a due
    time, a status and a time of expiry.
    """

    name: str
    type: str = ""
    facts: tuple[FactDraft, ...] = ()
    summary: str | None = None
    tags: tuple[str, ...] = ()
    due: int = 0
    status: str = ""
    expires: int = 0


class FactReceipt(Struct, frozen=True):
    """What became of a text: its ordinal, why it was not added, and a fact that it may contradict.

    `secret` is the kind of key or token that the text seems to contain, `replaced` the ordinal of
    the fact that it ends, at `replaced_at` if that is in the future, `older` a fact of the entity
    that it may contradict, and `conflict` one of another entity.
    """

    text: str
    outcome: Outcome
    ordinal: int
    reason: str = ""
    older: Fact | None = None
    secret: str = ""
    replaced: int = 0
    replaced_at: int = 0
    conflict: Conflict | None = None


class EntityReceipt(Struct, frozen=True):
    """What became of an entity, and names that may mean the same one.

    `given` is the name under which it was given, if that is spelled differently.
    """

    name: str
    type: str
    outcome: Outcome
    reason: str = ""
    facts: tuple[FactReceipt, ...] = ()
    similar_names: tuple[str, ...] = ()
    given: str = ""


class RelationReceipt(Struct, frozen=True):
    """What became of a relation.

    `unknown` are its ends without an entity.
    """

    relation: Relation
    outcome: Outcome
    reason: str = ""
    unknown: tuple[str, ...] = ()


class RememberReceipt(Struct, frozen=True):
    """What was remembered, item by item.

    The change is 0 if nothing changed or the store has no history.
    """

    change: int
    at: int
    entities: tuple[EntityReceipt, ...]
    relations: tuple[RelationReceipt, ...]
    # Names of relations' ends as they were given, and the entities that they were taken for.
    guessed_ends: dict[str, str] = {}


def remember(
    memory: Memory,
    entities: Sequence[EntityFacts],
    relations: Sequence[Relation] = (),
    *,
    by: str,
    guess_names: bool = False,
    compare: bool = False,
) -> RememberReceipt:
    """Create or extend entities and relate them, as one change. Return a receipt for each item.

    A text that an entity already has is not added again, regardless of case and spaces. With
    `guess_names` an unknown name stands for the only entity that it can mean. With `compare`, the
    receipt names facts of other entities that a new one may contradict. Raise
    BadInput for a blank name or text and for a fact to replace that does not exist, and what
    `Transaction.apply` raises.
    """
    requested = _join_repeats(entities)
    _require_content(requested, relations)
    with memory.writing("remember", by) as transaction:
        read = transaction.read
        known = find_by_name(read, {facts.name for facts in requested})
        unknown = [facts.name for facts in requested if facts.name not in known]
        found = read.together(*[partial(find_candidates, read, name) for name in unknown])
        candidates = dict(zip(unknown, found, strict=True))
        guesses: dict[str, str] = {}  # unknown names that can only mean one entity
        if guess_names:
            for facts in requested:
                similar = candidates.get(facts.name, [])
                entity = guess_entity(facts.name, similar, new_type=facts.type)
                if entity is not None:
                    guesses[facts.name] = entity.name
            known |= find_by_name(read, set(guesses.values()) - known.keys())
            renamed = [replace(one, name=guesses.get(one.name, one.name)) for one in requested]
            requested = _join_repeats(renamed)

        at = transaction.time()
        # One microsecond apart, so that their times show the order in which they were given.
        times = count(at)
        extended = [
            _Extension(known[facts.name], facts, times)
            for facts in requested
            if facts.name in known
        ]
        created = [_create(facts, at, times) for facts in requested if facts.name not in known]
        ends = _Ends(read, relations, created, guesses, {facts.name for facts in requested})
        if guess_names:
            ends.guess()
        new_relations, relation_receipts = _relate(read, ends, at)

        conflicts: dict[str, dict[str, Conflict]] = {}  # by entity and text
        if compare:
            added = [(part.entity.name, part.added.facts) for part in extended]
            added += [(entity.name, entity.facts) for entity in created]
            for name, new_facts in added:
                if new_facts:
                    conflicts[name] = find_conflicts(read, name, [fact.text for fact in new_facts])

        old_cards = [part.entity for part in extended if part.card]
        new_cards = [part.card for part in extended if part.card]
        gained = [part.added for part in extended if part.added.facts]
        ended = [part.ended for part in extended if part.ended.facts]
        transaction.apply(
            before=Rows(tuple(old_cards), tuple(ended)),
            after=Rows((*created, *new_cards), tuple(gained), tuple(new_relations)),
            touched=ends_of(new_relations),
            successors={key: new for part in extended for key, new in part.successors.items()},
        )

    receipts = {part.entity.name: part.receipt() for part in extended}
    for entity in created:
        whole = [FactReceipt(fact.text, "added", fact.ordinal) for fact in entity.facts]
        similar_to = similar_names(entity, candidates[entity.name])
        receipts[entity.name] = EntityReceipt(
            entity.name, entity.type, "created", "", tuple(whole), similar_to
        )
    for given, name in guesses.items():
        receipts[name] = replace(receipts[name], given=given)
    for name, receipt in receipts.items():
        remarked = []
        for fact in receipt.facts:
            conflict = conflicts.get(name, {}).get(fact.text)
            secret = ""
            if memory.secrets == "warn" and fact.outcome == "added":
                secret = find_secret(fact.text)
            remarked.append(replace(fact, conflict=conflict, secret=secret))
        receipts[name] = replace(receipt, facts=tuple(remarked))
    in_order = tuple(receipts[facts.name] for facts in requested)
    return RememberReceipt(transaction.change_id, at, in_order, relation_receipts, ends.guesses)


def _join_repeats(entities: Sequence[EntityFacts]) -> list[EntityFacts]:
    """Return each name once, with everything that was given for it."""
    joined: dict[str, EntityFacts] = {}
    for entity in entities:
        first = joined.setdefault(entity.name, entity)
        if first is not entity:
            joined[entity.name] = replace(
                first,
                type=first.type or entity.type,
                facts=first.facts + entity.facts,
                summary=first.summary if entity.summary is None else entity.summary,
                tags=first.tags + entity.tags,
                due=entity.due or first.due,
                status=entity.status or first.status,
                expires=entity.expires or first.expires,
            )
    return list(joined.values())


def _require_content(entities: Sequence[EntityFacts], relations: Sequence[Relation]) -> None:
    """Raise BadInput for anything that is blank."""
    for entity in entities:
        if not entity.name.strip():
            raise BadInput("an entity needs a name; say what the facts are about")
        if any(not fact.text.strip() for fact in entity.facts):
            raise BadInput(f"a fact of {entity.name} is blank; leave it out")
    for relation in relations:
        if not all(part.strip() for part in relation.key):
            raise BadInput("a relation needs two names and a type")


def _create(facts: EntityFacts, at: int, times: Iterator[int]) -> Entity:
    kind = facts.type or DEFAULT_TYPE
    tags = tuple(dict.fromkeys(facts.tags))
    entity = new_entity(EntityDraft(facts.name, kind, (), facts.summary, tags), at)
    distinct: dict[str, FactDraft] = {}
    for fact in facts.facts:
        if fact.replaces is not None:
            older = name_fact(fact.replaces)
            raise BadInput(f"{facts.name} is new: it has no fact {older} to replace")
        distinct.setdefault(normalize_text(fact.text), fact)
    stored = [
        _fact(ordinal, fact, next(times)) for ordinal, fact in enumerate(distinct.values(), 1)
    ]
    status = facts.status
    if not status and (facts.due or fold(kind) in TODO_TYPES):
        status = OPEN
    return replace(
        entity,
        facts=tuple(stored),
        next_ordinal=len(stored) + 1,
        due=facts.due,
        status=status,
        expires=facts.expires,
    )


def _fact(ordinal: int, fact: FactDraft, at: int) -> Fact:
    valid_at = fact.valid_at or stamped_time(fact.text)
    return Fact(ordinal, fact.text, at, valid_at, fact.source, fact.expires)


class _StoredFact(Struct, frozen=True):
    """A given fact, the fact that holds it, and the one that it ended, if any."""

    given: FactDraft
    stored: Fact
    is_new: bool
    ended: Fact | None


class _Extension:
    """What a known entity gains and loses, and a new card if its tags or summary change."""

    def __init__(self, entity: Entity, facts: EntityFacts, times: Iterator[int]) -> None:
        self.entity = entity
        self._given = facts
        self._facts: list[_StoredFact] = []
        self._present = {normalize_text(fact.text): fact for fact in entity.facts}
        self._index = FactIndex(entity)
        for fact in facts.facts:
            self._facts.append(self._store(fact, times))
        added = [fact.stored for fact in self._facts if fact.is_new]
        self._at = next(times)
        ended = {fact.ended.ordinal: fact.ended for fact in self._facts if fact.ended}
        times_replaced = [
            (fact.ended, fact.stored.valid_at or self._at) for fact in self._facts if fact.ended
        ]
        for moved in moved_ends(entity, times_replaced, self._at):
            ended[moved.old.ordinal] = moved.old
            added.append(moved.new)
        self.added = FactSet(entity.name, tuple(added))
        self.ended = FactSet(entity.name, tuple(ended.values()))
        self.successors = {
            (entity.name, fact.ended.ordinal): fact.stored.ordinal
            for fact in self._facts
            if fact.ended
        }
        self.card = self._new_card(self._at)

    def _store(self, fact: FactDraft, times: Iterator[int]) -> _StoredFact:
        ended = None
        if fact.replaces is not None:
            ended = self._index.find(fact.replaces)
        text = normalize_text(fact.text)
        is_new = text not in self._present
        if is_new:
            count_added = sum(stored.is_new for stored in self._facts)
            ordinal = self.entity.next_ordinal + count_added
            self._present[text] = _fact(ordinal, fact, next(times))
        stored = self._present[text]
        if stored is ended:  # it says the same as what it would replace
            ended = None
        return _StoredFact(fact, stored, is_new, ended)

    def receipt(self) -> EntityReceipt:
        entity = self.entity
        facts = [self._fact_receipt(fact) for fact in self._facts]
        reason = ""
        if self._given.type not in ("", entity.type):
            reason = f"it stays a {entity.type}; revise changes a type"
        is_changed = self.card or self.added.facts or self.ended.facts
        outcome: Outcome = "added" if is_changed else "unchanged"
        return EntityReceipt(entity.name, entity.type, outcome, reason, tuple(facts))

    def _fact_receipt(self, fact: _StoredFact) -> FactReceipt:
        text, ordinal = fact.given.text, fact.stored.ordinal
        replaced = replaced_at = 0
        if fact.ended is not None:
            replaced = fact.ended.ordinal
            replaced_at = fact.stored.valid_at if fact.stored.valid_at > self._at else 0
        if not fact.is_new:
            return FactReceipt(text, "unchanged", ordinal, "already known", replaced=replaced)
        # What this call ends needs no advice to revise it.
        facts = tuple([fact for fact in self.entity.facts if fact not in self.ended.facts])
        older = find_changed(text, replace(self.entity, facts=facts))
        return FactReceipt(
            text, "added", ordinal, "", older, replaced=replaced, replaced_at=replaced_at
        )

    def _new_card(self, at: int) -> Entity | None:
        tags = tuple(dict.fromkeys((*self.entity.tags, *self._given.tags)))
        summary = self._given.summary
        due = self._given.due or self.entity.due
        status = self._given.status or self.entity.status
        if self._given.due and not status:
            status = OPEN
        expires = self._given.expires or self.entity.expires
        card = replace(self.entity, tags=tags, due=due, status=status, expires=expires)
        if card == self.entity and summary in (None, self.entity.summary):
            return None
        card = replace(card, updated_at=at)
        return card if summary is None else replace(card, summary=summary, summary_at=at)


class _Ends:
    """The entities at the ends of relations: which are unknown, and what was guessed."""

    def __init__(
        self,
        read: Reader,
        relations: Sequence[Relation],
        created: Sequence[Entity],
        renamed: dict[str, str],
        names: set[str],
    ) -> None:
        self._read = read
        self._created = created
        self.guesses: dict[str, str] = {}
        self.relations = [_redirect(relation, renamed) for relation in relations]
        ends = set(ends_of(self.relations)) - names
        self.missing = ends - read.existing_names(ends)

    def guess(self) -> None:
        """Replace unknown names that can only mean one entity."""
        for name in sorted(self.missing):
            candidates = find_candidates(self._read, name)
            entity = guess_entity(name, [*candidates, *self._created])
            if entity is not None:
                self.guesses[name] = entity.name
        self.missing -= self.guesses.keys()
        self.relations = [_redirect(relation, self.guesses) for relation in self.relations]


def _redirect(relation: Relation, names: dict[str, str]) -> Relation:
    source = names.get(relation.source, relation.source)
    target = names.get(relation.target, relation.target)
    return replace(relation, source=source, target=target)


def _relate(
    read: Reader, ends: _Ends, at: int
) -> tuple[list[Relation], tuple[RelationReceipt, ...]]:
    """Return the relations to create, and the receipts of all."""
    requested = {relation.key: relation for relation in ends.relations}
    present = read.find_relations(requested)
    new: list[Relation] = []
    receipts: list[RelationReceipt] = []
    for key, relation in requested.items():
        if key in present:
            receipts.append(RelationReceipt(relation, "unchanged", "already known"))
            continue
        new.append(replace(relation, created_at=at))
        unknown = [end for end in dict.fromkeys(relation.ends) if end in ends.missing]
        reason = f"there is no entity {' or '.join(unknown)} yet" if unknown else ""
        receipts.append(RelationReceipt(relation, "created", reason, tuple(unknown)))
    return new, tuple(receipts)
