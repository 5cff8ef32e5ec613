"""Take over a project file of an earlier program: everything in it, deleted or not, becomes a store of ours."""

import logging
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import fsync_directory
from polymnia.errors import StoreBusy, StoreForeign
from polymnia.model import Entity, Observation, ObservationSet, Relation, RelationKey, Rows
from polymnia.stores.directory import files
from polymnia.stores.directory.registry import QUERIES
from polymnia.stores.sqlite.adopt import keep_backup
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, map_errors
from polymnia.stores.sqlite.fill import Contents, DeletedEntity, fill
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


class EntityRow(NamedTuple):
    """An entity of the earlier program. `deleted_at` is 0 while it lives, here and below."""

    id: str
    name: str
    type: str
    created_at: int
    updated_at: int
    deleted_at: int


class ObservationRow(NamedTuple):
    """An observation of the earlier program."""

    entity: str
    text: str
    created_at: int
    deleted_at: int


class RelationRow(NamedTuple):
    """A relation of the earlier program, by the ids of its ends."""

    source: str
    target: str
    type: str
    created_at: int
    deleted_at: int


def adopt(path: Path) -> None:
    """Replace the file by a store of ours and keep the old one as `.bak`.

    Raise StoreForeign if an unknown program wrote it, StoreBusy if another program still has it open.
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
        _require_sole_user(path, old)
        contents = _read(path, old)
    with closing(SqliteStore(str(part))) as new:
        fill(new, contents)
    _put_in_place(part, path)
    logger.warning(
        "%s was written by an earlier program: converted, and kept as %s.bak", path, path.name
    )


def is_adoptable(connection: apsw.Connection) -> bool:
    """Return True for a project file of the earlier program."""
    return {
        name for (name,) in connection.execute(QUERIES["foreign_columns"]).fetchall()
    } >= _COLUMNS


def _require_sole_user(path: Path, old: apsw.Connection) -> None:
    """Fold the write-ahead log into the file, which fails if another process has it open. Raise StoreBusy."""
    try:
        old.execute("PRAGMA journal_mode = DELETE").fetchall()
    except apsw.BusyError as exc:
        raise StoreBusy(
            f"{path} is open in another program: stop that first; nothing was changed"
        ) from exc


def _read(path: Path, old: apsw.Connection) -> Contents:
    rows = _Rows(
        [EntityRow(*row) for row in _run(old, "foreign_entities")],
        [ObservationRow(*row) for row in _run(old, "foreign_observations")],
        [RelationRow(*row) for row in _run(old, "foreign_relations")],
    )
    if lost := rows.without_entity():
        logger.warning(
            "%s: %d rows belong to no entity; they are only in %s.bak", path, lost, path.name
        )
    return rows.contents()


def _run(old: apsw.Connection, query: str) -> list[tuple[Any, ...]]:
    return old.execute(QUERIES[query]).fetchall()


class _Rows:
    """The rows of a file. Living entities with the same name become one, the first, with the observations of all."""

    def __init__(
        self,
        entities: list[EntityRow],
        observations: list[ObservationRow],
        relations: list[RelationRow],
    ) -> None:
        self._entities = {each.id: each for each in entities}
        self._observations = observations
        self._relations = relations
        first: dict[str, str] = {}
        for each in entities:
            if not each.deleted_at:
                first.setdefault(each.name, each.id)
        self._owner = {
            each.id: each.id if each.deleted_at else first[each.name] for each in entities
        }
        self._numbered: defaultdict[str, list[tuple[int, Observation]]] = defaultdict(list)
        for row in observations:
            if row.entity in self._owner:
                numbered = self._numbered[self._owner[row.entity]]
                numbered.append(
                    (row.deleted_at, Observation(len(numbered) + 1, row.text, row.created_at))
                )

    def without_entity(self) -> int:
        """Return how many observations and relations name an entity that does not exist."""
        ends = [(each.source, each.target) for each in self._relations]
        return len(
            [each for each in self._observations if each.entity not in self._entities]
        ) + len([pair for pair in ends if not self._entities.keys() >= set(pair)])

    def contents(self) -> Contents:
        """Return what to write."""
        rows = [each for each in self._entities.values() if self._owner[each.id] == each.id]
        living = [each for each in rows if not each.deleted_at]
        linked = [
            each for each in self._relations if self._entities.keys() >= {each.source, each.target}
        ]
        distinct: dict[RelationKey, Relation] = {}
        for row in linked:
            if not row.deleted_at:
                distinct.setdefault(self._relation(row).key, self._relation(row))
        deleted = [each for each in linked if each.deleted_at]
        with_entity: defaultdict[tuple[str, int], list[Relation]] = defaultdict(list)
        for row in deleted:
            for end in {row.source, row.target}:
                with_entity[end, row.deleted_at].append(self._relation(row))
        return Contents(
            living=Rows(
                tuple([self._entity(each) for each in living]), relations=tuple(distinct.values())
            ),
            entities=tuple(
                [
                    DeletedEntity(
                        self._entity(each),
                        tuple(with_entity[each.id, each.deleted_at]),
                        self._earlier(each),
                    )
                    for each in rows
                    if each.deleted_at
                ]
            ),
            observations=tuple(
                [
                    ObservationSet(each.name, lost)
                    for each in living
                    if (lost := self._earlier(each))
                ]
            ),
            relations=tuple(
                [self._relation(each) for each in deleted if not self._went_with_entity(each)]
            ),
        )

    def _entity(self, row: EntityRow) -> Entity:
        """Return the entity with the observations that live, or that were deleted with it."""
        numbered = self._numbered[row.id]
        return Entity(
            name=row.name,
            type=row.type,
            observations=tuple([each for at, each in numbered if at in (0, row.deleted_at)]),
            id=row.id,
            next_ordinal=len(numbered) + 1,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    def _earlier(self, row: EntityRow) -> tuple[Observation, ...]:
        return tuple([each for at, each in self._numbered[row.id] if at not in (0, row.deleted_at)])

    def _went_with_entity(self, row: RelationRow) -> bool:
        return row.deleted_at in (
            self._entities[row.source].deleted_at,
            self._entities[row.target].deleted_at,
        )

    def _relation(self, row: RelationRow) -> Relation:
        return Relation(
            self._entities[row.source].name,
            self._entities[row.target].name,
            row.type,
            row.created_at,
        )


def _put_in_place(part: Path, path: Path) -> None:
    """Give the old file a second name before the new one replaces it, so that there is always a file."""
    with map_os_errors(str(path)):
        keep_backup(path)
        part.replace(path)
        fsync_directory(path.parent)
