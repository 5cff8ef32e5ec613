"""The state of the web interface beside the memory: saved questions and dismissed findings, in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from msgspec import DecodeError, Struct, ValidationError, field, json

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.disk.replace import make_parent, replace_file
from polymnia.errors import StoreDamaged, StoreTooNew

MAX_QUESTIONS = 50
MAX_DISMISSED = 5_000
# The file's version.
_VERSION = 1


class SavedQuestion(Struct, omit_defaults=True):
    """A question, its filters, and the entity that it should find.

    `place` is the place of that entity at the last run and `before` at the run before that; 0 means that it was not
    found. `at` is the time of the last run.
    """

    question: str
    expected: str
    type: str = ""
    since: str = ""
    place: int = 0
    before: int = 0
    at: int = 0


class WorkspaceState(Struct):
    """The state of one workspace. A dismissed finding is identified by its kind and names."""

    questions: list[SavedQuestion] = field(default_factory=list)
    dismissed: list[list[str]] = field(default_factory=list)


class _Contents(Struct, kw_only=True):
    version: int
    workspaces: dict[str, WorkspaceState]


class SiteState:
    """The state of all workspaces, in a file. Without a path it is in memory and ends with the server. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = Lock()
        self._in_memory: dict[str, WorkspaceState] = {}

    def read(self, workspace: str) -> WorkspaceState:
        """Return the state of a workspace. Raise StoreError, StoreDamaged."""
        with self._lock:
            return self._load().get(workspace, WorkspaceState())

    @contextmanager
    def edit(self, workspace: str) -> Iterator[WorkspaceState]:
        """Yield the state of a workspace, to be changed in place, and write it when the block succeeds."""
        with self._lock:
            if self.path is None:
                yield self._in_memory.setdefault(workspace, WorkspaceState())
                return
            make_parent(self.path)
            with file_lock(self.path):
                found = self._load()
                parts = found.setdefault(workspace, WorkspaceState())
                yield parts
                del parts.questions[:-MAX_QUESTIONS], parts.dismissed[:-MAX_DISMISSED]
                with map_os_errors(str(self.path)):
                    replace_file(self.path, [json.format(_encode(found), indent=2), b"\n"])

    def _load(self) -> dict[str, WorkspaceState]:
        if self.path is None:
            return self._in_memory
        try:
            with map_os_errors(str(self.path)):
                if not self.path.exists():
                    return {}
                data = self.path.read_bytes()
            contents = json.decode(data, type=_Contents)
        except (DecodeError, ValidationError, UnicodeDecodeError) as exc:
            raise StoreDamaged(
                f"{self.path} does not hold saved questions ({exc}); repair it, or delete it to start with none"
            ) from exc
        if contents.version > _VERSION:
            message = f"{self.path} has version {contents.version}, but this program supports versions up to {_VERSION}"
            raise StoreTooNew(f"{message}; upgrade polymnia")
        return contents.workspaces


def _encode(found: dict[str, WorkspaceState]) -> bytes:
    return json.encode(_Contents(version=_VERSION, workspaces=found))
