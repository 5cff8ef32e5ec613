"""What is in a versioned store, as one transaction sees it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from polymnia.model import (
    Change,
    Counts,
    Entity,
    Match,
    Neighbours,
    Passage,
    PassageKey,
    PassageKind,
    Relation,
    RelationKey,
    Traces,
    TypeCount,
    Within,
    WordCounts,
    drop_expired,
)
from polymnia.search.fulltext import TextQuery
from polymnia.search.terms import terms_of
from polymnia.stores.clock import next_change_time
from polymnia.stores.contract import MAX_CONVERSATION_GAP, MAX_CONVERSATION_STEPS, TableRow
from polymnia.stores.versioned.port import DatabasePort, Row
from polymnia.stores.versioned.rows import assemble, unpack_passages, unpack_relations
from polymnia.stores.versioned.write import ChangeWriter, Identities

if TYPE_CHECKING:
    from polymnia.stores.versioned.history import HistoryReader
    from polymnia.stores.versioned.notes import NoteReader
    from polymnia.stores.versioned.vectors import VectorReader


class VersionReader:
    """One snapshot of a store."""

    def __init__(self, port: DatabasePort) -> None:
        self._port = port

    def existing_names(self, names: Collection[str]) -> set[str]:
        if not names:
            return set()
        return {name for (name,) in self._port.run("existing_names", names)}

    def entities(
        self,
        names: Collection[str] | None = None,
        *,
        kind: str | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Entity]:
        if names is not None:
            if not names:
                return []
            rows, facts = self._named_rows(names)
            return assemble(self._port, rows, facts)
        if kind is None and limit is None and not offset:
            rows, facts = self._port.run_together(("entities_all",), ("observations_all",))
            return assemble(self._port, rows, self._port.sort(facts))
        if kind is None:
            rows = self._port.run("entities_page", limit, offset)
        else:
            rows = self._port.run("entities_typed", kind, limit, offset)
        if not rows:
            return []
        ids = [row[0] for row in rows]
        return assemble(self._port, rows, self._port.run("observations_of_many", ids))

    def outlines(
        self,
        names: Collection[str] | None = None,
        *,
        ids: Collection[str] | None = None,
        kind: str | None = None,
        latest: int | None = None,
        updated_since: int = 0,
    ) -> list[Entity]:
        if ids is not None:
            identities = self._port.find_identities(ids)
            names = [name for _, _, name in identities if name is not None]
        if latest is not None:
            rows = self._port.run("recent_entities", updated_since, latest)
        elif names is None and kind is None:
            rows = self._port.run("outlines_all")
        elif names is None:
            rows = self._port.run("entities_typed", kind, None, 0)
        elif names:
            rows = self._port.run("outlines", names, kind)
        else:
            rows = []
        return assemble(self._port, rows)

    def aliased(self) -> list[Entity]:
        return assemble(self._port, self._port.run("aliased_entities"))

    def with_status(self, status: str | None = None) -> list[Entity]:
        return assemble(self._port, self._port.run("entities_with_status", status))

    def find_relations(self, keys: Collection[RelationKey]) -> dict[RelationKey, Relation]:
        rows = self._port.run_keyed("relations_keyed", keys)
        return {relation.key: relation for relation in unpack_relations(rows)}

    def relations(
        self,
        touching: Collection[str] | None = None,
        *,
        source: str | None = None,
        target: str | None = None,
        kind: str | None = None,
    ) -> list[Relation]:
        if touching is not None:
            if not touching:
                return []
            if len(touching) == 1:
                rows = self._port.run("relations_of", *touching)
            else:
                rows = self._port.run("relations_of_many", touching)
            # A relation between two of the names is found from both ends.
            rows = self._port.sort(set(rows))
        elif source is not None:
            rows = self._port.run("relations_from", source, target, kind)
        elif target is not None:
            rows = self._port.run("relations_to", target, kind)
        else:
            rows = self._port.run("relations_typed", kind)
        return unpack_relations(rows)

    def find_path(self, source: str, target: str) -> list[str]:
        from polymnia.stores.paths import join_steps

        return join_steps(source, target, self._port.path_steps(self, source, target))

    def types(self) -> list[str]:
        return [kind for (kind,) in self._port.run("types_in_use")]

    def newest_of_type(self, kind: str, limit: int) -> list[Entity]:
        return self.entities([name for (name,) in self._port.run("newest_of_type", kind, limit)])

    def type_counts(self, of: Literal["entities", "relations"]) -> list[TypeCount]:
        query = "entity_types" if of == "entities" else "relation_types"
        return [TypeCount(*row) for row in self._port.run(query)]

    def counts(self) -> Counts:
        return self._port.counts()

    def stored_bytes(self) -> int:
        return self._port.stored_bytes()

    def containing(self, folded: str, *, outlines: bool = False) -> list[Entity]:
        if not folded:
            return self.outlines() if outlines else self.entities()
        ids = self._port.words.entities_containing(folded)
        if outlines:
            return assemble(self._port, self._port.run("entities_by_id", ids))
        rows, facts = self._port.run_together(
            ("entities_by_id", ids), ("observations_of_many", ids)
        )
        return assemble(self._port, rows, facts)

    def match(
        self, query: TextQuery, kinds: Collection[PassageKind], limit: int | None = None
    ) -> list[Match]:
        return self._port.words.match(query, kinds, limit)

    def word_counts(self, terms: Collection[str]) -> WordCounts:
        return self._port.words.word_counts(terms)

    def vocabulary(self, first: str, last: str, limit: int) -> list[str]:
        return [term for (term,) in self._port.run("terms_between", first, last, limit)]

    def candidates(
        self,
        terms: Collection[str],
        limit: int,
        within: Within | None = None,
        *,
        every: bool = False,
        newest: bool = False,
    ) -> list[Passage]:
        if not terms:
            return []
        rows = self._port.words.best_passages(terms, limit, within, every=every, newest=newest)
        return drop_expired(unpack_passages(self._port, rows))

    def names_with(self, terms: Collection[str], limit: int) -> list[str]:
        if not terms:
            return []
        names = self._port.words.best_names(terms, limit)
        # The index has the parts of a name and of its labels in one column.
        return [name for name in names if not set(terms).isdisjoint(terms_of(name))]

    def neighbours(self, passages: Collection[Passage]) -> dict[PassageKey, Neighbours]:
        keys = {passage.id: passage.key for passage in passages if passage.ordinal > 0}
        if not keys:
            return {}
        rows = self._port.run(
            "neighbour_ids", list(keys), MAX_CONVERSATION_STEPS, MAX_CONVERSATION_GAP
        )
        ids: set[int] = set()
        for _, *neighbour_ids in rows:
            ids.update(number for number in neighbour_ids if number is not None)
        by_id = {passage.id: passage for passage in self.passages(ids)}
        neighbours = {}
        for passage_id, *neighbour_ids in rows:
            # None stays where there is no neighbour, or it has expired.
            neighbours[keys[passage_id]] = Neighbours(*map(by_id.get, neighbour_ids))
        return neighbours

    def passages(
        self, ids: Collection[int] = (), *, cards_of: Collection[str] = ()
    ) -> list[Passage]:
        if cards_of:
            ids = [*ids, *(card for _, _, card in self._port.run("entity_ids", cards_of))]
        if not ids:
            return []
        return drop_expired(unpack_passages(self._port, self._port.run("passages_by_id", ids)))

    def passages_containing(self, folded: str, limit: int) -> list[Passage]:
        return self.passages(self._port.words.passages_containing(folded, limit))

    def fact_counts(self, names: Collection[str]) -> dict[str, int]:
        if not names:
            return {}
        return dict(self._port.run("observation_counts", names))

    def facts_between(self, start: int, end: int, limit: int) -> list[Passage]:
        ids = [number for (number,) in self._port.run("observations_between", start, end, limit)]
        by_id = {passage.id: passage for passage in self.passages(ids)}
        return [by_id[number] for number in ids if number in by_id]

    def together(self, *questions: Callable[[], Any]) -> list[Any]:
        return self._port.answer_together(questions)

    # Few servers use the following, so their modules are imported when first needed.

    @property
    def notes(self) -> "NoteReader":
        from polymnia.stores.versioned.notes import NoteReader

        return NoteReader(self._port)

    @property
    def vectors(self) -> "VectorReader":
        from polymnia.stores.versioned.vectors import VectorReader

        return VectorReader(self._port)

    @property
    def history(self) -> "HistoryReader":
        from polymnia.stores.versioned.history import HistoryReader

        return HistoryReader(self._port)

    def read_rows(self, table: str) -> Iterator[TableRow]:
        from polymnia.stores.versioned.tables import read_rows

        return read_rows(self._port, table)

    def _named_rows(self, names: Collection[str]) -> list[list[Row]]:
        """Return the rows of entities, which end with the living card, and of facts."""
        if len(names) == 1:  # the most frequent read
            (name,) = names
            return self._port.run_together(("entity_named", name), ("observations_of", name))
        return self._port.run_together(("entities_named", names), ("observations_of_names", names))


class VersionWriter(VersionReader):
    """A transaction that may also apply a change."""

    def __init__(self, port: DatabasePort) -> None:
        super().__init__(port)
        # The entities that were read: a change need not look for them again.
        self._identities: Identities = {}

    def clock(self) -> int:
        return next_change_time(self._port.last_change().at)

    def apply(self, change: Change) -> int:
        return ChangeWriter(self._port, change, self._identities).run()

    def erase(self, traces: Traces) -> None:
        from polymnia.stores.versioned.trash import erase_traces

        erase_traces(self._port, traces)

    def set_updated(self, times: Mapping[str, int]) -> None:
        """Set when entities were last updated, by id: rows from elsewhere bring their times."""
        rows = [(self._port.pack_uid(uid), at) for uid, at in times.items()]
        self._port.write_rows("set_updated", rows)
        self._port.write_rows("insert_own_updates", rows)

    def _named_rows(self, names: Collection[str]) -> list[list[Row]]:
        entities, facts = super()._named_rows(names)
        for entity, name, *_, card in entities:
            self._identities[name] = (entity, card)
        return [entities, facts]
