"""Keep a folder of Markdown files and a memory alike, in both directions. Docs: docs/sync.md."""

from collections.abc import Callable
from pathlib import Path
from time import time_ns

from msgspec import DecodeError, Struct, field
from msgspec.json import decode, encode
from msgspec.structs import replace

from polymnia.disk.files import (
    dated_name,
    make_directory,
    map_os_errors,
    replace_file,
    replace_quickly,
    sync_files,
)
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.document import living_notes, living_relations
from polymnia.errors import BadInput, NotSupported
from polymnia.importers.source import Source
from polymnia.markdown.folder import FilePaths, FolderContents, lay_out, read_folder
from polymnia.markdown.merge import (
    MergeConflict,
    State,
    adopt_ids,
    reconcile,
    rows_between,
)
from polymnia.markdown.properties import add_property_lines
from polymnia.model import ChangeQuery, Entity, Note, Relation, Rows
from polymnia.stores.contract import Reader


class SyncCounts(Struct):
    """How many entities and notes, or files, were created, changed and deleted."""

    created: int = 0
    changed: int = 0
    deleted: int = 0


class SyncReport(Struct):
    """What a synchronization did, or would do. The change is 0 if the memory did not change."""

    memory: SyncCounts = field(default_factory=SyncCounts)
    files: SyncCounts = field(default_factory=SyncCounts)
    change: int = 0
    at: int = 0
    conflicts: list[MergeConflict] = []
    conflict_files: list[str] = []
    skipped: list[str] = []
    others: int = 0


class Base(Struct):
    """What the folder and the memory were when they were last alike, and where the files were."""

    state: State
    places: FilePaths


class _Line(Struct, frozen=True, omit_defaults=True):
    """A line of the state file: the memory, an entity or note with its path, or a relation."""

    version: int = 0
    store: str = ""
    change: int = 0
    at: int = 0
    path: str = ""
    entity: Entity | None = None
    relation: Relation | None = None
    note: Note | None = None


def export_folder(memory: Memory, path: Path) -> SyncReport:
    """Write the memory to a new folder. Raise BadInput if there are files in it."""
    with map_os_errors(str(path)):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(
                f"{path} is not an empty folder: use `polymnia sync` to update an existing one"
            )
    return _synchronize(memory, path, by="", dry_run=False, progress=None)


def sync_folder(
    memory: Memory,
    path: Path,
    *,
    by: str,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> SyncReport:
    """Bring the edits of the folder into the memory as one change, then the memory into the folder.

    Raise BadInput, and NotSupported if the store keeps no history.
    """
    if not memory.store.capabilities.history:
        raise NotSupported(
            f"{memory.store.url} keeps no history; use a SQLite store: a path ending in .db"
        )
    return _synchronize(memory, path, by=by, dry_run=dry_run, progress=progress)


def _synchronize(
    memory: Memory,
    path: Path,
    *,
    by: str,
    dry_run: bool,
    progress: Callable[[int], None] | None,
) -> SyncReport:
    with map_os_errors(str(path)):
        if path.exists() and not path.is_dir():
            raise BadInput(f"{path} is not a folder")
        contents = FolderContents({}, [], {}, {}, [], {})
        if path.exists():
            contents = read_folder(Source(str(path)))
        base = read_base(memory, path) or Base(State(), FilePaths({}, {}))
        report = SyncReport(
            conflicts=[], conflict_files=[], skipped=[], others=len(contents.others)
        )
        places, merged = _change_memory(memory, contents, base, report, by, dry_run)
        _FolderWriter(path, contents, base, places, report, dry_run).run(memory, merged, progress)
    return report


def state_of(memory: Memory, read: Reader) -> State:
    """Return everything that is living in a memory."""
    # Stores without ids know their entities by name.
    return State(
        {entity.id or entity.name: entity for entity in read.entities()},
        {relation.key: relation for relation in living_relations(memory.store, read)},
        {note.key: note for note in living_notes(memory.store, read)},
    )


def _change_memory(
    memory: Memory, contents: FolderContents, base: Base, report: SyncReport, by: str, dry_run: bool
) -> tuple[FilePaths, State]:
    """Apply the edits of the folder. Return the places of the files, and the merged state."""

    def plan(read: Reader, at: int) -> tuple[FilePaths, State, Rows, Rows]:
        mine = state_of(memory, read)
        places, copy = _copy_of(
            contents, base, mine, holds_notes=memory.store.capabilities.notes, report=report
        )
        merged, report.conflicts = reconcile(base.state, mine, copy)
        return places, merged, *rows_between(mine, merged, at)

    with memory.reading() as read:
        places, merged, before, after = plan(read, 0)
    if (before or after) and not dry_run:
        with memory.writing("sync", by) as transaction:
            places, merged, before, after = plan(transaction.read, transaction.time())
            transaction.apply(before=before, after=after)
        report.at = transaction.time()
        report.change = transaction.change.id if transaction.change else 0
    old_ids = {entity.id for entity in before.entities}
    new_ids = {entity.id for entity in after.entities}
    old_notes, new_notes = ({note.key for note in rows.notes} for rows in (before, after))
    changed: set[str] = set()
    created_or_deleted: set[str] = set()
    for rows in (before, after):
        changed |= {group.entity for group in rows.facts}
        changed |= {relation.source for relation in rows.relations}
        for entity in rows.entities:
            if entity.id not in old_ids & new_ids:
                created_or_deleted.add(entity.name)
    # A renamed entity counts once, under its old name.
    changed |= {entity.name for entity in before.entities if entity.id in new_ids}
    report.memory.created = len(new_ids - old_ids) + len(new_notes - old_notes)
    report.memory.deleted = len(old_ids - new_ids) + len(old_notes - new_notes)
    report.memory.changed = len(changed - created_or_deleted) + len(old_notes & new_notes)
    if dry_run:
        merged = _with_times(merged, before, after, time_ns() // 1000)
    return places, merged


def _with_times(state: State, before: Rows, after: Rows, at: int) -> State:
    """Return the state as a real run would leave it, for a dry run.

    What the change touches has its time, which is also in the files.
    """
    touched = {entity.name for entity in after.entities}
    touched |= {group.entity for group in (*before.facts, *after.facts)}
    entities = dict(state.entities)
    for key, entity in state.entities.items():
        if entity.name in touched:
            entities[key] = replace(entity, updated_at=at)
    notes = dict(state.notes)
    for note in after.notes:
        notes[note.key] = replace(note, updated_at=at)
    return State(entities, state.relations, notes)


def _copy_of(
    contents: FolderContents, base: Base, memory: State, *, holds_notes: bool, report: SyncReport
) -> tuple[FilePaths, State]:
    """Return the places and the content of the files. The known one of two files of a note wins."""
    places, state = FilePaths({}, {}), State()
    known_ids = {path: key for key, path in base.places.entities.items()}

    def entity_order(path: str) -> tuple[bool, str]:
        return known_ids.get(path) != contents.entities[path].id, path

    paths = sorted(contents.entities, key=entity_order)
    entities = adopt_ids(base.state, memory, [contents.entities[path] for path in paths])
    report.skipped = []
    for path, entity in zip(paths, entities, strict=True):
        places.entities[entity.id] = path
        state.entities[entity.id] = entity
    state.relations = {relation.key: relation for relation in contents.relations}
    known_notes = set(base.places.notes.values())
    for path in sorted(contents.notes, key=lambda path: (path not in known_notes, path)):
        note = contents.notes[path]
        if not holds_notes:
            report.skipped.append(f"{path}: the store cannot hold notes")
        elif note.key in state.notes:
            report.skipped.append(f"{path}: there is another file of this note")
        else:
            places.notes[note.key] = path
            state.notes[note.key] = note
    return places, state


class _FolderWriter:
    """The second half of a synchronization: the files follow the memory."""

    def __init__(
        self,
        path: Path,
        contents: FolderContents,
        base: Base,
        places: FilePaths,
        report: SyncReport,
        dry_run: bool,
    ) -> None:
        self._path = path
        self._contents = contents
        self._base = base
        self._places = places
        self._report = report
        self._dry_run = dry_run
        self._late: set[str] = set()
        self._written: list[Path] = []
        self._moved: set[str] = set()

    def run(self, memory: Memory, state: State, progress: Callable[[int], None] | None) -> None:
        """Write, move and delete files, then remember what both sides are now."""
        with memory.reading() as read:
            state = state if self._dry_run else state_of(memory, read)
            head = _head(memory, read)
        former = {key: entity.name for key, entity in self._base.state.entities.items()}
        # Find the files that the memory did not take: a name in use, a second file of a note.
        rejected = []
        for conflict in self._report.conflicts:
            path = self._places.entities.get(conflict.key)
            if conflict.what == "name" and path and conflict.key not in state.entities:
                rejected.append(path)
                self._report.skipped.append(f"{path}: there is another entity of this name")
        placed_notes = set(self._places.notes.values())
        rejected += [path for path in self._contents.notes if path not in placed_notes]
        # Copy the files whose version the memory does not have, unless they stay as they are.
        for conflict in self._report.conflicts:
            path = self._places.notes.get(conflict.key) or self._places.entities.get(conflict.key)
            if conflict.lost and path and path not in rejected and not self._dry_run:
                kept = dated_name(self._path / path, ".conflict-")
                replace_quickly(kept, self._contents.data[path])
                self._report.conflict_files.append(kept.relative_to(self._path).as_posix())
        files, places = lay_out(state, self._places, former, [*self._contents.others, *rejected])
        moves = {new: self._places.entities.get(key, new) for key, new in places.entities.items()}
        for count, (path, data) in enumerate(files.items(), 1):
            self._write(path, data, moves.get(path, path))
            if progress is not None:
                progress(count)
        for path in self._contents.data.keys() - files.keys() - set(rejected) - self._moved:
            if not self._is_as_read(path):
                self._postpone(path)
                continue
            self._report.files.deleted += 1
            if not self._dry_run:
                (self._path / path).unlink()
        if not self._dry_run:
            sync_files(self._written)
            # Remember what both sides are now.
            base = self._new_base(state, places)
            file = _base_file(self._path)
            make_directory(file.parent)
            # The state is about this folder and this store, so it must not get into git.
            replace_quickly(file.parent / ".gitignore", b"*\n")
            lines = [head]
            for key, entity in base.state.entities.items():
                lines.append(_Line(path=base.places.entities[key], entity=entity))
            lines += [_Line(relation=relation) for relation in base.state.relations.values()]
            for key, note in base.state.notes.items():
                lines.append(_Line(path=base.places.notes[key], note=note))
            replace_file(file, (encode(line) + b"\n" for line in lines))

    def _write(self, path: str, data: bytes, former: str) -> None:
        """Move a file if its path is new, and write it. Keep properties that are not ours."""
        other_properties = self._contents.other_properties.get(former)
        if other_properties:
            lines = "\n".join(other_properties.values())
            data = add_property_lines(data.decode(), lines).encode()
        known = self._contents.data.get(former)
        if known == data and former == path:
            return
        if not self._is_as_read(former):
            self._postpone(path)
            return
        if known is None:
            self._report.files.created += 1
        else:
            self._report.files.changed += 1
        if self._dry_run:
            return
        target, source = self._path / path, self._path / former
        if not target.parent.resolve().is_relative_to(self._path.resolve()):
            raise BadInput(f"{target.parent} is a link to another place; replace it by a folder")
        make_directory(target.parent)
        if former != path and (not target.exists() or target.samefile(source)):
            source.rename(target)  # at no time are there two files of one entity
            self._moved.add(former)
        replace_quickly(target, data)
        self._written.append(target)

    def _postpone(self, path: str) -> None:
        self._report.skipped.append(f"{path}: changed meanwhile, left for the next time")
        self._late.add(path)

    def _is_as_read(self, path: str) -> bool:
        file = self._path / path
        data = file.read_bytes() if file.is_file() else None
        return data == self._contents.data.get(path)

    def _new_base(self, state: State, places: FilePaths) -> Base:
        """Return what both sides are now. What changed meanwhile keeps its former base."""
        if not self._late:
            return Base(state, places)
        old = self._base.state
        new = State(dict(state.entities), state.relations, dict(state.notes))
        for key in state.entities:
            if places.entities[key] in self._late:
                del new.entities[key]
                if key in old.entities:
                    new.entities[key] = old.entities[key]
        for key in state.notes:
            if places.notes[key] in self._late:
                del new.notes[key]
                if key in old.notes:
                    new.notes[key] = old.notes[key]
        return Base(new, places)


def read_base(memory: Memory, path: Path) -> Base | None:
    """Return what the folder and the memory were when they were last alike.

    Return None if it was another store, or one that has lost changes since, as after a restore.
    """
    file = _base_file(path)
    if not file.is_file() or not memory.store.capabilities.history:
        return None
    base = Base(State(), FilePaths({}, {}))
    try:
        with file.open("rb") as lines, memory.reading() as read:
            head = decode(next(lines, b"{}"), type=_Line)
            if not head.change or head != _head(memory, read, head.change):
                return None
            for row in lines:
                line = decode(row, type=_Line)
                if line.entity is not None:
                    key = line.entity.id or line.entity.name
                    base.state.entities[key] = line.entity
                    base.places.entities[key] = line.path
                elif line.relation is not None:
                    base.state.relations[line.relation.key] = line.relation
                elif line.note is not None:
                    base.state.notes[line.note.key] = line.note
                    base.places.notes[line.note.key] = line.path
    except (DecodeError, UnicodeDecodeError):
        return None
    return base


def _base_file(path: Path) -> Path:
    """Return where the state of a folder is kept. Raise BadInput if a link leads elsewhere.

    A shared folder may contain such a link, and writing would overwrite other files.
    """
    base = "base.jsonl"
    state = ".polymnia"
    file = path / state / base
    for place in (file.parent, file):
        if place.is_symlink():
            raise BadInput(f"{place} is a link to another place; delete the link and try again")
    return file


def _head(memory: Memory, read: Reader, change: int = 0) -> _Line:
    """Return the first line of the state: the store and one of its changes, by default the last."""
    url = memory.store.url
    store = str(Path(url).resolve()) if Path(url).exists() else url
    if not memory.store.capabilities.history:
        return _Line(version=1, store=store)
    changes = read.history.changes(ChangeQuery(before=change + 1 if change else None, limit=1))
    if not changes or (change and changes[0].id != change):
        return _Line(version=1, store=store)
    return _Line(version=1, store=store, change=changes[0].id, at=changes[0].at)
