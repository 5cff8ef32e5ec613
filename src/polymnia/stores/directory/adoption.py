"""Convert the project file of an earlier program, with everything deleted, to a store of ours."""

import logging
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import fsync_directory
from polymnia.errors import StoreBusy, StoreForeign
from polymnia.model import Entity, Fact, FactSet, Relation, RelationKey, Rows
from polymnia.stores.directory import files
from polymnia.stores.directory.registry import QUERIES
from polymnia.stores.sqlite.adopt import keep_backup
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, map_errors
from polymnia.stores.sqlite.fill import DeletedEntity, StoreContents, fill
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)

_COLUMNS = {
    *(
        "entities.id",
        "entities.name",
        "entities.entity_type",
        "entities.created_at",
        "entities.updated_at",
    ),
    *(
        "entities.deleted_at",
        "observations.entity_id",
        "observations.content",
        "observations.created_at",
    ),
    *(
        "observations.deleted_at",
        "relations.from_entity",
        "relations.to_entity",
        "relations.relation_type",
    ),
    *("relations.created_at", "relations.deleted_at"),
}


class ForeignEntity(NamedTuple):
    """An entity of the earlier program. `deleted_at` is 0 while it lives, here and below."""

    id: str
    name: str
    type: str
    created_at: int
    updated_at: int
    deleted_at: int


class ForeignFactRow(NamedTuple):
    """A fact of the earlier program."""

    entity: str
    text: str
    created_at: int
    deleted_at: int


class ForeignRelation(NamedTuple):
    """A relation of the earlier program, by the ids of its ends."""

    source: str
    target: str
    type: str
    created_at: int
    deleted_at: int


def adopt(path: Path) -> None:
    """Replace the file by a store of ours and keep the old one as `.bak`.

    Raise StoreForeign for a file of an unknown program, StoreBusy if a program has it open.
    """
    part = path.with_name(f"{path.name}.part")
    files.discard(part)
    with (
        map_errors(str(path)),
        closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as old,
    ):
        old.set_busy_timeout(BUSY_TIMEOUT_MS)
        if not is_adoptable(old):
            raise StoreForeign(
                f"{path} is a SQLite file of another program; give polymnia a file of its own"
            )
        # Fold the write-ahead log into the file. Raise StoreBusy if another process has it open.
        try:
            old.execute("PRAGMA journal_mode = DELETE").fetchall()
        except apsw.BusyError as exc:
            raise StoreBusy(
                f"{path} is open in another program: stop that first; nothing was changed"
            ) from exc
        contents = _read(path, old)
    with closing(SqliteStore(str(part))) as new:
        fill(new, contents)
    # Link the old file to a second name, then replace it, so that there is always a file.
    with map_os_errors(str(path)):
        keep_backup(path)
        part.replace(path)
        fsync_directory(path.parent)
    logger.warning(
        "%s was written by an earlier program: converted, and kept as %s.bak", path, path.name
    )


def is_adoptable(connection: apsw.Connection) -> bool:
    """Return True for a project file of the earlier program."""
    return {name for (name,) in _run(connection, "foreign_columns")} >= _COLUMNS


def _read(path: Path, old: apsw.Connection) -> StoreContents:
    rows = _Rows(
        [ForeignEntity(*row) for row in _run(old, "foreign_entities")],
        [ForeignFactRow(*row) for row in _run(old, "foreign_observations")],
        [ForeignRelation(*row) for row in _run(old, "foreign_relations")],
    )
    if lost := rows.without_entity():
        logger.warning(
            "%s: %d rows belong to no entity; they are only in %s.bak", path, lost, path.name
        )
    return rows.contents()


def _run(old: apsw.Connection, query: str) -> list[tuple[Any, ...]]:
    return old.execute(QUERIES[query]).fetchall()


class _Rows:
    """The rows of a file. Living entities of one name become the first, with all facts."""

    def __init__(
        self,
        entities: list[ForeignEntity],
        facts: list[ForeignFactRow],
        relations: list[ForeignRelation],
    ) -> None:
        self._entities = {entity.id: entity for entity in entities}
        self._facts = facts
        self._relations = relations
        first: dict[str, str] = {}
        for entity in entities:
            if not entity.deleted_at:
                first.setdefault(entity.name, entity.id)
        self._owner: dict[str, str] = {}
        for entity in entities:
            self._owner[entity.id] = entity.id if entity.deleted_at else first[entity.name]
        # The facts of each owner, with the times at which they were deleted.
        self._numbered: defaultdict[str, list[tuple[int, Fact]]] = defaultdict(list)
        for row in facts:
            if row.entity in self._owner:
                numbered = self._numbered[self._owner[row.entity]]
                fact = Fact(len(numbered) + 1, row.text, row.created_at)
                numbered.append((row.deleted_at, fact))

    def without_entity(self) -> int:
        """Return how many facts and relations name an entity that does not exist."""
        facts = sum(row.entity not in self._entities for row in self._facts)
        return facts + sum(not self._has_ends(row) for row in self._relations)

    def contents(self) -> StoreContents:
        """Return what to write."""
        relations: dict[RelationKey, Relation] = {}
        lone_relations: list[Relation] = []
        with_entity: defaultdict[tuple[str, int], list[Relation]] = defaultdict(list)
        for row in filter(self._has_ends, self._relations):
            relation = Relation(
                self._entities[row.source].name,
                self._entities[row.target].name,
                row.type,
                row.created_at,
            )
            if not row.deleted_at:
                relations.setdefault(relation.key, relation)
                continue
            for end in {row.source, row.target}:
                with_entity[end, row.deleted_at].append(relation)
            if not self._went_with_entity(row):
                lone_relations.append(relation)
        living: list[Entity] = []
        deleted: list[DeletedEntity] = []
        lost_facts: list[FactSet] = []
        for entity in self._entities.values():
            if self._owner[entity.id] != entity.id:
                continue
            # The facts that were deleted while the entity lived.
            numbered = self._numbered[entity.id]
            earlier = tuple(fact for at, fact in numbered if at not in (0, entity.deleted_at))
            if entity.deleted_at:
                lost = tuple(with_entity[entity.id, entity.deleted_at])
                deleted.append(DeletedEntity(self._entity(entity), lost, earlier))
                continue
            living.append(self._entity(entity))
            if earlier:
                lost_facts.append(FactSet(entity.name, earlier))
        return StoreContents(
            living=Rows(tuple(living), relations=tuple(relations.values())),
            entities=tuple(deleted),
            facts=tuple(lost_facts),
            relations=tuple(lone_relations),
        )

    def _has_ends(self, row: ForeignRelation) -> bool:
        return row.source in self._entities and row.target in self._entities

    def _entity(self, row: ForeignEntity) -> Entity:
        """Return the entity with the facts that live, or that were deleted with it."""
        numbered = self._numbered[row.id]
        return Entity(
            name=row.name,
            type=row.type,
            facts=tuple(fact for at, fact in numbered if at in (0, row.deleted_at)),
            id=row.id,
            next_ordinal=len(numbered) + 1,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    def _went_with_entity(self, row: ForeignRelation) -> bool:
        return row.deleted_at in (
            self._entities[row.source].deleted_at,
            self._entities[row.target].deleted_at,
        )
