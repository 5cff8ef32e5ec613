"""The handle that every verb takes: a store, its change listeners, and its search by meaning."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from polymnia.engine.facts.secrets import SecretRule, find_secret, refuse_secrets
from polymnia.errors import OverLimit
from polymnia.model import (
    Change,
    Entity,
    PassageKey,
    Rows,
    Traces,
    require_size,
    require_storable,
    texts_in,
)
from polymnia.model.changes import DEFAULT_QUOTA, Quota
from polymnia.stores.contract import Reader, Store, Writer, check_cancelled
from polymnia.telemetry import inside, span

if TYPE_CHECKING:
    from polymnia.engine.semantic.meaning import Meaning

logger = logging.getLogger(__name__)

ChangeListener = Callable[[Change], None]
# These bring back texts that are in the store already.
_REVERSALS = ("undo", "restore")


class Memory:
    """One workspace's memory. Without `meaning` it is searched by words alone.

    `secrets` says what to do with a text that looks like a key or token.
    """

    def __init__(
        self,
        store: Store,
        meaning: "Meaning | None" = None,
        *,
        secrets: SecretRule = "warn",
        quota: Quota = DEFAULT_QUOTA,
    ) -> None:
        self.store = store
        self.secrets: SecretRule = secrets
        self.quota = quota
        self.meaning = meaning if store.capabilities.vectors else None
        self._listeners: list[ChangeListener] = []

    def reading(self, *, may_lag: bool = False) -> AbstractContextManager[Reader]:
        """Open one snapshot for the block. For a search it may lag behind other processes."""
        return inside("store read", self.store.reading(may_lag=may_lag))

    @contextmanager
    def writing(self, operation: str, by: str) -> Iterator["Transaction"]:
        """Open one write for the block.

        When the block ends, the change is durable and the listeners are called.
        """
        with span(operation), self.store.writing() as writer:
            transaction = Transaction(self, writer, operation, by)
            yield transaction
        if transaction.change is not None:
            self.request_indexing()
            for listener in self._listeners:
                listener(transaction.change)

    def on_change(self, listener: ChangeListener) -> None:
        """Call the listener after every durable change made through this handle."""
        self._listeners.append(listener)

    def request_indexing(self) -> None:
        """Embed in the background what has no vector, if the memory is searched by meaning."""
        if self.meaning is not None:
            self.meaning.request_indexing(self)


@contextmanager
def one_snapshot(
    memories: Sequence[Memory], *, may_lag: bool = False
) -> Iterator[Callable[..., list[Any]]]:
    """Let the block read one state of several memories. Yield `Reader.together`."""

    def in_turn(*questions: Callable[[], Any]) -> list[Any]:
        return [question() for question in questions]

    with ExitStack() as snapshots:
        readers = [snapshots.enter_context(one.reading(may_lag=may_lag)) for one in memories]
        yield readers[0].together if readers else in_turn


class Transaction:
    """What a verb reads, and the one change it makes."""

    def __init__(self, memory: Memory, writer: Writer, operation: str, by: str) -> None:
        self.read: Reader = writer
        self.change: Change | None = None
        self._writer = writer
        self.decided_at = 0  # until the time is known
        self._operation = operation
        self._by = by
        self._quota = memory.quota
        self._secrets: SecretRule = "off" if operation in _REVERSALS else memory.secrets

    def time(self) -> int:
        """Return the time of the change, which the store decides.

        Ask after the first read: a store on a server then answers both at once.
        """
        if not self.decided_at:
            self.decided_at = self._writer.clock()
        return self.decided_at

    @property
    def change_id(self) -> int:
        """The id of the change; 0 if nothing was changed or the store has no history."""
        return self.change.id if self.change is not None else 0

    def apply(
        self,
        *,
        before: Rows | None = None,
        after: Rows | None = None,
        touched: Collection[str] = (),
        operation: str = "",
        successors: dict[PassageKey, int] | None = None,
    ) -> None:
        """Write the rows as one change, and count the touched entities as updated.

        `operation` names the change if its name depends on what was read. `successors` as in
        Change.
        Nothing happens without rows. Raise BadInput for a text that cannot be stored, and for a
        new one that looks like a key or token if those are refused.
        """
        change = Change(
            operation or self._operation,
            self._by,
            self.time(),
            before or Rows(),
            after or Rows(),
            touched=tuple(touched),
            successors=successors or {},
        )
        require_storable(change.after)
        if self._operation not in _REVERSALS:
            require_size(change.after, self._quota.fact_bytes)
            self._require_space(change)
        # Here, because every write of every dialect passes.
        new_texts = set(texts_in(change.after)) - set(texts_in(change.before))
        if self._secrets == "refuse":
            refuse_secrets(new_texts)
        elif self._secrets == "warn":
            # Receipts of native say which text it is. An import of more texts has its own report.
            for kind in {find_secret(text) for text in islice(new_texts, 200)} - {""}:
                logger.warning(
                    "%s by %s stored a text that looks like %s",
                    change.operation,
                    change.actor,
                    kind,
                )
        if change.before or change.after:
            check_cancelled()  # the last chance: nothing has been written yet
            self.change = replace(change, id=self._writer.apply(change))

    def _require_space(self, change: Change) -> None:
        """Raise OverLimit if the change would add facts or bytes to a full workspace."""
        old, new = _fact_sizes(change.before), _fact_sizes(change.after)
        limits = (
            ("facts", self._quota.facts, len(new) - len(old)),
            ("bytes", self._quota.bytes, sum(new) - sum(old)),
        )
        for kind, most, added in limits:
            if not most or added <= 0:
                continue
            stored = self.read.counts().facts if kind == "facts" else self.read.stored_bytes()
            if stored + added > most:
                logger.warning("a workspace is full: %s of %s %s", stored, most, kind)
                raise OverLimit(
                    f"this workspace is full: it has {stored:,} of at most {most:,} {kind}, and "
                    f"this would add {added:,}; nothing was stored, so forget what is no longer "
                    "needed"
                )

    def erase(self, traces: Traces) -> None:
        """Replace those of the rows that have ended, after `apply`."""
        self._writer.erase(traces)


def _fact_sizes(rows: Rows) -> list[int]:
    """Return the bytes of each fact."""
    facts = [fact for entity in rows.entities for fact in entity.facts]
    facts += [fact for part in rows.facts for fact in part.facts]
    return [len(fact.text.encode("utf-8", "surrogatepass")) for fact in facts]


def find_by_name(read: Reader, names: Collection[str]) -> dict[str, Entity]:
    """Return the named entities that exist, by name."""
    if not names:
        return {}
    return {entity.name: entity for entity in read.entities(names)}
