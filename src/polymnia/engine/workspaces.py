"""The memories a server has, by workspace, and which workspace a directory belongs to.

They are one store, or the workspaces of a catalogue: one for each project, and one for everything
personal.
"""

import logging
import re
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Event, Lock, RLock, Thread
from typing import TYPE_CHECKING, NoReturn

from polymnia.engine.facts.secrets import SecretRule, refuse_secrets
from polymnia.engine.history.trash import Retention
from polymnia.engine.memory import Memory
from polymnia.errors import (
    BadInput,
    FormerWorkspace,
    OverLimit,
    StoreError,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.model import Change, ChangeQuery, Status, Workspace, own_workspace
from polymnia.model.changes import DEFAULT_QUOTA, Quota
from polymnia.stores import open_catalogue, open_store
from polymnia.stores.contract import Catalogue, ChangeFeed, Store

if TYPE_CHECKING:
    from polymnia.engine.semantic.meaning import Meaning

logger = logging.getLogger(__name__)

# The name of a store's only workspace, unless another one is given.
DEFAULT = "default"
PERSONAL = "personal"
POLL_INTERVAL_S = 0.2

# The names of the workspaces that the current call has used, for the access log. None without one.
USED_WORKSPACES: ContextVar[dict[str, None] | None] = ContextVar("used_workspaces", default=None)

WorkspaceListener = Callable[[str, Change], None]
OpenListener = Callable[[Memory], None]


def open_workspaces(
    url: str,
    only: str = "",
    *,
    trash_days: int = 0,
    read_only: bool = False,
    meaning: "Meaning | None" = None,
    secrets: SecretRule = "warn",
    quota: Quota = DEFAULT_QUOTA,
) -> "Workspaces":
    """Open the workspaces behind a store's URL: those of a catalogue, or the one of a single store.

    `only` names the workspace of a store that has one. Raise SettingsError, StoreError.
    """
    catalogue = open_catalogue(url, read_only=read_only)
    if catalogue is not None:
        return Workspaces(
            catalogue, trash_days=trash_days, meaning=meaning, secrets=secrets, quota=quota
        )
    memory = Memory(open_store(url, read_only=read_only), meaning, secrets=secrets, quota=quota)
    return one_workspace(memory, only or DEFAULT, trash_days=trash_days)


def one_workspace(memory: Memory, name: str = DEFAULT, *, trash_days: int = 0) -> "Workspaces":
    """Return the only workspace of a store that holds one."""
    workspaces = Workspaces(
        OneStore(memory.store, name),
        trash_days=trash_days,
        meaning=memory.meaning,
        quota=memory.quota,
    )
    workspaces._use(name, memory)
    return workspaces


def first_workspace(
    workspaces: "Workspaces", named: str, *, may_choose: bool, read_only: bool = False
) -> str | None:
    """Return the workspace of clients that name none: the given one, the only one, or `default`.

    Return None if there are many and the client may choose. Only `default` is created when it is
    missing, because a typed name may be a mistake, and not by a read-only server. Raise
    WorkspaceNotFound.
    """
    if named:
        return workspaces.find(named).name
    if workspaces.sole is not None or may_choose:
        return workspaces.sole
    if not read_only:
        create_missing(workspaces, DEFAULT)
    return workspaces.find(DEFAULT).name


class Workspaces:
    """The workspaces of a server, and the memory of each. Safe for several threads.

    The least recently used stores are closed when their last call ends.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        max_open: int | None = None,
        trash_days: int = 0,
        meaning: "Meaning | None" = None,
        secrets: SecretRule = "warn",
        quota: Quota = DEFAULT_QUOTA,
    ) -> None:
        # The name of the only workspace there can be; None if there can be many.
        self.sole: str | None = catalogue.name if isinstance(catalogue, OneStore) else None
        self._catalogue = catalogue
        self._secrets: SecretRule = secrets
        self.quota = quota
        self._max_open = max_open or catalogue.max_open
        self._retention = Retention(trash_days)
        self._meaning = meaning
        self._open: OrderedDict[str, Memory] = OrderedDict()  # by name
        self._open_listeners: list[OpenListener] = []
        self._listeners: list[WorkspaceListener] = []
        self._followers: dict[WorkspaceListener, Follower] = {}
        self._followed: dict[str, None] = {}  # names of workspaces whose changes are wanted
        self._lock = RLock()
        self.find = catalogue.find
        self.find_all = catalogue.find_all

    def find_entered(
        self, names: Collection[str] | None, *, limit: int | None = None
    ) -> list[Workspace]:
        """Return the active workspaces of these names that exist, or the first of all, by name."""
        if names is None:
            return self.find_all("active", limit=limit)
        found = []
        for name in sorted(names):
            with suppress(WorkspaceNotFound):
                workspace = self.find(name)
                if workspace.status == "active":
                    found.append(workspace)
        return found[:limit]

    def memory(self, name: str) -> Memory:
        """Return the memory of the workspace.

        Raise WorkspaceNotFound, WorkspaceArchived, StoreError. Another workspace may get the name
        later. Compare `find(name).id` to notice that.
        """
        memory = self._open.get(name)
        unused: list[Memory] = []  # released after the lock: closing may wait for the disk
        if memory is not None and self._catalogue.find_open({name: memory.store}):
            with self._lock:
                if name in self._open:
                    self._open.move_to_end(name)
        else:
            with self._lock:
                memory = self._current([name]).get(name) or self._open_memory(name, unused)
        _note_use(name)
        return memory

    def memories(self, names: Collection[str]) -> dict[str, Memory]:
        """Return the memories of those of the workspaces that exist, by name.

        They are checked together. Raise WorkspaceArchived, StoreError.
        """
        current = self._current(names)
        memories = {}
        for name in names:
            with suppress(WorkspaceNotFound):
                memories[name] = current.get(name) or self.memory(name)
                _note_use(name)
        return memories

    def on_open(self, listener: OpenListener) -> None:
        """Call the listener with every memory in use, and with others before their first use."""
        with self._lock:
            self._open_listeners.append(listener)
            memories = list(self._open.values())
        for memory in memories:
            listener(memory)

    def on_change(self, listener: WorkspaceListener) -> None:
        """Call the listener after every durable change made through these memories."""
        with self._lock:
            self._listeners.append(listener)

    def follow(
        self,
        listener: WorkspaceListener,
        is_wanted: Callable[[], bool],
        workspace: str | None = None,
    ) -> None:
        """Call the listener, from a thread, after changes of other servers, while they are wanted.

        Follow the workspaces in use, and the named one even if it is not in use here.
        """
        if self.sole is not None and not self.memory(self.sole).store.capabilities.change_feed:
            return
        with self._lock:
            if workspace is not None:
                self._followed[workspace] = None
            if len(self._followed) > self._max_open:
                self._followed.pop(next(iter(self._followed)))
            if listener not in self._followers:
                self._followers[listener] = Follower(self._open_stores, listener, is_wanted)
            follower = self._followers[listener]
        follower.start()

    def warm_up(self) -> None:
        """Start to load the embedding model, if there is one."""
        if self._meaning is not None:
            self._meaning.warm_up()

    def count_waiting(self) -> int:
        """Return how many memories have new passages that wait to be embedded."""
        return 0 if self._meaning is None else self._meaning.count_waiting()

    def apply_retention(self) -> None:
        """Purge what was deleted too long ago. Each memory is checked once a day."""
        with self._lock:
            names = list(self._open)
        for memory in self._current(names).values():
            self._retention.apply(memory)

    def create(self, name: str, description: str = "") -> Workspace:
        """Create a workspace. Raise BadInput if the name is invalid or taken, or OverLimit."""
        self._require_no_secret(name, description)
        most = self.quota.workspaces
        if most and len(self.find_all()) >= most:
            logger.warning("there are %s workspaces, as many as may be", most)
            raise OverLimit(
                f"there are {most:,} workspaces already, as many as this server may have; "
                "delete one first"
            )
        return self._catalogue.create(name, description)

    def archive(self, name: str) -> Workspace:
        """Archive a workspace: it keeps everything and cannot be used.

        Raise WorkspaceNotFound, WorkspaceArchived.
        """
        return self._retire(lambda old: self._catalogue.update(old, status="archived"), name)

    def restore(self, name: str) -> Workspace:
        """Make an archived workspace usable again.

        Raise WorkspaceNotFound, BadInput if it is not archived.
        """
        return self._catalogue.update(name, status="active")

    def describe(self, name: str, description: str) -> Workspace:
        """Change the description of a workspace. Raise WorkspaceNotFound."""
        self._require_no_secret(description)
        return self._catalogue.update(name, description=description)

    def delete(self, name: str) -> Workspace:
        """Delete a workspace and everything in it; return what it was. Raise WorkspaceNotFound."""
        return self._retire(self._catalogue.delete, name)

    def rename(self, name: str, new: str) -> Workspace:
        """Rename a workspace. Raise WorkspaceNotFound, BadInput if the name is invalid or taken."""
        self._require_no_secret(new)
        return self._retire(lambda old: self._catalogue.update(old, new_name=new), name)

    def close(self) -> None:
        """Release files and locks."""
        for follower in list(self._followers.values()):
            follower.stop()
        if self._meaning is not None:
            self._meaning.close()
        with self._lock:
            memories = list(self._open.values())
            self._open.clear()
        for memory in memories:
            memory.store.close()
        self._catalogue.close()

    def _require_no_secret(self, *texts: str) -> None:
        if self._secrets == "refuse":
            refuse_secrets(texts)

    def _current(self, names: Collection[str]) -> dict[str, Memory]:
        """Return the memories of workspaces that are open and still the right ones, by name."""
        known = {}
        for name in names:
            memory = self._open.get(name)
            if memory is not None:
                known[name] = memory
        if not known:
            return {}
        stores = {name: memory.store for name, memory in known.items()}
        current = self._catalogue.find_open(stores)
        with self._lock:
            for name in current & self._open.keys():
                self._open.move_to_end(name)
        return {name: memory for name, memory in known.items() if name in current}

    def _open_memory(self, name: str, unused: list[Memory]) -> Memory:
        store = self._catalogue.open(name)
        memory = Memory(store, self._meaning, secrets=self._secrets, quota=self.quota)
        # Calls hold a reference to the memory while they run: its store is closed with the last
        # reference.
        weakref.finalize(memory, store.close)
        self._use(name, memory)
        while len(self._open) > self._max_open:
            unused.append(self._open.popitem(last=False)[1])
        return memory

    def _use(self, name: str, memory: Memory) -> None:
        """Announce a memory and its changes, and keep it open."""

        def announce(change: Change) -> None:
            for listener in self._listeners:
                listener(name, change)

        memory.on_change(announce)
        for listener in self._open_listeners:
            listener(memory)
        self._open[name] = memory
        self._open.move_to_end(name)

    def _open_stores(self) -> dict[str, Store]:
        """Return the stores in use, and those of the workspaces that are followed."""
        with self._lock:
            followed = list(self._followed)
            for name in self._open.keys() & followed:
                self._open.move_to_end(name)
            known: dict[str, Store] = {name: memory.store for name, memory in self._open.items()}
        current = self._catalogue.find_open(known)
        for name in followed:
            if name in current:
                continue
            try:
                self.memory(name)
            except (WorkspaceNotFound, WorkspaceArchived):
                self._followed.pop(name, None)  # perhaps for ever
            except StoreError as exc:
                logger.info("the changes of %s cannot be followed at the moment: %s", name, exc)
            else:
                current.add(name)
        with self._lock:
            return {name: memory.store for name, memory in self._open.items() if name in current}

    def _retire(self, change: Callable[[str], Workspace], name: str) -> Workspace:
        """Change a workspace in a way that makes its open store unusable."""
        changed = change(name)
        with self._lock:
            self._open.pop(name, None)
        return changed


class OneStore:
    """The catalogue of a store that holds one workspace, under the name it was given."""

    max_open = 1

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self._store = store

    def find(self, name: str) -> Workspace:
        if name != self.name:
            raise WorkspaceNotFound(name, f"the only one here is {self.name}")
        # A store does not know when its one workspace was created; the id is the same everywhere.
        return Workspace(id="00000000-0000-4000-8000-000000000000", name=name)

    def find_all(
        self, status: Status | None = None, *, limit: int | None = None
    ) -> list[Workspace]:
        return [] if status == "archived" else [self.find(self.name)]

    def open(self, name: str, *, archived: bool = False) -> Store:
        self.find(name)
        return self._store

    def find_open(self, stores: Mapping[str, Store]) -> set[str]:
        return {self.name} & stores.keys()

    def close(self) -> None:
        self._store.close()

    def refuse(self, *given: object, **fields: object) -> NoReturn:
        """Raise BadInput: the store has no list of workspaces that could change."""
        raise BadInput(
            f"this store holds a single workspace, {self.name}",
            hint=f"{self._store.url} is one file; "
            "for several use a data directory (--store DIRECTORY/)",
        )

    create = update = delete = adopt = refuse


def _note_use(name: str) -> None:
    used = USED_WORKSPACES.get()
    if used is not None:
        used[name] = None


class Follower:
    """Call a listener, from a thread, with each change and its workspace while it is wanted."""

    def __init__(
        self,
        stores: Callable[[], Mapping[str, Store]],
        listener: Callable[[str, Change], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        """`stores` returns the open stores by workspace."""
        self._stores = stores
        self._listener = listener
        self._is_wanted = is_wanted
        self._feeds: weakref.WeakKeyDictionary[Store, ChangeFeed] = weakref.WeakKeyDictionary()
        self._lock = Lock()
        self._is_running = False
        self._is_stopped = False
        self._pause = Event()

    def start(self) -> None:
        """Follow from now on, also stores opened since the thread began."""
        with self._lock:
            if not self._is_running:
                self._feeds.clear()
            self._open_feeds()
            if self._is_running:
                return
            self._is_running = True
        Thread(target=self._run, name="polymnia-follower", daemon=True).start()

    def stop(self) -> None:
        """End the thread, even if changes are still wanted: the stores are being closed."""
        self._is_stopped = True
        self._pause.set()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._is_running = not self._is_stopped and self._is_wanted()
                if not self._is_running:
                    return
            stores: dict[str, Store] = {}
            try:
                with self._lock:
                    stores = self._open_feeds()
            except StoreError as exc:  # none while the database cannot be reached
                logger.info("changes of other servers cannot be followed at the moment: %s", exc)
            for workspace, store in stores.items():
                try:
                    for change in self._feeds[store]():
                        self._listener(workspace, change)
                except StoreError as exc:
                    logger.info("changes of other servers cannot be read at the moment: %s", exc)
            self._pause.wait(POLL_INTERVAL_S)
            self._pause.clear()

    def _open_feeds(self) -> dict[str, Store]:
        """Return the stores that have a feed, with a new feed for those opened since."""
        stores = {
            name: store for name, store in self._stores().items() if store.capabilities.change_feed
        }
        for store in stores.values():
            if store not in self._feeds:
                self._feeds[store] = store.follow(self._pause.set)
        return stores


def find_project(directory: Path) -> Path | None:
    """Return the root of the git work tree that contains the directory; None if there is none.

    A work tree at the user's home directory is not a project: it holds the user's settings.
    """
    try:
        resolved, home = directory.resolve(), Path.home().resolve()
    except (OSError, RuntimeError):
        return None
    for parent in (resolved, *resolved.parents):
        if (parent / ".git").exists():
            return None if parent == home else parent
    return None


def project_workspace(workspaces: Workspaces, root: Path) -> str:
    """Return the name of the project's workspace, which may not exist yet.

    It is the directory's name or, if the workspace of another directory has that name, the name
    with a part of a hash of the path.
    """
    # Short enough to be typed, and to be followed by a part of a hash.
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", root.name).strip("-")[:48] or "work"
    taken = _find_workspace(workspaces, name)
    if name != PERSONAL and (taken is None or taken.description == str(root)):
        return name
    from hashlib import sha256  # loads OpenSSL, and few names are taken

    return f"{name}-{sha256(str(root).encode(errors='replace')).hexdigest()[:6]}"


def default_workspace(workspaces: Workspaces, directory: Path | None) -> str:
    """Return the workspace for work in the directory: that of its project, or the personal one."""
    root = None if directory is None else find_project(directory)
    return PERSONAL if root is None else project_workspace(workspaces, root)


def workspace_to_write(
    workspaces: Workspaces, named: str, directory: Path | None, *, creates: bool = True
) -> str:
    """Return the workspace for writes in a directory: the named or only one, else the default.

    With `creates`, a default one is created if it is missing.
    """
    if named or workspaces.sole is not None:
        return named or workspaces.sole or ""
    root = None if directory is None else find_project(directory)
    name = PERSONAL if root is None else project_workspace(workspaces, root)
    if creates:
        create_missing(workspaces, name, str(root or ""))
    return name


def session_workspaces(workspaces: Workspaces, named: str, directory: Path) -> list[str]:
    """Return the names of a session's workspaces. They may not exist."""
    if workspaces.sole is not None:
        return [workspaces.sole]
    return list(dict.fromkeys([named or default_workspace(workspaces, directory), PERSONAL]))


def new_rights(
    workspaces: Workspaces, name: str, named: Sequence[str], *, keeps: bool
) -> tuple[str, ...] | None:
    """Return the workspaces of a new token or person: those named, and one of their own.

    The own one is created. Unless `keeps`, raise FormerWorkspace if it has a memory: that of
    another one, who had the name before. Who gets `personal` shares that instead. Return None,
    which means all, for a store with one workspace unless that is named.
    """
    if workspaces.sole is not None:
        return tuple(named) or None
    if PERSONAL in named:
        return tuple(named)
    own = own_workspace(name)
    former = _find_workspace(workspaces, own)
    if former is not None and not keeps and own not in named:
        if former.status == "archived":
            raise FormerWorkspace(name, own)
        with workspaces.memory(own).reading() as read:
            if read.history.change_heads(ChangeQuery(limit=1)):
                raise FormerWorkspace(name, own)
    create_missing(workspaces, own, f"what concerns {name}")
    return (*named, own)


def existing_default(workspaces: Workspaces, directory: Path) -> str | None:
    """Return the project's workspace, else the personal one; None if neither exists."""
    names = (default_workspace(workspaces, directory), PERSONAL)
    return next((name for name in names if _find_workspace(workspaces, name) is not None), None)


def create_missing(workspaces: Workspaces, name: str, description: str = "") -> None:
    """Create the workspace if it does not exist.

    Another process may do the same at the same time.
    """
    if _find_workspace(workspaces, name) is not None:
        return
    try:
        workspaces.create(name, description)
    except BadInput:
        if _find_workspace(workspaces, name) is None:
            raise


def _find_workspace(workspaces: Workspaces, name: str) -> Workspace | None:
    try:
        return workspaces.find(name)
    except WorkspaceNotFound:
        return None
