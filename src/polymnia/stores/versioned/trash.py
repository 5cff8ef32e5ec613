"""What is deleted, in a store whose rows are versions: the trash, a purge, and an erasure.

A purge removes rows that have ended. An erasure replaces every trace of a text, in the rows of the
present and of the past.

A fact is more than its rows: a merge or a move ends it at one entity and creates it at another, a
correction gives it another text, and a newer fact replaces it. So its traces are found in steps,
until there are no more:

- all versions of the fact, by entity and number;
- equal texts of the same entity, and of the entities that were merged into it;
- rows with an equal text that the same change ended where it created one of these, or the other
  way round: there the fact came from, or went to;
- the fact that it replaced, if the change that did so replaced only one by only one.

A fact that another entity has now is never a trace, nor are its earlier versions, even if its text
is the same. Only rows that have ended are replaced: a change ends the living ones first.

Example: Anna #1 "pin 1234" was corrected to "pin 4321", then Anna was merged into Ann, where it
became Ann #7. The traces of Ann #7 are its own row, both versions of Anna #1, and not Bob #2
"pin 4321", which the reply counts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from polymnia.model import (
    Counts,
    Erasure,
    FactSet,
    PastFact,
    Relation,
    RelationKey,
    Rows,
    Traces,
    TrashItem,
    replace_erased,
)
from polymnia.stores.clock import now_us
from polymnia.stores.versioned.history import last_updates
from polymnia.stores.versioned.port import DatabasePort
from polymnia.stores.versioned.rows import (
    card_versions,
    fact_versions,
    unpack_entity,
    unpack_fact,
    unpack_note,
)


def deleted_items(port: DatabasePort) -> list[TrashItem]:
    """Return the deleted rows that were not restored."""
    deleted = [_TrashedRelation(*row) for row in port.run("trashed_relations")]
    # Deleted relations by a name they touched and the change that ended them.
    ended: defaultdict[tuple[str, int], list[Relation]] = defaultdict(list)
    for row in deleted:
        for name in {row.source, row.target}:
            ended[name, row.change].append(row.relation)
    items: list[TrashItem] = []
    with_entity: set[RelationKey] = set()
    for *columns, change, deleted_at in port.run("trashed_cards"):
        facts = []
        for _, *fact_columns in port.run("ended_with", columns[0], change):
            facts.append(unpack_fact(*fact_columns))
        entity = unpack_entity(port, tuple(columns), tuple(facts))
        relations = tuple(ended.get((entity.name, change), ()))
        with_entity.update(relation.key for relation in relations)
        rows = Rows(entities=(entity,), relations=relations)
        items.append(TrashItem(entity.id, deleted_at, change, rows))
    for *columns, deleted_at, change, uid, name, owner_until in port.run("trashed_observations"):
        fact = unpack_fact(*columns)
        owner = port.unpack_uid(uid)
        item = TrashItem(
            f"{owner}/{fact.ordinal}",
            deleted_at,
            change,
            Rows(facts=(FactSet(name, (fact,)),)),
            owner=owner,
            owner_gone=owner_until is not None,
        )
        items.append(item)
    for row in deleted:
        if row.relation.key not in with_entity:
            rows = Rows(relations=(row.relation,))
            items.append(TrashItem(f"relation/{row.id}", row.deleted_at, row.change, rows))
    for *columns, deleted_at, change in port.run("trashed_notes"):
        rows = Rows(notes=(unpack_note(port, tuple(columns)),))
        items.append(TrashItem(f"note/{columns[0]}", deleted_at, change, rows))
    return items


class _TrashedRelation(NamedTuple):
    id: int
    source: str
    target: str
    type: str
    created_at: int
    change: int
    deleted_at: int

    @property
    def relation(self) -> Relation:
        return Relation(self.source, self.target, self.type, self.created_at)


def purge(port: DatabasePort, before: int | None) -> Counts:
    """Delete the rows that ended before that time, or all, inside the open transaction."""
    if before is None:
        change = port.last_change().id
    else:
        # The last change before a time, by the times of the changes around it too.
        ((last_before,),) = port.run("last_change_before", before)
        ((first_after,),) = port.run("first_change_between", before, now_us())
        if first_after is not None:
            last_before = min(last_before, first_after - 1)
        change = int(last_before)
    # Record when entities were last updated, before the rows that show it are purged.
    dying = [entity for (entity,) in port.run("entities_to_purge", change)]
    card_rows = card_versions(port.run("cards_until", change, dying))
    fact_rows = fact_versions(port.run("observations_until", change, dying))
    updates = last_updates(port, change, card_rows, fact_rows)
    port.write("forget_updates", list(updates), change)
    port.write("settle_updates", list(updates), list(updates.values()), change)
    cards = port.run("purge_cards", change)
    facts = port.run("purge_observations", change)
    relations = port.run("purge_relations", change)
    notes = port.run("purge_notes", change)
    entities = []
    if cards or facts:
        entities = port.run("purge_entities")
    if entities:
        port.write("purge_updates")
    if cards or facts or relations or notes:
        passages = [number for (number,) in (*cards, *facts, *notes)]
        port.write("delete_vectors_of", passages)
        port.write("record_purge", change)
    return Counts(len(entities), len(facts), len(relations), len(notes))


# Changes in which a new fact replaces one that they end.
_REPLACING = ("remember", "revise")


class _FactRow(NamedTuple):
    id: int
    entity: int
    ordinal: int
    text: str
    created_at: int
    since: int
    until: int | None

    @property
    def fact(self) -> tuple[int, int]:
        return (self.entity, self.ordinal)


class _CardRow(NamedTuple):
    id: int
    entity: int
    name: str
    summary: str | None
    since: int
    until: int | None


class _RelationRow(NamedTuple):
    id: int
    source: str
    target: str
    type: str
    created_at: int
    since: int
    until: int | None


def past_facts(port: DatabasePort, name: str) -> list[PastFact]:
    """Return every version of every fact of the entity with that name, the oldest first.

    If no living entity has the name, of those that had it when they were deleted.
    """
    identities = {entity for entity, _ in port.run("identities_named", [name])}
    cards = [_CardRow(*row) for row in port.run("cards_of_entities", identities)]
    alive = {card.entity for card in cards if card.until is None}
    owners = {card.entity for card in cards if card.until is None and card.name == name}
    if not owners:
        last = _latest(cards)
        owners = {number for number, card in last.items() if card.name == name} - alive
    uids = {number: port.unpack_uid(uid) for number, uid in port.run("uids_of", owners)}
    rows = sorted([_FactRow(*row) for row in port.run("facts_of", owners)])
    return [PastFact(uids[row.entity], row.ordinal, row.text) for row in rows]


def find_moved(port: DatabasePort, moved: Collection[tuple[str, int]]) -> Erasure:
    """Return facts with these texts and times that a move took away, and whole entities."""
    rows = [_FactRow(*row) for row in port.run("facts_with_texts", {text for text, _ in moved})]
    ended = {row.until for row in rows if row.until is not None}
    moves = _operations(port, ended, ("move",))
    gone = [row for row in rows if row.until in moves and (row.text, row.created_at) in moved]
    living = set(_living_facts(port, {row.entity for row in gone}))
    cards = _latest(_cards(port, {row.entity for row in gone}))
    uids = {number: port.unpack_uid(uid) for number, uid in port.run("uids_of", cards)}
    facts, entities = set(), set()
    for row in gone:
        if cards[row.entity].until == row.until:
            entities.add(uids[row.entity])
        if row.fact not in living:
            facts.add((uids[row.entity], row.ordinal))
    return Erasure(entities=frozenset(entities), facts=frozenset(facts))


def find_traces(port: DatabasePort, erasure: Erasure) -> Traces:
    """Return the traces of what shall be erased."""
    wanted_ids = {*erasure.entities, *(uid for uid, _ in erasure.facts)}
    numbers = {uid: number for uid, number, _ in port.find_identities(wanted_ids)}
    whole = {numbers[uid] for uid in erasure.entities if uid in numbers}
    own = set(numbers.values())
    cards = _with_merged(port, own)
    merged_into_whole = {card.entity for card in _with_merged(port, whole)}
    family = {card.entity for card in cards}
    facts = {(numbers[uid], ordinal) for uid, ordinal in erasure.facts if uid in numbers}
    rows, others, unclear = _fact_traces(port, facts, merged_into_whole, family)
    texts = {row.text for row in rows} | erasure.texts
    came_by_move = _operations(port, {row.since for row in rows}, ("move",))
    whole_cards = [card for card in cards if card.entity in merged_into_whole]
    summaries = []
    for card in cards:
        if card.entity not in merged_into_whole:
            summary = card.summary or ""
            if replace_erased(summary, texts) != summary:
                summaries.append(card.id)
    relations = {row.id for row in _same_relations(port, erasure.relations)}
    relation_names = {name for source, target, _ in erasure.relations for name in (source, target)}
    names = {card.name for card in whole_cards}
    for row in _relations_naming(port, names):
        for card in whole_cards:
            if (
                card.name in (row.source, row.target)
                # It had the name of an end while the relation lived.
                and (row.until is None or card.since <= row.until)
                and (card.until is None or row.since <= card.until)
            ):
                relations.add(row.id)
    labels = {number: card.name for number, card in _latest(cards).items()}
    own_facts = sorted({row.fact for row in rows if row.entity in own})
    return Traces(
        facts=tuple(row.id for row in rows),
        cards=tuple(card.id for card in whole_cards),
        summaries=tuple(summaries),
        relations=tuple(relations),
        notes=tuple(number for (number,) in port.run("notes_keyed", erasure.notes)),
        names=tuple(names | relation_names),
        texts=frozenset(texts),
        erased=tuple((labels[entity], ordinal) for entity, ordinal in own_facts),
        others=tuple(others),
        perhaps_replaced=tuple((labels[entity], ordinal) for entity, ordinal in unclear),
        moved=frozenset({(row.text, row.created_at) for row in rows} if came_by_move else ()),
    )


def erase_traces(port: DatabasePort, traces: Traces) -> None:
    """Replace the traces that have ended, inside the open transaction."""
    port.write("erase_facts", traces.facts)
    port.write("erase_cards", traces.cards)
    port.write("erase_summaries", traces.summaries)
    port.write("erase_relations", traces.relations, traces.names)
    port.write("erase_notes", traces.notes)
    passages = [*traces.facts, *traces.cards, *traces.summaries, *traces.notes]
    port.write("delete_vectors_of", passages)
    port.after_erasing()


def _with_merged(port: DatabasePort, entities: Collection[int]) -> list[_CardRow]:
    """Return all cards of the entities, and of those that were merged into them and are gone."""
    cards: dict[int, _CardRow] = {}
    family: set[int] = set()
    new = set(entities)
    while new:
        family |= new
        added = [_CardRow(*row) for row in port.run("cards_of_entities", new)]
        cards |= {card.id: card for card in added}
        merges = _operations(port, {card.since for card in added}, ("merge_entities",))
        ended = {entity for (entity,) in port.run("entities_merged_by", merges)}
        new = ended - family
    return list(cards.values())


def _fact_traces(
    port: DatabasePort,
    facts: Collection[tuple[int, int]],
    whole: Collection[int],
    family: Collection[int],
) -> tuple[list[_FactRow], list[str], list[tuple[int, int]]]:
    """Return the rows of the facts, the names of others that have a text, and unclear facts.

    Unclear are facts that one of these may have replaced.
    """
    family_rows = [_FactRow(*row) for row in port.run("facts_of", family)]
    known = set(facts) | {row.fact for row in family_rows if row.entity in whole}
    rows: dict[int, _FactRow] = {}
    unclear: set[tuple[int, int]] = set()
    equal: list[_FactRow] = []
    new = known
    while new:
        owners = {entity for entity, _ in new}
        for row in [_FactRow(*row) for row in port.run("facts_of", owners)]:
            if row.fact in new:
                rows[row.id] = row
        texts = {row.text for row in rows.values()}
        equal = [_FactRow(*row) for row in port.run("facts_with_texts", texts)]
        living = {row.fact for row in equal if row.until is None and row.entity not in family}
        living |= set(_living_facts(port, {row.entity for row in equal} - set(family)))
        created = {(row.since, row.text) for row in rows.values()}
        ended = {(row.until, row.text, row.created_at) for row in rows.values()}
        replaced, perhaps = _replaced(port, family_rows, known)
        unclear |= perhaps
        found = set(replaced)
        for row in equal:
            came_from = (row.until, row.text) in created
            went_to = (row.since, row.text, row.created_at) in ended
            if row.entity in family or (row.fact not in living and (came_from or went_to)):
                found.add(row.fact)
        new = found - known
        known = known | new
    others = {row.entity for row in equal if row.fact not in known}
    names = [card.name for card in _latest(_cards(port, others)).values()]
    return list(rows.values()), sorted(names), sorted(unclear - known)


def _replaced(
    port: DatabasePort, rows: Iterable[_FactRow], facts: Collection[tuple[int, int]]
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the facts that these replaced, and those that they may have replaced."""
    created: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    ended: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for row in rows:
        created[row.entity, row.since].add(row.ordinal)
        if row.until is not None:
            ended[row.entity, row.until].add(row.ordinal)
    replacing = _operations(port, {change for _, change in created}, _REPLACING)
    replaced: set[tuple[int, int]] = set()
    perhaps: set[tuple[int, int]] = set()
    for (entity, change), ordinals in created.items():
        gone = ended[entity, change] - ordinals
        came = ordinals - ended[entity, change]
        if change not in replacing or not any((entity, ordinal) in facts for ordinal in came):
            continue
        certain = len(gone) == len(came) == 1
        (replaced if certain else perhaps).update((entity, ordinal) for ordinal in gone)
    return replaced, perhaps


def _same_relations(port: DatabasePort, keys: Collection[RelationKey]) -> list[_RelationRow]:
    """Return the rows of relations, also under names that their ends had before."""
    same: dict[int, _RelationRow] = {}
    for key in keys:
        size, names = -1, set(key[:2])
        while len(same) > size:  # a merge or a rename may have given an end another name
            size = len(same)
            for row in _relations_naming(port, names):
                is_linked = any(
                    (row.since == other.until or row.until == other.since)
                    and (row.type, row.created_at) == (other.type, other.created_at)
                    for other in same.values()
                )
                if is_linked or (row.source, row.target, row.type) == key:
                    same[row.id] = row
                    names |= {row.source, row.target}
    return list(same.values())


def _relations_naming(port: DatabasePort, names: Collection[str]) -> list[_RelationRow]:
    return [_RelationRow(*row) for row in port.run("relations_naming", names)] if names else []


def _living_facts(port: DatabasePort, entities: Collection[int]) -> list[tuple[int, int]]:
    rows = [_FactRow(*row) for row in port.run("facts_of", entities)] if entities else []
    return [row.fact for row in rows if row.until is None]


def _operations(
    port: DatabasePort, changes: Collection[int], operations: tuple[str, ...]
) -> set[int]:
    """Return those of the changes that are one of the operations."""
    if not changes:
        return set()
    rows = port.run("changes_among", 0, max(changes) + 1, None, operations, None, changes)
    return {row[0] for row in rows}


def _cards(port: DatabasePort, entities: Collection[int]) -> list[_CardRow]:
    return [_CardRow(*row) for row in port.run("cards_of_entities", entities)] if entities else []


def _latest(cards: Iterable[_CardRow]) -> dict[int, _CardRow]:
    """Return the last card of each entity."""
    last: dict[int, _CardRow] = {}
    for card in sorted(cards, key=lambda row: row.since):
        last[card.entity] = card
    return last
