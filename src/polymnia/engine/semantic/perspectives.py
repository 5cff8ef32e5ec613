"""Verbs on perspectives: the ways in which passages are embedded, and how many are."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.memory import Memory
from polymnia.engine.semantic.indexer import distinct_perspectives
from polymnia.errors import BadInput
from polymnia.model import EmbeddingModel, Perspective
from polymnia.search.templates import DOCUMENT_FIELDS, QUERY_FIELDS, check_template
from polymnia.stores.contract import Reader

if TYPE_CHECKING:
    from polymnia.stores.contract import VectorReader

MAX_PERSPECTIVES = 20
_NAME = re.compile(r"[\w-]{1,50}")
# The document templates that each memory had at the last check.
_noticed: WeakKeyDictionary[Memory, frozenset[str]] = WeakKeyDictionary()


class PerspectiveCoverage(Struct, frozen=True):
    """A perspective, how many passages have a vector in it, and how many should."""

    perspective: Perspective
    embedded: int
    total: int


def find_all(memory: Memory) -> list[PerspectiveCoverage]:
    """Return the perspectives with their coverage, oldest first.

    Raise NotSupported in a store without vectors.
    """
    with memory.reading() as read:
        model = current_model(memory, read.vectors)
        return [_coverage(read, model, perspective) for perspective in read.vectors.perspectives()]


def coverage(memory: Memory) -> float:
    """Return the share of vectors that exist; 1 if there is nothing to embed."""
    embedded = total = 0
    with memory.reading() as read:
        model = current_model(memory, read.vectors)
        perspectives = distinct_perspectives(read.vectors)
        for perspective in perspectives:
            counts = _coverage(read, model, perspective)
            embedded += counts.embedded
            total += counts.total
    _notice(memory, perspectives)
    return embedded / total if total else 1.0


def own_perspectives(
    memory: Memory, vectors: "VectorReader", defaults: Sequence[Perspective]
) -> list[Perspective]:
    """Return the memory's own perspectives, or else the defaults that embed its text."""
    text, *own = vectors.perspectives()
    _notice(memory, [text, *own])
    return own or [default for default in defaults if default.document == text.document]


def ensure(memory: Memory, defaults: Sequence[Perspective]) -> None:
    """Give a memory without perspectives the default ones, and embed it in the background.

    A memory without an embedder needs none.
    """
    if memory.meaning is None:
        return
    with memory.reading() as read:
        has_own = len(read.vectors.perspectives()) > 1
    if not has_own:
        for default in defaults:
            memory.store.vectors.set_perspective(default)
        memory.request_indexing()


def store(
    memory: Memory, name: str, *, document: str | None = None, query: str | None = None
) -> Perspective:
    """Add a perspective or change its templates; return it.

    What is not given stays, or is the plain text. A running server embeds the memory in a changed
    document template. Raise BadInput.
    """
    with memory.reading() as read:
        known = {perspective.name: perspective for perspective in read.vectors.perspectives()}
    if not _NAME.fullmatch(name):
        raise BadInput(f"invalid name {name!r}: use letters, digits, '-' and '_', at most 50")
    if name not in known and len(known) >= MAX_PERSPECTIVES:
        raise BadInput(f"there are {len(known)} perspectives already; remove one first")
    new = known.get(name, Perspective(name, "{text}", "{query}"))
    if document is not None:
        new = replace(new, document=document)
    if query is not None:
        new = replace(new, query=query)
    check_template(new.document, DOCUMENT_FIELDS, "document template")
    check_template(new.query, QUERY_FIELDS, "query template")
    memory.store.vectors.set_perspective(new)
    return new


def remove(memory: Memory, name: str) -> None:
    """Remove a perspective; a running server deletes its vectors.

    Raise BadInput for the last and an unknown one.
    """
    with memory.reading() as read:
        _, *own = read.vectors.perspectives()  # the first is TEXT
    if [perspective.name for perspective in own] == [name]:
        raise BadInput(f"{name} is the last perspective; add another one before you remove it")
    memory.store.vectors.remove_perspective(name)


def current_model(memory: Memory, vectors: "VectorReader") -> EmbeddingModel | None:
    """Return the newest model that the memory's embedder made vectors with."""
    for model in reversed(vectors.models()):
        # Without an embedder, any model's vectors can be looked at.
        if memory.meaning is None or model.url == memory.meaning.url:
            return model
    return None


def _notice(memory: Memory, perspectives: Sequence[Perspective]) -> None:
    """Embed what is missing, in the background, after another process changed templates."""
    documents = frozenset(perspective.document for perspective in perspectives)
    if _noticed.get(memory) != documents:
        _noticed[memory] = documents
        memory.request_indexing()


def _coverage(
    read: Reader, model: EmbeddingModel | None, perspective: Perspective
) -> PerspectiveCoverage:
    if model is None:
        return PerspectiveCoverage(perspective, 0, read.counts().facts)
    embedded, total = read.vectors.coverage(model.number, perspective=perspective.name)
    return PerspectiveCoverage(perspective, embedded, total)
