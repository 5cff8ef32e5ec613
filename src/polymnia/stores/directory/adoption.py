"""Convert the project file of an earlier program, with everything deleted, to a store of ours."""

import logging
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from polymnia.disk.files import fsync_directory, map_os_errors
from polymnia.errors import StoreBusy, StoreForeign
from polymnia.model import RelationKey
from polymnia.stores.clock import now_us
from polymnia.stores.contract.tables import NamedRow, table_rows
from polymnia.stores.directory import files
from polymnia.stores.directory.registry import QUERIES
from polymnia.stores.sqlite.connection import BUSY_TIMEOUT_MS, map_errors
from polymnia.stores.sqlite.foreign import keep_backup
from polymnia.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)

_COLUMNS = {
    "entities": ("id", "name", "entity_type", "created_at", "updated_at", "deleted_at"),
    "observations": ("entity_id", "content", "created_at", "deleted_at"),
    "relations": ("from_entity", "to_entity", "relation_type", "created_at", "deleted_at"),
}


class ForeignEntity(NamedTuple):
    """An entity of the earlier program. `deleted_at` is 0 while it lives, here and below."""

    id: str
    name: str
    type: str
    created_at: int
    updated_at: int
    deleted_at: int


class ForeignFact(NamedTuple):
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
        lost = write_store(
            part,
            [ForeignEntity(*row) for row in _run(old, "foreign_entities")],
            [ForeignFact(*row) for row in _run(old, "foreign_observations")],
            [ForeignRelation(*row) for row in _run(old, "foreign_relations")],
        )
    if lost:
        logger.warning(
            "%s: %d rows belong to no entity; they are only in %s.bak", path, lost, path.name
        )
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
    columns = {name for (name,) in _run(connection, "foreign_columns")}
    return all(
        f"{table}.{column}" in columns for table, names in _COLUMNS.items() for column in names
    )


def _run(old: apsw.Connection, query: str) -> list[tuple[Any, ...]]:
    return old.execute(QUERIES[query]).fetchall()


def write_store(
    path: Path,
    entities: list[ForeignEntity],
    facts: list[ForeignFact],
    relations: list[ForeignRelation],
) -> int:
    """Write the rows to a new store. Return how many belong to no entity and were left out.

    The first change creates everything. What was deleted at the same time was deleted together,
    and is one change here. All are made now, so the trash keeps things as long as if they were
    deleted now, and no state before the last of them can be read.
    """
    times = {entity.deleted_at for entity in entities} | {fact.deleted_at for fact in facts}
    times |= {relation.deleted_at for relation in relations}
    deletions = {deleted_at: change for change, deleted_at in enumerate(sorted(times - {0}), 2)}
    last_change = len(deletions) + 1
    by_id = {entity.id: entity for entity in entities}

    # Names are unique here: living entities of one name become the first, with all facts.
    first: dict[str, ForeignEntity] = {}
    owners: dict[str, ForeignEntity] = {}
    for entity in entities:
        owners[entity.id] = entity
        if not entity.deleted_at:
            owners[entity.id] = first.setdefault(entity.name, entity)
    numbers: dict[str, int] = {}
    cards: list[NamedRow] = []
    for entity in entities:
        if owners[entity.id] is entity:
            number = numbers[entity.id] = len(cards) + 1
            cards.append(
                {
                    "id": number,
                    "entity": number,
                    "name": entity.name,
                    "type": entity.type,
                    "created_at": entity.created_at,
                    "until": deletions.get(entity.deleted_at),
                }
            )

    observations: list[NamedRow] = []
    last_ordinals: Counter[str] = Counter()
    for fact in facts:
        if fact.entity in owners:
            owner = owners[fact.entity]
            last_ordinals[owner.id] += 1
            observations.append(
                {
                    "id": len(cards) + len(observations) + 1,
                    "entity": numbers[owner.id],
                    "ordinal": last_ordinals[owner.id],
                    "text": fact.text,
                    "created_at": fact.created_at,
                    "until": deletions.get(fact.deleted_at or owner.deleted_at),
                }
            )

    last_row = len(cards) + len(observations)
    links: list[NamedRow] = []
    living: set[RelationKey] = set()
    lost = len(facts) - len(observations)
    for relation in relations:
        if relation.source not in by_id or relation.target not in by_id:
            lost += 1
            continue
        source, target = by_id[relation.source].name, by_id[relation.target].name
        key = (source, target, relation.type)
        if not relation.deleted_at:
            if key in living:
                continue
            living.add(key)
        last_row += 1
        links.append(
            {
                "id": last_row,
                "source": source,
                "target": target,
                "type": relation.type,
                "created_at": relation.created_at,
                "until": deletions.get(relation.deleted_at),
            }
        )

    identities = []
    for uid, number in numbers.items():
        entity = by_id[uid]
        touched = deletions.get(entity.deleted_at, 1)
        identities.append((number, uid, last_ordinals[uid] + 1, entity.updated_at, touched))
    now = now_us()
    changes = []
    for change in range(1, last_change + 1):
        changes.append((change, now + change, "polymnia", "", "import", last_row))
    with closing(SqliteStore(str(path))) as store:
        store.write_rows("changes", changes)
        store.write_rows("purges", [(last_change,)])
        store.write_rows("entities", identities)
        for table, rows in (("cards", cards), ("observations", observations), ("relations", links)):
            store.write_rows(table, table_rows(table, [row | {"since": 1} for row in rows]))
    return lost
