"""From a change to the records that make it: what fits, what is written, what becomes useless."""

from collections.abc import Iterable, Iterator

from polymnia.errors import BadInput
from polymnia.model import Change, Entity, ObservationSet, Relation
from polymnia.stores.files.binlog_records import (
    ADD_OBSERVATIONS,
    CREATE_RELATION,
    DELETE_ENTITY,
    DELETE_OBSERVATIONS,
    DELETE_RELATION,
    LIMIT,
    encode,
    encode_entity,
    encode_texts,
    entity_size,
    record_size,
    room,
    room_for_list,
    size,
)
from polymnia.stores.memory import MemoryGraph

_SHOWN = 40


def refuse_unfit(change: Change) -> None:
    """Raises BadInput when a name, type or observation of the change is longer than a record can be."""
    _refuse_long_entities(change.after.entities)
    for noted in change.after.observations:
        _refuse_long_texts(noted.entity, [each.text for each in noted.observations])
    _refuse_long_relations(change.after.relations)


def refuse_unfit_graph(graph: MemoryGraph) -> None:
    """Raises BadInput when something in a graph, which another form of log could hold, does not fit into ours."""
    _refuse_long_entities(graph.entities())
    _refuse_long_relations(graph.relations())


def records_of(change: Change, graph: MemoryGraph) -> list[bytes] | None:
    """The records that lead to the graph from what it was before the change; None when no records can say it."""
    gone = {each.name for each in change.before.entities} - {each.name for each in change.after.entities}
    if not _can_be_said(change, graph, gone):
        return None
    return [
        *_removals(change, gone),
        *[encode(DELETE_ENTITY, (each.name,)) for each in change.before.entities if each.name in gone],
        *_creations(change),
        *_additions(change),
        *[encode(CREATE_RELATION, each.key) for each in change.after.relations],
    ]


def waste_of(change: Change) -> int:
    """How many bytes of the log say nothing any more, about: the records of what is deleted, and the deletes."""
    before = change.before
    entities = sum([entity_size(each) + record_size(each.name) for each in before.entities])
    texts = sum([2 * (8 + size(each.text)) for noted in before.observations for each in noted.observations])
    return entities + texts + sum([2 * record_size(*each.key) for each in before.relations])


def _refuse_long_entities(entities: Iterable[Entity]) -> None:
    for entity in entities:
        _refuse_long(room_for_list(entity.name, entity.type), "the name and type of an entity", entity.name)
        _refuse_long_texts(entity.name, entity.texts)


def _refuse_long_relations(relations: Iterable[Relation]) -> None:
    for relation in relations:
        _refuse_long(room(*relation.key), "the names and type of a relation", relation.source)


def _refuse_long_texts(name: str, texts: Iterable[str]) -> None:
    for text in texts:
        _refuse_long(room_for_list(name, text), f"an observation of {name[:_SHOWN]!r}", text)


def _refuse_long(left: int, what: str, text: str) -> None:
    if left < 0:
        raise BadInput(
            f"{what} ({text[:_SHOWN]!r}…) is {-left} bytes too long: a binary log holds at most {LIMIT // 1024} KiB in "
            "one record; nothing was changed, shorten it, split it, or keep the memory in a .db store"
        )


def _can_be_said(change: Change, graph: MemoryGraph, gone: set[str]) -> bool:
    """Not so when an entity gets another type, or is deleted and its relations are not, or when observations come back
    to where they were, or one of several alike goes."""
    types = {each.name: each.type for each in change.before.entities}
    if any(types.get(each.name, each.type) != each.type for each in change.after.entities) or graph.touching(gone):
        return False
    removed, added = _texts_by_name(change.before.observations), _texts_by_name(change.after.observations)
    found = {name: graph.get(name) for name in removed | added}
    return all(
        entity is None or _follows(entity.texts, removed.get(name, []), added.get(name, []))
        for name, entity in found.items()
    )


def _follows(texts: tuple[str, ...], removed: list[str], added: list[str]) -> bool:
    """Whether taking all texts alike away, then adding at the end, leaves just these."""
    kept = len(texts) - len(added)
    return list(texts[kept:]) == added and set(removed).isdisjoint(texts[:kept])


def _removals(change: Change, gone: set[str]) -> Iterator[bytes]:
    for name, texts in _texts_by_name(change.before.observations).items():
        yield from encode_texts(DELETE_OBSERVATIONS, name, list(dict.fromkeys(texts)))
    for relation in change.before.relations:
        if relation.source not in gone and relation.target not in gone:
            yield encode(DELETE_RELATION, relation.key)


def _creations(change: Change) -> Iterator[bytes]:
    known = {each.name for each in change.before.entities}
    for entity in change.after.entities:
        if entity.name not in known:
            yield from encode_entity(entity.name, entity.type, entity.texts)


def _additions(change: Change) -> Iterator[bytes]:
    for name, texts in _texts_by_name(change.after.observations).items():
        yield from encode_texts(ADD_OBSERVATIONS, name, texts)


def _texts_by_name(notes: Iterable[ObservationSet]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for noted in notes:
        texts.setdefault(noted.entity, []).extend([each.text for each in noted.observations])
    return texts
