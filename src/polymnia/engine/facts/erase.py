"""Erase facts, entities, relations and notes for good: from the present, the past and all copies.

Erasing removes a text of an entity in all its versions and under all its names. Other entities that
have the same text keep it; the receipt names them. `stores/versioned/trash.py` finds the rows.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.forget import Unwanted, find_rows
from polymnia.engine.facts.revise import FactIndex
from polymnia.engine.graph.relations import ends_of
from polymnia.engine.memory import Memory, find_by_name
from polymnia.errors import BadInput, FactNotFound
from polymnia.model import (
    Entity,
    Erasure,
    Fact,
    FactSet,
    Rows,
    Traces,
    replace_erased,
)
from polymnia.search.terms import count_noun, fold
from polymnia.stores.contract import Reader

# Returns the memories to which facts may have been moved, or from which they may have come.
OtherMemories = Callable[[], Iterable[Memory]]


class ErasureReceipt(Struct, frozen=True):
    """What was erased, or would be, without its text, and the names of what does not exist.

    `others` are entities that have one of the texts too. `perhaps_replaced` are facts that one of
    the erased facts may have replaced; their texts stay in the history.
    """

    erased: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    perhaps_replaced: tuple[str, ...] = ()


def erase(
    memory: Memory,
    unwanted: Unwanted,
    *,
    by: str,
    dry_run: bool = False,
    other_memories: OtherMemories | None = None,
    also: Erasure | None = None,
) -> ErasureReceipt:
    """Forget what is named, and remove it from the history and from the store's files.

    A fact that ended earlier can be named by its number or text, or by its entity's id in `also`.
    What was moved here from another memory is erased there too. It cannot be undone. A dry run
    only says what would go. Raise BadInput as `forget` does, and for a store that keeps its
    history in memory.
    """
    capabilities = memory.store.capabilities
    if capabilities.history and not capabilities.trash:
        raise BadInput("a memory that is not on disk cannot be erased: stop its server instead")
    with memory.reading() as read:
        more = also or Erasure()
        plan = _plan(memory, read, unwanted, more)
    if dry_run:
        return plan.receipt
    if plan.traces.moved and other_memories is not None:
        moved = _erase_where_it_was(memory, plan, other_memories(), by)
        more = replace(
            more,
            entities=more.entities | moved.entities,
            facts=more.facts | moved.facts,
            texts=more.texts | moved.texts,
        )
    with memory.writing("forget", by) as transaction:
        plan = _plan(memory, transaction.read, unwanted, more)
        before, after = plan.before, Rows()
        for entity in plan.blanked:
            summary = replace_erased(entity.summary or "", plan.traces.texts)
            blank = replace(entity, summary=summary, updated_at=transaction.time())
            before = replace(before, entities=(*before.entities, entity))
            after = replace(after, entities=(*after.entities, blank))
        transaction.apply(before=before, after=after, touched=ends_of(before.relations))
        if capabilities.trash:
            transaction.erase(plan.traces)
    if capabilities.trash:
        memory.store.remove_copies()
    else:
        memory.store.compact()  # a log keeps deleted records until then
    return plan.receipt


def erased_remains(memory: Memory) -> str:
    """Return a sentence on what an erasure cannot reach."""
    copies = "Backups, exports and copies made earlier still hold it"
    if memory.store.capabilities.keeps_deleted:
        return (
            f"{copies}, and the database server keeps deleted rows until its next VACUUM and in "
            "its archived log."
        )
    return f"{copies}."


def remark_on(receipt: ErasureReceipt) -> list[str]:
    """Return sentences on the texts that an erasure leaves, and how to erase them."""
    remarks = []
    if receipt.others:
        shown = ", ".join(receipt.others[:10])
        if len(receipt.others) > 10:
            shown += f" and {len(receipt.others) - 10} more"
        entities = count_noun(len(receipt.others), "other entity", "other entities")
        verb = "has" if len(receipt.others) == 1 else "have"
        remarks.append(f"{entities} {verb} this text: {shown}.")
    for fact in receipt.perhaps_replaced:
        remarks.append(f"{fact}, which it may have replaced, stays in the history: erase it too.")
    return remarks


class _Plan(Struct, frozen=True):
    """The rows to end, the entities whose summary has an erased text, and all traces."""

    before: Rows
    blanked: tuple[Entity, ...]
    traces: Traces
    receipt: ErasureReceipt


def _plan(memory: Memory, read: Reader, unwanted: Unwanted, more: Erasure) -> _Plan:
    """Find what is named, living or not, and more that has ended.

    Raise BadInput if an entity has no such fact.
    """
    keeps_history = memory.store.capabilities.trash
    named = {name for name, _ in unwanted.facts} | set(unwanted.entities)
    known = find_by_name(read, named)
    past = {name: read.history.past_facts(name) for name in named} if keeps_history else {}
    facts: set[tuple[str, int]] = set()  # by the id of the entity
    present: list[tuple[str, int | str]] = []
    for name, key in unwanted.facts:
        versions = past.get(name, [])
        if name in known and (not versions or _has_fact(known[name], key)):
            ordinal = FactIndex(known[name]).find(key).ordinal
            present.append((name, ordinal))
            facts.add((known[name].id, ordinal))
        elif versions:
            texts = [Fact(version.ordinal, version.text) for version in versions]
            ordinal = FactIndex(Entity(name, "", tuple(texts))).find(key).ordinal
            facts |= {(fact.owner, ordinal) for fact in versions if fact.ordinal == ordinal}
    living = replace(unwanted, facts=tuple(present))
    rows, unknown = find_rows(memory, read, living)
    unknown += [name for name, _ in unwanted.facts if name not in known]
    if not keeps_history:
        others = _others_with(read, rows)
        receipt = ErasureReceipt(_labels(rows), tuple(dict.fromkeys(unknown)), tuple(others))
        return _Plan(rows, (), Traces(), receipt)
    whole = {entity.id for entity in rows.entities}
    whole |= {fact.owner for name in unwanted.entities for fact in past[name]}
    traces = read.history.find_traces(
        Erasure(
            entities=more.entities | whole,
            facts=more.facts | facts,
            relations=more.relations | {relation.key for relation in rows.relations},
            notes=frozenset(unwanted.notes),
            texts=more.texts,
        )
    )
    # Another fact of the same entity may have the same text.
    sets, blanked = [], []
    for name, entity in known.items():
        if entity in rows.entities:
            continue
        equal = [fact for fact in entity.facts if (name, fact.ordinal) in traces.erased]
        if equal:
            sets.append(FactSet(name, tuple(equal)))
        summary = entity.summary or ""
        if replace_erased(summary, traces.texts) != summary:
            blanked.append(entity)
    rows = replace(rows, facts=tuple(sets))
    gone = {name for name in unwanted.entities if name not in known and past[name]}
    gone |= {name for name, _ in unwanted.facts if past[name]}
    facts_erased = [f"{name} #{ordinal}" for name, ordinal in traces.erased]
    whole_names = {entity.name for entity in rows.entities}
    own = [label for label in facts_erased if label.rpartition(" #")[0] not in whole_names]
    receipt = ErasureReceipt(
        (*_labels(replace(rows, facts=())), *own),
        tuple(name for name in dict.fromkeys(unknown) if name not in gone),
        traces.others,
        tuple(f"{name} #{ordinal}" for name, ordinal in traces.perhaps_replaced),
    )
    return _Plan(rows, tuple(blanked), traces, receipt)


def _has_fact(entity: Entity, key: int | str) -> bool:
    try:
        FactIndex(entity).find(key)
    except FactNotFound:
        return False
    return True


def _labels(rows: Rows) -> tuple[str, ...]:
    """Return what the rows are, without the texts of facts."""
    labels = [entity.name for entity in rows.entities]
    for part in rows.facts:
        labels += [f"{part.entity} #{fact.ordinal}" for fact in part.facts]
    if not rows.entities:  # a whole entity takes its relations along
        labels += [f"{one.source} {one.type} {one.target}" for one in rows.relations]
    return (*labels, *[note.key for note in rows.notes])


def _others_with(read: Reader, rows: Rows) -> list[str]:
    """Return the entities of a store without history that have one of the texts too."""
    owners = {entity.name for entity in rows.entities} | {part.entity for part in rows.facts}
    texts = {text for entity in rows.entities for text in entity.texts}
    texts |= {fact.text for part in rows.facts for fact in part.facts}
    others = set()
    for text in texts:
        for entity in read.containing(fold(text)):
            if text in entity.texts:
                others.add(entity.name)
    return sorted(others - owners)


def _erase_where_it_was(
    memory: Memory, plan: _Plan, other_memories: Iterable[Memory], by: str
) -> Erasure:
    """Erase what moves took away from other memories; return what they took from this one."""
    memories = [memory]
    for other in other_memories:
        if other.store.capabilities.trash:
            memories.append(other)
    moved, texts = set(plan.traces.moved), set(plan.traces.texts)
    erasures = [Erasure() for _ in memories]
    is_complete = False
    while not is_complete:  # what came from another memory may have come there from a third
        is_complete = True
        for place, each in enumerate(memories):
            with each.reading() as read:
                found = read.history.find_moved(moved)
                if not plan.traces.cards:
                    found = replace(found, entities=frozenset())
                if found == erasures[place]:
                    continue
                traces = read.history.find_traces(found)
            erasures[place] = found
            moved |= traces.moved
            texts |= traces.texts
            is_complete = False
    for other, erasure in list(zip(memories, erasures, strict=True))[1:]:
        if not (erasure.facts or erasure.entities):
            continue
        with other.writing("forget", by) as transaction:
            erasure = replace(erasure, texts=frozenset(texts))
            transaction.erase(transaction.read.history.find_traces(erasure))
        other.store.remove_copies()
    return replace(erasures[0], texts=frozenset(texts))
