"""Between the graph and the operations of a binary log: what a change writes, and what reading it back does."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from polymnia.model import Change, Entity, Observation, ObservationSet, Relation
from polymnia.stores.files.binlog_records import (
    ADD_OBSERVATIONS,
    CREATE_ENTITY,
    CREATE_RELATION,
    DELETE_ENTITY,
    DELETE_OBSERVATIONS,
    DELETE_RELATION,
    Operation,
    count_fitting,
    encode_change,
    encode_payload,
    list_room,
    record_size,
    string_size,
)
from polymnia.stores.memory_graph import MemoryGraph

_RECORDS_PER_CHUNK = 2000
# A kind and its encoded strings.
Encoded = tuple[int, bytes]


def encode_graph(entities: Sequence[Entity], relations: Sequence[Relation]) -> Iterator[bytes]:
    """Encode the smallest log of a graph in chunks: all entities, then all relations, each a change of its own."""
    chunk: list[bytes] = []
    for entity in entities:
        chunk += [encode_change([each]) for each in _creations(entity)]
        if len(chunk) >= _RECORDS_PER_CHUNK:
            yield b"".join(chunk)
            chunk.clear()
    yield b"".join(chunk)
    for start in range(0, len(relations), _RECORDS_PER_CHUNK):
        several = relations[start : start + _RECORDS_PER_CHUNK]
        yield b"".join(
            [encode_change([(CREATE_RELATION, encode_payload(each.key))]) for each in several]
        )


def operations_of(change: Change, graph: MemoryGraph) -> list[Encoded] | None:
    """Return the operations that led to the graph; None if no operations can express the change.

    Deletions of entities come last: a reader that stops in the middle has too much rather than too little.
    """
    known = {each.name for each in change.before.entities}
    deleted = known - {each.name for each in change.after.entities}
    if not _is_expressible(change, graph, deleted):
        return None
    created = [each for each in change.after.entities if each.name not in known]
    return [
        *_removals(change, deleted),
        *[operation for entity in created for operation in _creations(entity)],
        *_additions(change),
        *[(CREATE_RELATION, encode_payload(each.key)) for each in change.after.relations],
        *[
            (DELETE_ENTITY, encode_payload((each.name,)))
            for each in change.before.entities
            if each.name in deleted
        ],
    ]


def waste_of(change: Change) -> int:
    """Estimate how many bytes of the log a change made useless: deleted things, and the deletions themselves."""
    before = change.before
    entities = sum([entity_size(each) + record_size(each.name) for each in before.entities])
    texts = sum(
        [2 * string_size(each.text) for group in before.observations for each in group.observations]
    )
    return entities + texts + sum([2 * record_size(*each.key) for each in before.relations])


def entity_size(entity: Entity) -> int:
    """Return about how many bytes an entity and its observations take in a log."""
    return record_size(entity.name, entity.type, *entity.texts)


def _is_expressible(change: Change, graph: MemoryGraph, deleted: set[str]) -> bool:
    """Return False if a name or type changes, a deleted entity keeps relations, or observations change their order."""
    if deleted and change.after.entities:
        return False
    types = {each.name: each.type for each in change.before.entities}
    if any(
        types.get(each.name, each.type) != each.type for each in change.after.entities
    ) or graph.touching(deleted):
        return False
    removed, added = (
        _texts_by_name(change.before.observations),
        _texts_by_name(change.after.observations),
    )
    found = {name: graph.get(name) for name in removed | added}
    return all(
        entity is None or _can_follow(entity.texts, removed.get(name, []), added.get(name, []))
        for name, entity in found.items()
    )


def _can_follow(texts: tuple[str, ...], removed: list[str], added: list[str]) -> bool:
    """Return True if removing every text equal to a removed one, then appending, leaves exactly these texts."""
    kept = len(texts) - len(added)
    return list(texts[kept:]) == added and set(removed).isdisjoint(texts[:kept])


def _removals(change: Change, deleted: set[str]) -> Iterator[Encoded]:
    for name, texts in _texts_by_name(change.before.observations).items():
        yield from _split_texts(DELETE_OBSERVATIONS, name, list(dict.fromkeys(texts)))
    for relation in change.before.relations:
        if relation.source not in deleted and relation.target not in deleted:
            yield DELETE_RELATION, encode_payload(relation.key)


def _creations(entity: Entity) -> Iterator[Encoded]:
    """Create an entity with the observations that fit into one record, then add the others."""
    raws = [text.encode() for text in entity.texts]
    first = count_fitting(raws, 0, list_room(entity.name, entity.type))
    yield CREATE_ENTITY, encode_payload((entity.name, entity.type), raws[:first])
    yield from _split_texts(ADD_OBSERVATIONS, entity.name, entity.texts[first:])


def _additions(change: Change) -> Iterator[Encoded]:
    for name, texts in _texts_by_name(change.after.observations).items():
        yield from _split_texts(ADD_OBSERVATIONS, name, texts)


def _split_texts(kind: int, name: str, texts: Sequence[str]) -> Iterator[Encoded]:
    """Distribute texts over operations that fit into one record each, if a text fits at all."""
    raws = [text.encode() for text in texts]
    start = 0
    while start < len(raws):
        end = max(count_fitting(raws, start, list_room(name)), start + 1)
        yield kind, encode_payload((name,), raws[start:end])
        start = end


def _texts_by_name(sets: Iterable[ObservationSet]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for each in sets:
        texts.setdefault(each.entity, []).extend(
            [observation.text for observation in each.observations]
        )
    return texts


class Replay:
    """Applies operations to a graph; `waste` is how many bytes of the log deletions have made useless.

    An operation that does not fit the graph (create a known name, change an unknown one) does nothing.
    """

    def __init__(self, graph: MemoryGraph) -> None:
        self.waste = 0
        self._graph = graph
        # Observations to add to an entity. They are added together: one by one takes quadratic time.
        self._added: dict[str, list[str]] = {}

    def apply(self, operations: Iterable[Operation]) -> None:
        """Apply operations; kinds that are not known do nothing. Call `finish` after the last one."""
        for kind, strings in operations:
            if kind < len(self._VERBS):
                self._VERBS[kind](self, strings)

    def finish(self) -> None:
        """Bring the graph up to date."""
        for name in list(self._added):
            self._add_texts(name)

    def _create(self, strings: list[str]) -> None:
        if self._graph.get(strings[0]) is None:
            self._graph.put(_entity(strings))

    def _link(self, strings: list[str]) -> None:
        source, target, kind = strings
        self._graph.link(Relation(source, target, kind))

    def _add(self, strings: list[str]) -> None:
        if self._graph.get(strings[0]) is not None:
            self._added.setdefault(strings[0], []).extend(strings[1:])

    def _delete(self, strings: list[str]) -> None:
        (name,) = strings
        self._add_texts(name)
        entity = self._graph.get(name)
        self.waste += record_size(name)
        if entity is not None:
            self.waste += entity_size(entity)
            self._graph.remove(name)
        for relation in self._graph.touching((name,)):
            self._drop(relation)

    def _remove(self, strings: list[str]) -> None:
        name = strings[0]
        self._add_texts(name)
        entity = self._graph.get(name)
        self.waste += record_size(*strings)
        if entity is not None:
            gone = set(strings[1:])
            kept = tuple([each for each in entity.observations if each.text not in gone])
            self.waste += sum(
                [string_size(each.text) for each in entity.observations if each.text in gone]
            )
            self._graph.put(replace(entity, observations=kept))

    def _unlink(self, strings: list[str]) -> None:
        source, target, kind = strings
        self.waste += record_size(*strings)
        for relation in self._graph.linked([(source, target, kind)]).values():
            self._drop(relation)

    # By kind. A tuple of bound methods would be a reference cycle that keeps a replaced graph in memory.
    _VERBS = (_create, _link, _add, _delete, _remove, _unlink)

    def _drop(self, relation: Relation) -> None:
        self.waste += record_size(*relation.key)
        self._graph.unlink(relation.key)

    def _add_texts(self, name: str) -> None:
        texts = self._added.pop(name, ())
        entity = self._graph.get(name)
        if entity is not None and texts:
            self._graph.put(_with_texts(entity, texts))


def _entity(strings: list[str]) -> Entity:
    observations = tuple(
        [Observation(ordinal, text) for ordinal, text in enumerate(strings[2:], 1)]
    )
    return Entity(strings[0], strings[1], observations, "", len(observations) + 1)


def _with_texts(entity: Entity, texts: Sequence[str]) -> Entity:
    added = [Observation(ordinal, text) for ordinal, text in enumerate(texts, entity.next_ordinal)]
    next_ordinal = entity.next_ordinal + len(added)
    return replace(entity, observations=(*entity.observations, *added), next_ordinal=next_ordinal)
