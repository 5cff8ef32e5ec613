"""Copy whole memories from one store to another, with everything that both can hold.

Between stores whose rows are versions, the rows are copied as they are: ids, times, history, trash,
notes, perspectives and vectors. An interrupted copy continues where it stopped. Every copy is
compared with its source at the end.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from itertools import islice

from msgspec import Struct, msgpack
from msgspec.structs import replace

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.notes import vault_notes
from polymnia.engine.transfer.intake import Item, take_in
from polymnia.errors import BadInput, StoreError, WorkspaceNotFound
from polymnia.model import Entity, Workspace
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.contract import TABLES, Catalogue, ReadRows, Store, TableRow

ACTOR = "polymnia migrate"
# The workspace that a single store becomes in a catalogue, unless the caller names one.
DEFAULT_WORKSPACE = "default"
_DIFFERS = (
    "the copy in {url} differs from its source in the table {table}: the source has changed since "
    "the copy began; delete the copy and repeat the command while no server writes to the source"
)

# Called with the rows that are copied, and how many there are.
Progress = Callable[[int, int], None]


class Copy(Struct, frozen=True):
    """A copied workspace: its rows by kind, their checksum, and what the target cannot hold."""

    workspace: str
    rows: dict[str, int]
    checksum: str
    left_behind: tuple[str, ...] = ()


def migrate(
    source: str, target: str, workspace: str | None = None, progress: Progress | None = None
) -> Iterator[Copy]:
    """Copy all workspaces of a store, or one. Yield each when it is complete and checked.

    Raise BadInput, and StoreError if the target has other rows or differs in the end.
    """
    with ExitStack() as stack:
        sources = open_catalogue(source, read_only=True)
        targets = open_catalogue(target)
        for catalogue in (sources, targets):
            if catalogue is not None:
                stack.callback(catalogue.close)
        names = [workspace or DEFAULT_WORKSPACE]  # a single store has no name of its own
        if sources is not None:
            known = [item.name for item in sources.find_all()]
            names = known if workspace is None else [workspace]
            if workspace is not None and workspace not in known:
                has = ", ".join(known) or "none"
                raise BadInput(f"{source} has no workspace {workspace}; it has {has}")
        if len(names) > 1 and targets is None:
            raise BadInput(
                f"{target} holds one workspace, {source} has {len(names)}; "
                "choose one with --workspace"
            )
        for name in names:
            if sources is not None and targets is not None:
                yield _copy_workspace(sources, targets, sources.find(name), progress)
            else:
                read = _open(stack, sources, source, name, read_only=True)
                write = _open(stack, targets, target, name, read_only=False)
                yield copy_store(read, write, name, progress)


def copy_store(
    source: Store, target: Store, name: str = "", progress: Progress | None = None
) -> Copy:
    """Copy one workspace's memory. Raise StoreError if the copy differs."""
    if not (source.capabilities.tables and target.capabilities.tables):
        return _copy_graph(source, target, name, progress)
    with source.reading() as read:
        table = first_difference(read.read_rows, target)
        if table == "changes":
            raise BadInput(
                f"{target.url} has memories of its own; copy to a new store or workspace, "
                "or merge with `import`"
            )
        if table is not None:
            raise StoreError(_DIFFERS.format(url=target.url, table=table))
        return copy_tables(read.read_rows, target, name, progress)


def first_difference(source: ReadRows, target: Store) -> str | None:
    """Return the first table whose rows in the target are not the first ones of the source.

    An empty store and a copy that was interrupted have no difference: return None.
    """
    with target.reading() as there:
        for table in TABLES:
            rows = source(table)
            if any(row != next(rows, None) for row in there.read_rows(table)):
                return table
    return None


def copy_tables(
    source: ReadRows, target: Store, name: str = "", progress: Progress | None = None
) -> Copy:
    """Add the rows that the target lacks, the last ones of each table, and compare all of them.

    The target has no `first_difference`. Raise StoreError if the copy differs.
    """
    total = 0
    if progress is not None:
        total = sum(_count(source(table)) for table in TABLES)
    copied = 0
    for table in TABLES:
        with target.reading() as there:
            known = _count(there.read_rows(table))
        copied += known
        rest = islice(source(table), known, None)
        while rows := list(islice(rest, target.best_batch)):
            target.write_rows(table, rows)
            copied += len(rows)
            if progress is not None:
                progress(copied, total)
    counts: dict[str, int] = {}
    whole = sha256()
    with target.reading() as there:
        for table in TABLES:
            count, checksum = _summarize(source, table)
            if _summarize(there.read_rows, table) != (count, checksum):
                raise StoreError(_DIFFERS.format(url=target.url, table=table))
            counts[table] = count
            whole.update(checksum)
    return Copy(name, counts, whole.hexdigest())


def _copy_workspace(
    sources: Catalogue, targets: Catalogue, workspace: Workspace, progress: Progress | None
) -> Copy:
    # An archived workspace cannot be written: it gets its status when the copy is complete.
    targets.adopt(replace(workspace, status="active"))
    source = sources.open(workspace.name, archived=True)
    target = targets.open(workspace.name)
    try:
        copy = copy_store(source, target, workspace.name, progress)
    finally:
        source.close()
        target.close()
    targets.adopt(workspace)
    return copy


def _open(
    stack: ExitStack, catalogue: Catalogue | None, url: str, name: str, *, read_only: bool
) -> Store:
    """Open a single store, or the workspace that stands for one in a catalogue."""
    if catalogue is None:
        store = open_store(url, read_only=read_only)
        stack.callback(store.close)
        return store
    if not read_only:
        try:
            catalogue.find(name)
        except WorkspaceNotFound:
            catalogue.create(name)
    store = catalogue.open(name, archived=read_only)
    stack.callback(store.close)
    return store


def _summarize(read_rows: ReadRows, table: str) -> tuple[int, bytes]:
    """Return how many rows a table has, and their checksum."""
    count, checksum = 0, sha256()
    for row in read_rows(table):
        checksum.update(msgpack.encode(row))
        count += 1
    return count, checksum.digest()


def _count(rows: Iterable[TableRow]) -> int:
    return sum(1 for _ in rows)


def _copy_graph(source: Store, target: Store, name: str, progress: Progress | None) -> Copy:
    """Copy the living entities, relations and notes, if one of the stores has no versions."""
    graph = entities.read_all(Memory(source))
    notes = vault_notes(Memory(source))
    items: list[Item] = [*graph.entities, *graph.relations]
    if target.capabilities.notes:
        items += notes

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(items))

    take_in(Memory(target), items, by=ACTOR, progress=report)
    copied = entities.read_all(Memory(target))
    contents = {entity.name: _content(entity) for entity in copied.entities}
    keys = {relation.key for relation in copied.relations}
    missing = [one.name for one in graph.entities if contents.get(one.name) != _content(one)]
    missing += [" ".join(link.key) for link in graph.relations if link.key not in keys]
    if missing:
        raise StoreError(
            f"the copy in {target.url} differs: "
            f"{missing[0]} and {len(missing) - 1} more are missing"
        )
    counts = {
        "entities": len(graph.entities),
        "facts": sum(len(entity.facts) for entity in graph.entities),
        "relations": len(graph.relations),
        "notes": len(items) - len(graph.entities) - len(graph.relations),
    }
    has, can = source.capabilities, target.capabilities
    kinds = (
        (has.tables, can.tables, "history and deleted rows"),
        (bool(notes), can.notes, f"{len(notes)} vault notes"),
        (has.vectors, can.tables and can.vectors, "vectors and perspectives"),
    )
    left_behind = [kind for exists, is_possible, kind in kinds if exists and not is_possible]
    ordered = [
        sorted(_content(entity) for entity in graph.entities),
        sorted(relation.key for relation in graph.relations),
    ]
    return Copy(name, counts, sha256(msgpack.encode(ordered)).hexdigest(), tuple(left_behind))


def _content(entity: Entity) -> tuple[str, str, tuple[str, ...]]:
    return entity.name, entity.type, entity.texts
