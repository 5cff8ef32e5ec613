"""A memory that a program opens, and its notes."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Self

from msgspec import UNSET

from polymnia.api.records import (
    ChangeRecord,
    EntityRecord,
    ForgottenRecord,
    NoteRecord,
    SearchHit,
    change_record,
    entity_record,
    flat_texts,
    forgotten_record,
    note_record,
    search_hit,
    to_model_time,
)
from polymnia.engine import notes as note_verbs
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities
from polymnia.engine.history import changes as history
from polymnia.engine.history.undo import undo
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import VAULT, Note, NoteQuery, Relation, Within
from polymnia.settings import load_settings
from polymnia.workspace_choice import open_workspace


def open_memory(
    url: str | os.PathLike[str] | None = None,
    *,
    workspace: str | None = None,
    embedder: str | None = None,
    read_only: bool = False,
    by: str = "python",
) -> "LocalMemory":
    """Open a memory: a path, a store URL, or `memory:`. Close it, or use it in a `with` block.

    Without a URL, open the memory that `polymnia serve` uses without options. Arguments that are
    not given come from the environment and the settings file. `by` is the name that the history
    shows. Raise SettingsError, StoreError, BadInput.
    """
    flags = {
        "store": None if url is None else os.fspath(url),
        "workspace": workspace,
        "embedder": embedder,
    }
    with ExitStack() as stack:
        settings = load_settings(flags)
        place = stack.enter_context(
            open_workspace(settings, read_only=read_only, creates=not read_only, by_meaning=True)
        )
        return LocalMemory(place.memory, stack.pop_all(), by=by)


class LocalMemory:
    """A memory in this process. Threads may share it, and other processes may use the same store.

    Every method that changes something makes one change, which is on disk when it returns. Methods
    raise the exceptions of `polymnia.errors`.
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

    def __repr__(self) -> str:
        return f"<LocalMemory in {self._memory.store.url}>"

    def close(self) -> None:
        """Close the memory. Closing it twice is harmless."""
        self._is_closed = True
        self._resources.close()

    @property
    def notes(self) -> "LocalNotes":
        """The notes of the memory."""
        return LocalNotes(self._engine, self._by)

    def remember(
        self,
        name: str,
        *texts: str | Sequence[str],
        type: str = "",  # noqa: A002  # the word that the rest of the API and the tools use
        summary: str | None = None,
        tags: Sequence[str] = (),
        valid_at: datetime | None = None,
        source: str = "",
    ) -> EntityRecord:
        """Create an entity or extend it with texts it does not have yet, and return it.

        The texts may also be a list. The type counts only if the entity is new. `valid_at` is when
        the texts were said or true, if not now; `source` names the conversation or document they
        come from.
        """
        at = to_model_time(valid_at)
        facts = tuple(
            FactDraft(text=text, valid_at=at, source=source) for text in flat_texts(texts)
        )
        entity = EntityFacts(name=name, type=type, facts=facts, summary=summary, tags=tuple(tags))
        remember(self._engine, [entity], by=self._by)
        return self.open(name)

    def relate(self, source: str, relation: str, target: str) -> bool:
        """Relate two entities. Return False if they are related so. Raise EntityNotFound."""
        for name in (source, target):
            self.open(name)
        receipt = remember(self._engine, [], [Relation(source, target, relation)], by=self._by)
        return receipt.relations[0].outcome == "created"

    def recall(
        self,
        question: str,
        *,
        limit: int = 10,
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> list[SearchHit]:
        """Return what answers the question, best first: by words, names, dates and by meaning.

        With types or tags, only what is of one of the types and has all of the tags.
        """
        # How long a search waits for the embedding model.
        embed_timeout_s = 10.0
        within = Within(types=tuple(types) or None, tags=tuple(tags) or None)
        result = recall(self._engine, question, limit=limit, within=within, timeout=embed_timeout_s)
        return [search_hit(hit) for hit in result.hits]

    def open(self, name: str) -> EntityRecord:
        """Return the entity with its facts and relations. Raise EntityNotFound."""
        graph = entities.open_named(self._engine, [name])
        if not graph.entities:
            raise EntityNotFound(name)
        return entity_record(graph)

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

        `replace` corrects facts and `supersede` adds newer ones in place of them; both map
        an ordinal or a text to the new text. Raise EntityNotFound, BadInput.
        """
        revision = Revision(
            name=rename,
            type=type,
            summary=UNSET if summary is None else summary,
            add_tags=tuple(add_tags),
            remove_tags=tuple(remove_tags),
            replace=_edits(replace),
            supersede=_edits(supersede),
        )
        return self.open(revise(self._engine, name, revision, by=self._by).after.name)

    def forget(
        self,
        *names: str,
        facts: Mapping[str, Sequence[int | str]] | None = None,
        relations: Sequence[tuple[str, str, str]] = (),
        notes: Sequence[str] = (),
        dry_run: bool = False,
    ) -> ForgottenRecord:
        """Delete entities, facts, relations and notes, as one change that can be undone.

        Facts are named by ordinal or text, relations as (source, type, target). With
        `dry_run` nothing is deleted, and the result says what would be.
        """
        named: list[tuple[str, int | str]] = []
        for name, references in (facts or {}).items():
            named += [(name, reference) for reference in references]
        unwanted = Unwanted(
            entities=names,
            facts=tuple(named),
            relations=tuple(Relation(source, target, kind) for source, kind, target in relations),
            notes=tuple(notes),
        )
        return forgotten_record(forget(self._engine, unwanted, by=self._by, dry_run=dry_run))

    def history(self, name: str | None = None, *, limit: int = 20) -> list[ChangeRecord]:
        """Return the latest changes of everything or of one entity. Raise NotSupported."""
        names = None if name is None else [name]
        page = history.latest(self._engine, limit=limit, names=names)
        return [change_record(change) for change in page.changes]

    def undo(self, *changes: int, skip_conflicts: bool = False) -> int:
        """Undo changes by their ids, or the latest one. Return the id of the new change, or 0.

        Raise BadInput if something was changed since, unless `skip_conflicts` skips it.
        """
        ids = changes or tuple(change.id for change in self.history(limit=1))
        if not ids:
            raise BadInput("there is no change to undo")
        receipt = undo(self._engine, ids, by=self._by, skip_conflicts=skip_conflicts)
        if receipt.conflicts and not skip_conflicts:
            first = receipt.conflicts[0]
            conflict = f"{first.what} of {first.name}: {first.reason}"
            raise BadInput(f"cannot undo the {conflict}; skip_conflicts skips it")
        return receipt.change

    def index(self) -> int:
        """Embed what has no vector yet. Return the number of texts; 0 without an embedder."""
        meaning = self._engine.meaning
        if meaning is None:
            return 0
        return meaning.index(self._memory.store)

    @property
    def _engine(self) -> Memory:
        if self._is_closed:
            raise BadInput("the memory is closed")
        return self._memory


def _edits(changes: Mapping[int | str, str] | None) -> tuple[Edit, ...]:
    return tuple(Edit(old, text) for old, text in (changes or {}).items())


class LocalNotes:
    """The notes of a `LocalMemory`. Methods raise NotSupported if the store cannot hold them."""

    def __init__(self, memory: Memory, by: str) -> None:
        self._memory = memory
        self._by = by

    def put(self, key: str, content: str, *, tags: Sequence[str] = ()) -> NoteRecord:
        """Store a note. It replaces one with the same key."""
        note = Note(key, content, tuple(tags))
        return note_record(note_verbs.commit(self._memory, note, by=self._by))

    def get(self, key: str) -> NoteRecord | None:
        """Return the note with that key; None if there is none."""
        note = note_verbs.read(self._memory, VAULT, key)
        if note is None:
            return None
        return note_record(note)

    def search(self, text: str, *, tags: Sequence[str] = (), limit: int = 10) -> list[NoteRecord]:
        """Return the notes that contain words of the text and have all of the tags, best first."""
        query = NoteQuery(text=text, tags=tuple(tags), limit=limit)
        result = note_verbs.search(self._memory, query, [VAULT])
        return [note_record(hit.note) for hit in result.hits]

    def read(self, keys: Sequence[str]) -> list[NoteRecord]:
        """Return the notes with these keys, in this order, without those that do not exist."""
        notes = note_verbs.read_many(self._memory, VAULT, keys)
        return [note_record(note) for note in notes]

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that start with the prefix, in alphabetical order."""
        return note_verbs.keys(self._memory, VAULT, prefix)

    def delete(self, key: str) -> bool:
        """Delete the note with that key. Return False if there is none."""
        return bool(note_verbs.prune(self._memory, [VAULT], by=self._by, key=key))
