"""Taking over a project file of an earlier program: everything in it, what was deleted too, becomes ours."""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct
from msgspec.structs import replace

from polymnia.disk.errors import map_os_errors
from polymnia.disk.replace import fsync_directory
from polymnia.errors import StoreBusy, StoreForeign
from polymnia.model import Change, Entity, Observation, ObservationSet, Relation, RelationKey, Rows
from polymnia.stores.projects import files
from polymnia.stores.projects.registry import QUERIES
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, map_errors
from polymnia.stores.sqlite.reader import SqliteWriter
from polymnia.stores.sqlite.store import SqliteStore

_COLUMNS = {
    *("entities.id", "entities.name", "entities.entity_type", "entities.created_at", "entities.updated_at"),
    *("entities.deleted_at", "observations.entity_id", "observations.content", "observations.created_at"),
    *("observations.deleted_at", "relations.from_entity", "relations.to_entity", "relations.relation_type"),
    *("relations.created_at", "relations.deleted_at"),
}
_ACTOR, _OPERATION = "polymnia", "import"


class _Dated(Struct, frozen=True):
    """An entity or relation and when it was deleted, 0 if it lives; an entity's observations that died before it."""

    value: Any
    deleted_at: int
    dead: tuple[tuple[int, Observation], ...] = ()


def adopt(path: Path) -> None:
    """Put a store of ours in the file's place and keep the old one as `.bak`.

    Raises StoreForeign when it is of a program we do not know, StoreBusy when that program still runs on it.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with map_errors(str(path)), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as old:
        old.set_busy_timeout(BUSY_TIMEOUT_MS)
        _refuse_unknown(path, old)
        _fold_log_in(path, old)
        entities, relations = _entities(old), _relations(old)
    with closing(SqliteStore(str(part))) as new, new.writing() as writer:
        _write(writer, entities, relations)
    _put(part, path)


def _refuse_unknown(path: Path, old: apsw.Connection) -> None:
    columns = {name for (name,) in old.execute(QUERIES["foreign_columns"]).fetchall()}
    if not columns >= _COLUMNS:
        raise StoreForeign(f"{path} is a SQLite file of another program; give polymnia a file of its own")


def _fold_log_in(path: Path, old: apsw.Connection) -> None:
    """One file instead of a file and its log, which also shows that nobody else has it open."""
    try:
        old.execute("PRAGMA journal_mode = DELETE").fetchall()
    except apsw.BusyError as exc:
        raise StoreBusy(f"{path} is open in another program; stop that one first, nothing was changed") from exc


def _entities(old: apsw.Connection) -> list[_Dated]:
    """A name that several of the living have is one entity here, the first, with the observations of all."""
    found = [_Row(*row) for row in _run(old, "foreign_entities")]
    observations: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    first: dict[str, str] = {}
    for row in found:
        if not row.deleted_at:
            first.setdefault(row.name, row.id)
    owner = {row.id: row.id if row.deleted_at else first[row.name] for row in found}
    for entity, text, created_at, deleted_at in _run(old, "foreign_observations"):
        if entity in owner:
            observations[owner[entity]].append((text, created_at, deleted_at))
    return [_entity(row, observations[row.id]) for row in found if owner[row.id] == row.id]


class _Row(Struct, frozen=True):
    """An entity as the earlier program had it."""

    id: str
    name: str
    type: str
    created_at: int
    updated_at: int
    deleted_at: int


def _entity(row: _Row, texts: list[tuple[str, int, int]]) -> _Dated:
    numbered = [
        (deleted_at, Observation(ordinal, text, created_at))
        for ordinal, (text, created_at, deleted_at) in enumerate(texts, 1)
    ]
    entity = Entity(
        name=row.name,
        type=row.type,
        observations=tuple([each for _, each in numbered]),
        id=row.id,
        next_ordinal=len(numbered) + 1,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
    dead = tuple([(at, each) for at, each in numbered if at and at != row.deleted_at])
    return _Dated(entity, row.deleted_at, dead)


def _relations(old: apsw.Connection) -> list[_Dated]:
    return [_Dated(Relation(*row[:4]), row[4]) for row in _run(old, "foreign_relations")]


def _run(old: apsw.Connection, query: str) -> list[tuple[Any, ...]]:
    return old.execute(QUERIES[query]).fetchall()


def _write(writer: SqliteWriter, entities: list[_Dated], relations: list[_Dated]) -> None:
    """The dead first: a living one may have the same name."""
    for each in entities:
        if each.deleted_at:
            for change in _life_and_death(each):
                writer.apply(change)
    living = [each for each in entities if not each.deleted_at]
    writer.apply(_made(Rows(entities=tuple([each.value for each in living]))))
    for each in living:
        for change in _deaths(each):
            writer.apply(change)
    for each in relations:
        if each.deleted_at:
            rows = Rows(relations=(each.value,))
            writer.apply(_made(rows))
            writer.apply(Change(_OPERATION, _ACTOR, each.deleted_at, before=rows))
    distinct: dict[RelationKey, Relation] = {}
    for each in relations:
        if not each.deleted_at:
            distinct.setdefault(each.value.key, each.value)
    writer.apply(_made(Rows(relations=tuple(distinct.values()))))


def _life_and_death(each: _Dated) -> Iterator[Change]:
    yield _made(Rows(entities=(each.value,)))
    yield from _deaths(each)
    gone = {observation.ordinal for _, observation in each.dead}
    left = tuple([one for one in each.value.observations if one.ordinal not in gone])
    yield Change(_OPERATION, _ACTOR, each.deleted_at, before=Rows(entities=(replace(each.value, observations=left),)))


def _deaths(each: _Dated) -> Iterator[Change]:
    """The observations that were deleted one by one, each at its time."""
    for at, observation in each.dead:
        yield Change(
            _OPERATION, _ACTOR, at, before=Rows(observations=(ObservationSet(each.value.name, (observation,)),))
        )


def _made(rows: Rows) -> Change:
    times = [each.created_at for each in rows.entities] + [each.created_at for each in rows.relations]
    return Change(_OPERATION, _ACTOR, max(times, default=0), after=rows)


def _put(part: Path, path: Path) -> None:
    """The old file gets a second name before the new one takes its first: there is always one in the place."""
    backup = path.with_name(f"{path.name}.bak")
    with map_os_errors(str(path)):
        if not backup.exists():
            _second_name(path, backup)
        part.replace(path)
        fsync_directory(path.parent)


def _second_name(path: Path, backup: Path) -> None:
    try:
        os.link(path, backup)
    except OSError:  # not every file system has a file under two names
        files.copy(path, backup)
