"""Take over what other programs have left on this machine: once, and undone in one step.

Sessions go to the workspace of the project in which they took place, everything else to the
personal one or to that of the current project. A file beside the store's data says which files were
taken and when it began, so that an interrupted takeover continues, the next one takes only what is
new, and all of it can be undone. Every batch is a change of its own, so sessions that run meanwhile
are not blocked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from time import time_ns
from typing import Any, Literal

from msgspec import DecodeError, Struct, field
from msgspec.json import decode, encode

from polymnia.clients.configuration import read_servers
from polymnia.clients.table import CLIENTS, SCOPES, is_polymnia
from polymnia.disk.files import make_parent, replace_file
from polymnia.disk.lock import file_lock
from polymnia.engine.history.undo import changes_since, undo
from polymnia.engine.memory import Memory
from polymnia.engine.transfer.intake import Item
from polymnia.engine.workspaces import (
    PERSONAL,
    Workspaces,
    create_missing,
    find_project,
    open_workspaces,
    workspace_to_write,
)
from polymnia.errors import BadInput, PolymniaError, StoreBusy, WorkspaceNotFound
from polymnia.importers import claude_code, codex, copilot, gemini
from polymnia.importers.base import Report
from polymnia.importers.registry import find_importer, import_items, open_source
from polymnia.importers.sessions import Format, read_sessions
from polymnia.importers.source import Source
from polymnia.model import Entity
from polymnia.settings import ClientRoots, Settings, takeover_file
from polymnia.stores import hide_passwords, open_store
from polymnia.stores.open import store_exists

SESSION_FORMATS: Mapping[str, Format] = {
    module.FORMAT.kind: module.FORMAT for module in (claude_code, codex, copilot, gemini)
}
# Files of other memory servers that a client's configuration may name.
_MEMORY_KINDS = ("memory-json", "memory-service", "memory-service-db", "mempalace", "basic-memory")


class PastSource(Struct, frozen=True):
    """A file or a folder to import: what it is, its files, and their size in bytes.

    `place` says whose memory it belongs to. Each session belongs to the project of its directory.
    """

    title: str
    kind: str
    path: Path
    files: tuple[Path, ...]
    size: int
    place: Literal["sessions", "personal", "project"]


def find_past_sources(roots: ClientRoots, project: Path) -> list[PastSource]:
    """Return the transcripts, instructions and memories of other programs, without reading them."""
    sources = list(find_past_sessions(roots))
    for path in (
        roots.claude / ".claude" / "CLAUDE.md",
        roots.codex / "AGENTS.md",
        roots.home / ".gemini" / "GEMINI.md",
    ):
        sources += _source("your instructions", "instructions", path, [path], "personal")
    for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
        path = project / name
        sources += _source("the project's instructions", "instructions", path, [path], "project")
    sources += _find_memories(roots, project)
    return sources


def find_past_sessions(roots: ClientRoots) -> Iterator[PastSource]:
    """Yield the folders that have transcripts, without reading them."""
    folders = (
        ("Claude Code", claude_code, roots.claude / "projects"),  # with CLAUDE_CONFIG_DIR
        ("Claude Code", claude_code, roots.claude / ".claude" / "projects"),
        ("Codex", codex, roots.codex / "sessions"),
        ("GitHub Copilot CLI", copilot, roots.copilot / "session-state"),
        ("Gemini CLI", gemini, roots.home / ".gemini" / "tmp"),
    )
    for program, module, folder in folders:
        files = sorted(folder.rglob("*.jsonl"))
        title = f"{program} sessions"
        yield from _source(title, module.FORMAT.kind, folder, files, "sessions")


def _find_memories(roots: ClientRoots, project: Path) -> Iterator[PastSource]:
    """Yield files that an entry of another memory server names in its arguments or environment."""
    paths: dict[Path, str] = {}
    for client in CLIENTS.values():
        for scope in SCOPES:
            file = client.path(scope, roots, project)
            try:
                servers = read_servers(client, file) if file is not None else {}
            except PolymniaError:  # a configuration that its own program cannot read either
                continue
            for name, entry in servers.items():
                if not is_polymnia(entry):
                    paths |= dict.fromkeys(_paths_in(entry), name)
    for path, name in paths.items():
        if path.is_dir() and not (path / ".basic-memory").exists():
            continue  # a folder of the user's files, which may be large
        try:
            kind = find_importer(Source(str(path))).kind
        except (PolymniaError, OSError):
            continue
        if kind in _MEMORY_KINDS:
            files = [path] if path.is_file() else sorted(path.rglob("*.md"))
            yield from _source(f"the memory of the server {name}", kind, path, files, "personal")


def _paths_in(entry: Any) -> list[Path]:
    """Return the absolute paths in the arguments and the environment of a server."""
    values: list[Any] = []
    for member in ("args", "command", "env", "environment"):
        value = entry.get(member) if isinstance(entry, dict) else None
        if isinstance(value, dict):
            value = list(value.values())
        values += value if isinstance(value, list) else []
    paths = []
    for value in values:
        if isinstance(value, str) and value.startswith(("/", "~")) and "\0" not in value:
            paths.append(Path(value).expanduser())
    return [path for path in paths if path.exists()]


def _source(
    title: str,
    kind: str,
    path: Path,
    files: list[Path],
    place: Literal["sessions", "personal", "project"],
) -> Iterator[PastSource]:
    """Yield the source with the files that exist; nothing if none does."""
    existing, size = [], 0
    for file in files:
        try:
            size += file.stat().st_size
        except OSError:  # missing, or removed meanwhile
            continue
        existing.append(file)
    if size:
        yield PastSource(title, kind, path, tuple(existing), size, place)


ACTOR = "polymnia install"
# Rows that wait for their workspace's batch to fill up, over all workspaces.
MAX_WAITING_ROWS = 20_000

Progress = Callable[[int, int], None]


class _Record(Struct):
    """What was taken into one store: since when, into which workspaces, and the files' sizes."""

    at: int = 0
    workspaces: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)


class TakeoverReceipt(Struct):
    """What was taken, or would be: new entities and facts by workspace, and files left alone."""

    entities: int = 0
    facts: int = 0
    by_workspace: dict[str, int] = field(default_factory=dict)
    known_files: int = 0
    failures: list[str] = field(default_factory=list)
    secrets: int = 0


class UndoneTakeover(Struct, frozen=True):
    """What was removed again, by workspace, and how many rows others changed meanwhile."""

    facts: dict[str, int]
    conflicts: int


def take_over(
    settings: Settings,
    sources: Sequence[PastSource],
    project: Path,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> TakeoverReceipt:
    """Import the sources, except files that were taken before and have not grown since.

    Raise StoreBusy if another takeover runs, StoreError.
    """
    total = sum(len(source.files) for source in sources)
    with _only_one(), ExitStack() as resources:
        workspaces = None
        if not dry_run or store_exists(settings.store):  # a dry run must not create the store
            workspaces = resources.enter_context(
                closing(open_workspaces(settings.store, settings.workspace, read_only=dry_run))
            )
        run = _Run(settings, workspaces, project, dry_run=dry_run)
        done = 0
        for source in sources:
            for _ in run.add(source):
                done += 1
                if progress is not None:
                    progress(done, total)
        run.flush()
    return run.receipt


def undo_takeover(settings: Settings, *, by: str) -> UndoneTakeover:
    """Undo everything that was taken into the store. What others changed meanwhile stays.

    Raise BadInput if nothing was taken, NotSupported in a store without history, StoreError.
    """
    facts, conflicts = {}, 0
    with _only_one():
        records = _load()
        record = records.pop(_key(settings), None)
        if record is None:
            raise BadInput("`polymnia install --import` has imported nothing into this store")
        with closing(open_workspaces(settings.store, settings.workspace)) as workspaces:
            for name in record.workspaces:
                memory = workspaces.memory(name)
                changes = changes_since(memory, record.at, actors=(ACTOR,))
                receipt = undo(memory, changes, by=by, skip_conflicts=True)
                facts[name] = receipt.before.fact_count
                conflicts += len(receipt.conflicts)
        _save(records)
    return UndoneTakeover(facts, conflicts)


class _Run:
    """One takeover: its receipt, and the items that wait for their workspace's batch."""

    def __init__(
        self, settings: Settings, workspaces: Workspaces | None, project: Path, *, dry_run: bool
    ) -> None:
        # The clock of a database may be behind ours.
        clock_margin = 60_000_000
        self.receipt = TakeoverReceipt()
        self._settings = settings
        self._workspaces = workspaces
        self._project = project
        self._dry_run = dry_run
        # Users do not look through two years of turns for warnings.
        self._report = Report("off" if settings.secrets == "off" else "refuse")
        self._records = _load()
        now = time_ns() // 1000
        self._record = self._records.setdefault(_key(settings), _Record(now - clock_margin))
        self._memories: dict[str, Memory] = {}
        self._waiting: dict[str, list[tuple[Item, Path]]] = {}
        self._rows = 0

    def add(self, source: PastSource) -> Iterator[Path]:
        """Take a source, and yield each of its files when it was read."""
        new = [
            file
            for file in source.files
            if self._record.sizes.get(str(file)) != file.stat().st_size
        ]
        self.receipt.known_files += len(source.files) - len(new)
        yield from (file for file in source.files if file not in new)
        if not new:
            return
        try:
            if source.place == "sessions":
                yield from self._add_sessions(source, new)
            else:
                _, items = open_source(Source(str(source.path)), source.kind, self._report)
                directory = str(self._project) if source.place == "project" else ""
                name = self._workspace_of(directory)
                for item in items:
                    self._wait(name, item, source.path)
                yield from new
        except BadInput as exc:  # another source may be sound
            self.receipt.failures.append(f"{source.path}: {exc}")

    def flush(self) -> None:
        """Store all items that wait, and note the files they come from."""
        for name, waiting in self._waiting.items():
            self._store(name, waiting)
        self._waiting, self._rows = {}, 0

    def _add_sessions(self, source: PastSource, new: Sequence[Path]) -> Iterator[Path]:
        opened = Source(str(source.path))
        by_name = {str(file.relative_to(source.path)): file for file in source.files}
        skip = by_name.keys() - {str(file.relative_to(source.path)) for file in new}
        form = SESSION_FORMATS[source.kind]
        for name, session in read_sessions(form, opened, self._report, skip):
            entity = session.take_entity(self._report)
            file = by_name.get(name)
            if file is None:  # written since the files were counted
                continue
            if entity is not None:
                self._wait(self._workspace_of(session.directory), entity, file)
            yield file

    def _workspace_of(self, directory: str) -> str:
        """Return the workspace of the directory's project, or the personal one."""
        named = self._settings.workspace
        path = Path(directory) if directory and Path(directory).is_dir() else None
        if self._workspaces is not None:
            return workspace_to_write(self._workspaces, named, path, creates=not self._dry_run)
        # The store of a dry run does not exist yet.
        root = None if path is None else find_project(path)
        return named or (PERSONAL if root is None else root.name)

    def _wait(self, name: str, item: Item, file: Path) -> None:
        waiting = self._waiting.setdefault(name, [])
        waiting.append((item, file))
        self._rows += 1
        if isinstance(item, Entity):
            self._rows += len(item.facts)
        if self._rows >= MAX_WAITING_ROWS:
            self.flush()

    def _store(self, name: str, waiting: Sequence[tuple[Item, Path]]) -> None:
        """Store items of one workspace. The file that notes it is written before and after."""
        if not self._dry_run and name not in self._record.workspaces:
            self._record.workspaces.append(name)
            _save(self._records)  # or a crash would leave an import that cannot be undone
        items = [item for item, _ in waiting]
        if name not in self._memories:
            memory = None
            if self._workspaces is not None:
                if not self._dry_run and self._workspaces.sole is None:
                    create_missing(self._workspaces, name)
                with suppress(WorkspaceNotFound):
                    memory = self._workspaces.memory(name)
            self._memories[name] = memory or Memory(open_store("memory:"))
        receipt = import_items(
            self._memories[name], items, self._report, by=ACTOR, dry_run=self._dry_run
        )
        self.receipt.entities += receipt.entities.new
        self.receipt.facts += receipt.facts
        known = self.receipt.by_workspace.get(name, 0)
        self.receipt.by_workspace[name] = known + receipt.facts
        self.receipt.secrets = len(self._report.secret_places)
        if self._dry_run:
            return
        for _, file in waiting:
            self._record.sizes[str(file)] = file.stat().st_size
        _save(self._records)


@contextmanager
def _only_one() -> Iterator[None]:
    """Hold the lock of takeovers during the block. Raise StoreBusy."""
    path = takeover_file()
    make_parent(path)
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path, timeout=0))
        except StoreBusy as exc:
            raise StoreBusy("another import by `polymnia install` is running; wait for it") from exc
        yield


def _key(settings: Settings) -> str:
    return hide_passwords(settings.store)


def _load() -> dict[str, _Record]:
    """Return what was taken into each store. A damaged file counts as empty."""
    try:
        return decode(takeover_file().read_bytes(), type=dict[str, _Record])
    except (FileNotFoundError, DecodeError, UnicodeDecodeError):
        return {}


def _save(records: dict[str, _Record]) -> None:
    replace_file(takeover_file(), [encode(records)])
