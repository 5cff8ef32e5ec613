"""Import uploaded files: check them first, then import them, each on a worker thread that reports its progress."""

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from itertools import takewhile
from threading import Lock
from typing import Literal

from msgspec import Struct

from polymnia.engine.intake import IntakeReceipt, Item
from polymnia.engine.memory import Memory
from polymnia.engine.secrets import SecretRule
from polymnia.errors import BadInput, PolymniaError
from polymnia.importers.base import Importer, Places, Report
from polymnia.importers.run import NotesLeftOut, open_source, run_import
from polymnia.importers.source import Source
from polymnia.model import Principal
from polymnia.web.uploads import Upload

logger = logging.getLogger(__name__)

MAX_IMPORTS = 8
# How long a request waits for a run to end before it shows progress.
_RUN_WAIT_S = 0.4

_UNEXPECTED = "an unexpected error; the server's log says which"

Step = Literal["new", "checking", "checked", "importing", "imported", "failed"]


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run did, or would do."""

    importer: Importer
    receipt: IntakeReceipt
    skipped: list[Places]
    flagged: list[Places]
    left_fields: list[Places]


class Import:
    """One upload, what the user decided about it, and its last run. The page reads it while a run changes it."""

    def __init__(
        self, upload: Upload, owner: Principal, workspace: str, is_stopping: Callable[[], bool]
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self.title = upload.title
        self.size = upload.bytes
        self.upload = upload
        self.owner = owner
        self.workspace = workspace
        self.kind: str | None = None
        self.replace_conflicts = False
        # The number of items that the current run has read.
        self.done = 0
        self.outcome: Outcome | None = None
        self.error = ""
        self.is_undone = False
        self.is_cancelled = False
        self._is_stopping = is_stopping
        self._is_dry = True
        self._run: Future[None] | None = None

    @property
    def step(self) -> Step:
        """Where the import stands."""
        if self._run is None:
            return "new"
        if not self._run.done():
            return "checking" if self._is_dry else "importing"
        if self.outcome is None:
            return "failed"
        return "checked" if self._is_dry else "imported"

    def start(
        self, pool: Executor, memory: Memory, *, by: str, secrets: SecretRule, dry_run: bool
    ) -> None:
        """Start a run, and wait a moment for it. Raise BadInput while another run is active, or after an import."""
        if self.step in ("checking", "importing", "imported"):
            raise BadInput(f"{self.title} is being imported, or was imported already")
        self.done, self.error, self.outcome = 0, _UNEXPECTED, None
        self._is_dry, self.is_cancelled = dry_run, False
        self._run = pool.submit(self._import, memory, by, secrets)
        try:
            exc = self._run.exception(_RUN_WAIT_S)
        except TimeoutError:
            return
        if exc is not None:
            logger.error("an import failed", exc_info=exc)

    def close(self) -> None:
        """Remove the upload, and end a run after its current batch."""
        self.is_cancelled = True
        if self._run is None or self._run.done():
            self.upload.close()

    def _import(self, memory: Memory, by: str, secrets: SecretRule) -> None:
        report = Report(secrets)
        try:
            reading = open_source(Source(str(self.upload.path)), self.kind, report)
            left_out = NotesLeftOut(memory)
            receipt = run_import(
                memory,
                left_out.filter(self._until_cancelled(reading.items)),
                report,
                by=by,
                history=reading.history,
                dry_run=self._is_dry,
                replace_conflicts=self.replace_conflicts,
                progress=self._report,
            )
        except PolymniaError as exc:
            self.error = str(exc).replace(str(self.upload.path), self.title)
            return
        if left_out.count:
            report.skip("notes", left_out.reason)
        self.outcome = Outcome(
            importer=reading.importer,
            receipt=receipt,
            skipped=report.skipped,
            flagged=report.flagged,
            left_fields=report.left_fields,
        )
        if self.is_cancelled or not self._is_dry:
            self.upload.close()

    def _report(self, done: int) -> None:
        self.done = done

    def _until_cancelled(self, items: Iterator[Item]) -> Iterator[Item]:
        return takewhile(lambda _: not (self.is_cancelled or self._is_stopping()), items)


class Imports:
    """The imports of a server by id. The oldest is forgotten when there are too many. Thread-safe."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        """`is_stopping` tells whether the server is stopping; runs then end after the current batch."""
        self._is_stopping = is_stopping
        self._lock = Lock()
        self._imports: OrderedDict[str, Import] = OrderedDict()

    def add(self, upload: Upload, owner: Principal, workspace: str) -> Import:
        """Return a new import of the principal into a workspace."""
        found = Import(upload, owner, workspace, self._is_stopping)
        with self._lock:
            self._imports[found.id] = found
            forgotten = [
                self._imports.popitem(last=False)[1]
                for _ in range(len(self._imports) - MAX_IMPORTS)
            ]
        for each in forgotten:
            each.close()
        return found

    def find(self, identifier: str, principal: Principal) -> Import:
        """Return an import of the principal. Raise BadInput if there is none."""
        with self._lock:
            found = self._imports.get(identifier)
        if found is None or not found.owner.is_same(principal):
            raise BadInput("this upload is no longer here: upload the file again")
        return found

    def remove(self, identifier: str, principal: Principal) -> None:
        """Forget an import of the principal and remove its files."""
        found = self.find(identifier, principal)
        with self._lock:
            self._imports.pop(identifier, None)
        found.close()
