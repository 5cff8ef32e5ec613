"""A memory opened by a program: remember, recall, open, relate, revise, forget, history, undo and notes."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Self

from polymnia.api.notes import LocalNotes
from polymnia.api.records import (
    ChangeRecord,
    EntityRecord,
    ForgottenRecord,
    SearchHit,
    change_record,
    entity_record,
    forgotten_record,
    search_hit,
    to_model_time,
)
from polymnia.app import open_workspace_memory
from polymnia.engine import entities, history
from polymnia.engine.forget import Unwanted, forget
from polymnia.engine.memory import Memory
from polymnia.engine.recall import recall
from polymnia.engine.remember import EntityFacts, FactDraft, remember
from polymnia.engine.revise import Edit, Revision, revise
from polymnia.engine.undo import undo
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Relation, Within
from polymnia.settings import load_settings

# How long a search waits for the embedding model.
_EMBED_TIMEOUT_S = 10.0


def open_memory(
    url: str | os.PathLike[str] | None = None,
    *,
    workspace: str | None = None,
    embedder: str | None = None,
    read_only: bool = False,
    by: str = "python",
) -> "LocalMemory":
    """Open a memory: a path, a store URL, or `memory:`. Close it, or use it in a `with` block.

    Without a URL, open the memory that `polymnia serve` uses without options. Arguments that are not given come from
    the environment and the settings file. `by` is the name that the history shows. Raise SettingsError, StoreError,
    BadInput.
    """
    flags = {
        "store": None if url is None else os.fspath(url),
        "workspace": workspace,
        "embedder": embedder,
    }
    with ExitStack() as stack:
        memory = stack.enter_context(
            open_workspace_memory(load_settings(flags), read_only=read_only)
        )
        return LocalMemory(memory, stack.pop_all(), by=by)


class LocalMemory:
    """A memory in this process. Several threads may use it, and other processes may use the same store.

    Every method that changes something makes one change, which is on disk when it returns. Methods raise the exceptions
    of `polymnia.errors`.
    """

    def __init__(self, memory: Memory, resources: ExitStack, *, by: str) -> None:
        self._memory = memory
        self._resources = resources
        self._by = by
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the memory. Closing it twice is harmless."""
        self._is_closed = True
        self._resources.close()

    @property
    def notes(self) -> LocalNotes:
        """The notes of the memory."""
        return LocalNotes(self._engine, self._by)

    def remember(
        self,
        name: str,
        *texts: str,
        type: str = "",  # noqa: A002  # the word that the rest of the API and the tools use
        summary: str | None = None,
        tags: Sequence[str] = (),
        valid_at: datetime | None = None,
    ) -> EntityRecord:
        """Create an entity or extend it with texts it does not have yet, and return it.

        The type counts only if the entity is new. `valid_at` is when the texts were said or true, if not now.
        """
        at = to_model_time(valid_at)
        facts = tuple([FactDraft(text=text, valid_at=at) for text in texts])
        wanted = EntityFacts(name=name, type=type, facts=facts, summary=summary, tags=tuple(tags))
        remember(self._engine, [wanted], by=self._by)
        return self.open(name)

    def relate(self, source: str, relation: str, target: str) -> bool:
        """Relate two entities. Return False if the relation exists already. Raise BadInput if one does not exist."""
        for name in (source, target):
            self.open(name)
        receipt = remember(self._engine, [], [Relation(source, target, relation)], by=self._by)
        return receipt.relations[0].outcome == "created"

    def recall(
        self, question: str, *, limit: int = 10, types: Sequence[str] = ()
    ) -> list[SearchHit]:
        """Return what answers the question, best first: by words, names, dates and, with an embedder, by meaning."""
        within = Within(types=tuple(types)) if types else None
        found = recall(self._engine, question, limit=limit, within=within, timeout=_EMBED_TIMEOUT_S)
        return [search_hit(hit) for hit in found.hits]

    def open(self, name: str) -> EntityRecord:
        """Return the entity with that name, its observations and relations. Raise EntityNotFound."""
        found = entities.open_named(self._engine, [name])
        if not found.entities:
            raise EntityNotFound(name)
        return entity_record(found)

    def revise(
        self,
        name: str,
        *,
        rename: str | None = None,
        type: str | None = None,  # noqa: A002  # as above
        summary: str | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        replace: Mapping[int | str, str] | None = None,
        supersede: Mapping[int | str, str] | None = None,
    ) -> EntityRecord:
        """Change an entity and return it. Relations follow a new name.

        `replace` corrects observations and `supersede` adds newer ones in place of them; both map an ordinal or a text
        to the new text. Raise EntityNotFound, BadInput.
        """
        fields = {} if summary is None else {"summary": summary}
        revision = Revision(
            name=rename,
            type=type,
            add_tags=tuple(add_tags),
            remove_tags=tuple(remove_tags),
            replace=_edits(replace),
            supersede=_edits(supersede),
            **fields,
        )
        return self.open(revise(self._engine, name, revision, by=self._by).after.name)

    def forget(
        self,
        *names: str,
        observations: Mapping[str, Sequence[int | str]] | None = None,
        relations: Sequence[tuple[str, str, str]] = (),
        notes: Sequence[str] = (),
        dry_run: bool = False,
    ) -> ForgottenRecord:
        """Delete entities, observations by ordinal or text, relations (source, type, target) and notes, as one change.

        It can be undone. With `dry_run` nothing is deleted, and the result says what would be.
        """
        unwanted = Unwanted(
            entities=names,
            observations=tuple(
                [(name, each) for name, some in (observations or {}).items() for each in some]
            ),
            relations=tuple([Relation(source, target, kind) for source, kind, target in relations]),
            notes=tuple(notes),
        )
        return forgotten_record(forget(self._engine, unwanted, by=self._by, dry_run=dry_run))

    def history(self, name: str | None = None, *, limit: int = 20) -> list[ChangeRecord]:
        """Return the latest changes, newest first, of everything or of one entity. Raise NotSupported."""
        found = history.latest(self._engine, limit=limit, names=None if name is None else [name])
        return [change_record(change) for change in found.changes]

    def undo(self, *changes: int, skip_conflicts: bool = False) -> int:
        """Undo changes by their ids, or the latest one, as a new change. Return its id; 0 if nothing differs.

        Raise BadInput if something was changed since, unless `skip_conflicts` skips it.
        """
        wanted = changes or tuple([change.id for change in self.history(limit=1)])
        if not wanted:
            raise BadInput("there is no change to undo")
        receipt = undo(self._engine, wanted, by=self._by, skip_conflicts=skip_conflicts)
        if receipt.conflicts and not skip_conflicts:
            first = receipt.conflicts[0]
            raise BadInput(
                f"cannot undo the {first.what} of {first.name}: {first.reason}; skip_conflicts skips it"
            )
        return receipt.change

    def index(self) -> int:
        """Embed everything that has no vector yet, and return the number of texts; 0 without an embedder."""
        meaning = self._engine.meaning
        return 0 if meaning is None else meaning.index(self._memory.store)

    @property
    def _engine(self) -> Memory:
        if self._is_closed:
            raise BadInput("the memory is closed")
        return self._memory


def _edits(changes: Mapping[int | str, str] | None) -> tuple[Edit, ...]:
    return tuple([Edit(old, text) for old, text in (changes or {}).items()])
