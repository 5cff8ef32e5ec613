"""What the web interface keeps beside the memory: the findings that were dismissed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from msgspec import Raw, Struct, field, json

from polymnia.disk.files import decode_file, make_parent, map_os_errors, write_file
from polymnia.disk.lock import file_lock
from polymnia.stores.contract import WebStateStore

MAX_DISMISSED = 5_000
# The file's version.
_VERSION = 1


class WorkspaceState(Struct):
    """The state of one workspace. A dismissed finding is identified by its kind and names."""

    dismissed: list[list[str]] = field(default_factory=list)
    # Saved questions of an earlier version, kept as they are.
    questions: list[Raw] = field(default_factory=list)


class _StateFile(Struct, kw_only=True):
    version: int
    workspaces: dict[str, WorkspaceState]


class SiteState:
    """The state of all workspaces, in a file or, without a path, in memory. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        # True if the next server finds what this one keeps.
        self.is_kept = path is not None
        self._lock = Lock()
        self._in_memory: dict[str, WorkspaceState] = {}

    def read(self, workspace: str) -> WorkspaceState:
        """Return the state of a workspace. Raise StoreError, StoreDamaged."""
        with self._lock:
            return self._load().get(workspace, WorkspaceState())

    @contextmanager
    def edit(self, workspace: str) -> Iterator[WorkspaceState]:
        """Yield the state of a workspace to change it, and write it when the block succeeds."""
        with self._lock:
            if self.path is None:
                yield self._in_memory.setdefault(workspace, WorkspaceState())
                return
            make_parent(self.path)
            with file_lock(self.path):
                states = self._load()
                state = states.setdefault(workspace, WorkspaceState())
                yield state
                _drop_oldest(state)
                write_file(self.path, _StateFile(version=_VERSION, workspaces=states))

    def _load(self) -> dict[str, WorkspaceState]:
        if self.path is None:
            return self._in_memory
        with map_os_errors(str(self.path)):
            if not self.path.exists():
                return {}
            data = self.path.read_bytes()
        contents = decode_file(
            self.path,
            data,
            _StateFile,
            newest=_VERSION,
            damage="does not hold dismissed findings",
            advice="repair it, or delete it to start with none",
        )
        return contents.workspaces


class SharedState:
    """The state of all workspaces in a database, for all of its servers. Thread-safe."""

    is_kept = True

    def __init__(self, store: WebStateStore) -> None:
        self._store = store

    def read(self, workspace: str) -> WorkspaceState:
        """Return the state of a workspace. Raise StoreError."""
        return _decode(self._store.read(workspace))

    @contextmanager
    def edit(self, workspace: str) -> Iterator[WorkspaceState]:
        """Yield the state of a workspace to change it, and store it when the block succeeds."""
        with self._store.edit(workspace) as document:
            state = _decode(document.text)
            yield state
            _drop_oldest(state)
            document.text = json.encode(state).decode()


def _decode(text: str) -> WorkspaceState:
    return json.decode(text, type=WorkspaceState) if text else WorkspaceState()


def _drop_oldest(state: WorkspaceState) -> None:
    del state.dismissed[:-MAX_DISMISSED]
