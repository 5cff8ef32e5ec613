"""Find and erase what a memory holds about a person, by a person, or with a text.

A person who asks to be forgotten names no rows. So all tables are read once, with the rows that
have ended: the history keeps what was deleted or corrected. A row is chosen

- `about` a name: the entity that has or had the name goes whole, and so does every fact and note of
  others that has the name in its text;
- `by` an author: what this client or token wrote, whoever it is about;
- `matching` a text: what has it anywhere, in any case.

Looking again afterwards shows that nothing is left.
"""

import re
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from polymnia.engine.facts.erase import OtherMemories, erase
from polymnia.engine.facts.forget import Unwanted
from polymnia.engine.facts.revise import Revision, revise
from polymnia.engine.memory import Memory
from polymnia.errors import USE_A_DATABASE, BadInput
from polymnia.model import ERASED, Erasure, Relation, split_actor
from polymnia.search.terms import fold
from polymnia.stores.contract import Reader
from polymnia.stores.contract.tables import TABLES


class PersonQuery(Struct, frozen=True, kw_only=True):
    """Whose data, by one of: the name of an entity, the name of an author, a text."""

    about: str = ""
    by: str = ""
    matching: str = ""


class PersonalFact(Struct, frozen=True):
    """One version of a fact, with the name that its entity has or had last."""

    entity: str
    ordinal: int
    text: str
    written_at: int
    is_living: bool


class PersonalData(Struct, frozen=True, kw_only=True):
    """What was found. `erasure` names all by id, `unwanted` and `summaries` what still exists."""

    entities: tuple[str, ...]
    facts: tuple[PersonalFact, ...]
    relations: tuple[Relation, ...]
    notes: tuple[str, ...]
    texts: frozenset[str]
    summaries: tuple[str, ...]
    unwanted: Unwanted
    erasure: Erasure

    def __bool__(self) -> bool:
        return bool(self.entities or self.facts or self.relations or self.notes or self.texts)


def find_person(memory: Memory, query: PersonQuery) -> PersonalData:
    """Return what the query selects. Raise BadInput for a store that keeps no history."""
    if not memory.store.capabilities.trash:
        raise BadInput(f"this store cannot be searched for a person: {USE_A_DATABASE}")
    with memory.reading() as read:
        return _select(read, query)


def erase_person(
    memory: Memory, data: PersonalData, *, by: str, other_memories: OtherMemories | None = None
) -> None:
    """Erase what was found, with its past."""
    for name in data.summaries:
        revise(memory, name, Revision(summary=None), by=by)
    erase(memory, data.unwanted, by=by, other_memories=other_memories, also=data.erasure)


def _select(read: Reader, query: PersonQuery) -> PersonalData:
    is_match = _matcher(query)
    authored = set()
    if query.by:
        for change in _rows(read, "changes"):
            if _is_author(query.by, change.actor):
                authored.add(change.id)

    # Cards: an entity goes whole if its name is meant, or if nobody else wrote anything of it.
    uids = {row.id: row.uid for row in _rows(read, "entities")}
    names: dict[int, str] = {}
    living: dict[int, str] = {}
    chosen: set[int] = set()
    summaries: dict[int, set[str]] = defaultdict(set)
    summarized: list[str] = []
    for card in _rows(read, "cards"):
        names[card.entity] = card.name
        if card.until is None:
            living[card.entity] = card.name
        labels = (card.name, *(card.aliases or ()))
        is_named = fold(query.about) in map(fold, labels)
        if query.matching:
            is_named = any(map(is_match, (*labels, card.type, *(card.tags or ()))))
        summary = "" if card.summary == ERASED else card.summary
        if is_named:
            chosen.add(card.entity)
        elif summary and (is_match(summary) or (query.by and card.since in authored)):
            summaries[card.entity].add(summary)
            if card.until is None:
                summarized.append(card.name)

    # Facts: those of chosen entities, and the others that the query selects by themselves.
    rows = list(_rows(read, "observations"))
    if query.by:
        # A fact that was merged or moved keeps its author.
        own = {row.id for row in rows if row.since in authored and not row.author}
        own |= {row.id for row in rows if row.author and _is_author(query.by, row.author)}
        foreign = {row.entity for row in rows if row.id not in own}
        foreign |= {card.entity for card in _rows(read, "cards") if card.since not in authored}
        chosen |= set(names) - foreign
    facts, fact_ids, living_facts, texts = [], set(), [], set()
    for row in rows:
        is_selected = row.id in own if query.by else is_match(row.text)
        if row.text == ERASED or not (is_selected or row.entity in chosen):
            continue
        name = living.get(row.entity, names[row.entity])
        facts.append(PersonalFact(name, row.ordinal, row.text, row.created_at, row.until is None))
        fact_ids.add((uids[row.entity], row.ordinal))
        texts.add(row.text)
        if row.until is None and row.entity not in chosen:
            living_facts.append((name, row.ordinal))

    relations = {}
    own_names = {fold(names[entity]) for entity in chosen}
    for row in _rows(read, "relations"):
        ends = (row.source, row.target)
        is_selected = any(map(is_match, (*ends, row.type)))
        if query.by:
            is_selected = row.since in authored
        if is_selected or own_names & {fold(end) for end in ends}:
            relation = Relation(row.source, row.target, row.type, row.created_at)
            if ERASED not in ends:
                relations[relation.key] = relation
    notes = []
    for row in _rows(read, "notes"):
        is_selected = row.since in authored if query.by else is_match(f"{row.key} {row.text}")
        if is_selected and row.text != ERASED:
            notes.append(row.key)
            texts.add(row.text)
    gone = [entity for entity in chosen if names[entity] != ERASED]
    summary_texts = {text for group in summaries.values() for text in group}
    return PersonalData(
        entities=tuple(sorted({living.get(entity, names[entity]) for entity in gone})),
        facts=tuple(facts),
        relations=tuple(relations.values()),
        notes=tuple(dict.fromkeys(notes)),
        texts=frozenset(texts | summary_texts),
        summaries=tuple(summarized),
        unwanted=Unwanted(
            entities=tuple(living[entity] for entity in gone if entity in living),
            facts=tuple(living_facts),
            relations=tuple(read.find_relations(relations.keys()).values()),
            notes=tuple(dict.fromkeys(notes)),
        ),
        # No fact has the number 0: it only names an entity of which a summary goes.
        erasure=Erasure(
            entities=frozenset(uids[entity] for entity in gone),
            facts=frozenset(fact_ids | {(uids[entity], 0) for entity in summaries}),
            relations=frozenset(relations),
            texts=frozenset(summary_texts),
        ),
    )


def _is_author(name: str, actor: str) -> bool:
    """Return True if the name is that of the actor, its client or its token."""
    return name in (actor, *split_actor(actor))


def _matcher(query: PersonQuery) -> Callable[[str], bool]:
    """Return what tests a text: for a name as whole words, else anywhere."""
    folded = fold(query.about or query.matching)
    if not folded:
        return lambda text: False
    if query.matching:
        return lambda text: folded in fold(text)
    words = re.compile(rf"(?<!\w){re.escape(folded)}(?!\w)")
    return lambda text: words.search(fold(text)) is not None


def _rows(read: Reader, table: str) -> Iterator[Any]:
    """Yield the rows of a table, living or not, with their columns as attributes."""
    row_type = namedtuple("_Row", TABLES[table])  # type: ignore[misc]  # the columns are data
    return map(row_type._make, read.read_rows(table))
