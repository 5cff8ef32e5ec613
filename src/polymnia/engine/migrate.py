"""Copy whole memories from one store to another, workspace by workspace, with everything that both can hold.

Between stores whose rows are versions, the rows are copied as they are: ids, times, history, trash, notes, perspectives
and vectors. An interrupted copy continues where it stopped. Every copy is compared with its source at the end.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from itertools import islice, zip_longest

from msgspec import Struct, msgpack
from msgspec.structs import replace

from polymnia.engine import entities
from polymnia.engine.memory import Memory
from polymnia.engine.transfer import Progress, absorb, absorb_notes, batches, vault_notes
from polymnia.errors import BadInput, StoreError, WorkspaceNotFound
from polymnia.model import Graph, Workspace
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.contract import TABLES, Catalogue, Store, TableReader

ACTOR = "polymnia migrate"
# The workspace that a single store becomes in a catalogue, unless the caller names one.
DEFAULT_WORKSPACE = "default"
_DIFFERS = (
    "the copy in {url} differs from its source in the table {table}: the source has changed since the copy began; "
    "delete the copy and repeat the command while nobody writes to the source"
)


class Copy(Struct, frozen=True):
    """One workspace that was copied: how many rows of each kind, their checksum, and what the target cannot hold."""

    workspace: str
    rows: dict[str, int]
    checksum: str
    left_behind: tuple[str, ...] = ()


def migrate(
    source: str, target: str, workspace: str | None = None, progress: Progress | None = None
) -> Iterator[Copy]:
    """Copy all workspaces of a store, or one, to another store. Yield each when it is complete and checked.

    Raise BadInput, and StoreError if the target has other rows or differs in the end.
    """
    with ExitStack() as stack:
        sources = open_catalogue(source, read_only=True)
        targets = open_catalogue(target)
        for each in (sources, targets):
            if each is not None:
                stack.callback(each.close)
        names = _names(sources, source, workspace)
        if len(names) > 1 and targets is None:
            raise BadInput(
                f"{target} holds one workspace, {source} has {len(names)}; choose one with --workspace"
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
        table = first_difference(read.tables, target)
        if table == "changes":
            raise BadInput(
                f"{target.url} has memories of its own; copy to a new store or workspace, or merge with `import`"
            )
        if table is not None:
            raise StoreError(_DIFFERS.format(url=target.url, table=table))
        return copy_tables(read.tables, target, name, progress)


def first_difference(source: TableReader, target: Store) -> str | None:
    """Return the first table of which the target has other rows than the first ones of the source; None if it has none.

    An empty store and a copy that was interrupted have no difference.
    """
    with target.reading() as there:
        for table in TABLES:
            known = there.tables.count(table)
            copied = islice(source.read(table), known)
            if known and any(
                row != own for row, own in zip_longest(copied, there.tables.read(table))
            ):
                return table
    return None


def copy_tables(
    source: TableReader, target: Store, name: str = "", progress: Progress | None = None
) -> Copy:
    """Add the rows that the target does not have yet, which are the last ones of each table, and compare all of them.

    The target has no `first_difference`. Raise StoreError if the copy differs.
    """
    total = sum([source.count(table) for table in TABLES])
    done = 0
    for table in TABLES:
        with target.reading() as there:
            known = there.tables.count(table)
        done += known
        for rows in batches(islice(source.read(table), known, None), target.best_batch):
            target.tables.write(table, rows)
            done += len(rows)
            if progress is not None:
                progress(done, total)
    target.tables.finish()
    with target.reading() as there:
        return _compare(source, there.tables, name, target.url)


def _names(catalogue: Catalogue | None, url: str, wanted: str | None) -> list[str]:
    """Return the workspaces to copy. A single store has no name of its own."""
    if catalogue is None:
        return [wanted or DEFAULT_WORKSPACE]
    names = [each.name for each in catalogue.find_all()]
    if wanted is not None and wanted not in names:
        raise BadInput(f"{url} has no workspace {wanted}; it has {', '.join(names) or 'none'}")
    return names if wanted is None else [wanted]


def _copy_workspace(
    sources: Catalogue, targets: Catalogue, workspace: Workspace, progress: Progress | None
) -> Copy:
    targets.adopt(replace(workspace, status="active"))
    source, target = sources.open(workspace.name, archived=True), targets.open(workspace.name)
    try:
        copied = copy_store(source, target, workspace.name, progress)
    finally:
        sources.close_store(source)
        targets.close_store(target)
    targets.adopt(workspace)
    return copied


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
    stack.callback(catalogue.close_store, store)
    return store


def _compare(source: TableReader, copied: TableReader, name: str, url: str) -> Copy:
    """Compare every row. Raise StoreError."""
    counts: dict[str, int] = {}
    whole = sha256()
    for table in TABLES:
        (count, checksum), found = _summarize(source, table), _summarize(copied, table)
        if found != (count, checksum):
            raise StoreError(_DIFFERS.format(url=url, table=table))
        counts[table] = count
        whole.update(checksum)
    return Copy(name, counts, whole.hexdigest())


def _summarize(tables: TableReader, table: str) -> tuple[int, bytes]:
    """Return how many rows a table has, and their checksum."""
    count, checksum = 0, sha256()
    for row in tables.read(table):
        checksum.update(msgpack.encode(row))
        count += 1
    return count, checksum.digest()


def _copy_graph(source: Store, target: Store, name: str, progress: Progress | None) -> Copy:
    """Copy the living entities, relations and notes, if one of the stores has no versions."""
    read, write = Memory(source), Memory(target)
    graph = entities.read_all(read)
    absorb(write, graph, by=ACTOR, progress=progress)
    notes = vault_notes(read)
    if notes and target.capabilities.notes:
        absorb_notes(write, notes, by=ACTOR, progress=progress)
    missing = _find_missing(graph, entities.read_all(write))
    if missing:
        raise StoreError(
            f"the copy in {target.url} differs: {missing[0]} and {len(missing) - 1} more are missing"
        )
    counts = {
        "entities": len(graph.entities),
        "observations": sum([len(each.observations) for each in graph.entities]),
        "relations": len(graph.relations),
        "notes": len(notes) if target.capabilities.notes else 0,
    }
    return Copy(name, counts, _graph_checksum(graph), _left_behind(source, target, len(notes)))


def _find_missing(expected: Graph, found: Graph) -> list[str]:
    """Return the names and relations of a graph that another does not have in the same form."""
    there = {each.name: (each.type, *each.texts) for each in found.entities}
    linked = {each.key for each in found.relations}
    entities_missing = [
        each.name for each in expected.entities if there.get(each.name) != (each.type, *each.texts)
    ]
    return entities_missing + [
        " ".join(each.key) for each in expected.relations if each.key not in linked
    ]


def _graph_checksum(graph: Graph) -> str:
    named = sorted([(each.name, each.type, each.texts) for each in graph.entities])
    return sha256(
        msgpack.encode([named, sorted([each.key for each in graph.relations])])
    ).hexdigest()


def _left_behind(source: Store, target: Store, notes: int) -> tuple[str, ...]:
    has, can = source.capabilities, target.capabilities
    kinds = (
        (has.tables, can.tables, "history and deleted rows"),
        (bool(notes), can.notes, f"{notes} vault notes"),
        (has.vectors, can.tables and can.vectors, "vectors and perspectives"),
    )
    return tuple([what for exists, possible, what in kinds if exists and not possible])
