"""From records to the graph: what each kind does, for a whole log and for what was appended to it."""

from collections.abc import Sequence

from msgspec.structs import replace

from polymnia.model import Entity, Observation, Relation
from polymnia.stores.files.binlog_records import WholeAt, entity_size, record_size, size
from polymnia.stores.memory import MemoryGraph


class Replay:
    """A graph that records are carried out on; `waste` is what deletes have made useless, in bytes of the log.

    A record that asks for what cannot be (a known name created, an unknown one changed) changes nothing.
    """

    def __init__(self, graph: MemoryGraph) -> None:
        self.waste = 0
        self._graph = graph
        # Observations added to an entity wait here: joining them one by one takes longer the more there are.
        self._added: dict[str, list[str]] = {}
        self._verbs = (self._create, self._link, self._add, self._delete, self._remove, self._unlink)

    def run(self, data: bytes, at: int, whole_at: WholeAt) -> int:
        """Carry out every whole record from an offset on; gives the offset after the last."""
        take = self.take
        while (found := whole_at(data, at)) is not None:
            kind, strings, at = found
            take(kind, strings)
        self.finish()
        return at

    def take(self, kind: int, strings: list[str]) -> None:
        """Carry out one record; a kind that is not known does nothing. To be followed by `finish`."""
        if kind < len(self._verbs):
            self._verbs[kind](strings)

    def finish(self) -> None:
        """Let the graph have everything."""
        for name in list(self._added):
            self._settle(name)

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
        self._settle(name)
        entity = self._graph.get(name)
        self.waste += record_size(name)
        if entity is not None:
            self.waste += entity_size(entity)
            self._graph.remove(name)
        for relation in self._graph.touching((name,)):
            self._drop(relation)

    def _remove(self, strings: list[str]) -> None:
        name = strings[0]
        self._settle(name)
        entity = self._graph.get(name)
        self.waste += record_size(*strings)
        if entity is not None:
            gone = set(strings[1:])
            kept = tuple([each for each in entity.observations if each.text not in gone])
            self.waste += sum([8 + size(each.text) for each in entity.observations if each.text in gone])
            self._graph.put(replace(entity, observations=kept))

    def _unlink(self, strings: list[str]) -> None:
        source, target, kind = strings
        self.waste += record_size(*strings)
        for relation in self._graph.linked([(source, target, kind)]).values():
            self._drop(relation)

    def _drop(self, relation: Relation) -> None:
        self.waste += record_size(*relation.key)
        self._graph.unlink(relation.key)

    def _settle(self, name: str) -> None:
        texts = self._added.pop(name, ())
        entity = self._graph.get(name)
        if entity is not None and texts:
            self._graph.put(_with_texts(entity, texts))


def _entity(strings: list[str]) -> Entity:
    observations = tuple([Observation(place, text) for place, text in enumerate(strings[2:], 1)])
    return Entity(strings[0], strings[1], observations, "", len(observations) + 1)


def _with_texts(entity: Entity, texts: Sequence[str]) -> Entity:
    """The entity with more observations."""
    added = [Observation(ordinal, text) for ordinal, text in enumerate(texts, entity.next_ordinal)]
    next_ordinal = entity.next_ordinal + len(added)
    return replace(entity, observations=(*entity.observations, *added), next_ordinal=next_ordinal)
