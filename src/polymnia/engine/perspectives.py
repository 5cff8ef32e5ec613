"""Verbs on perspectives: the ways in which a memory's passages are embedded, and how many are embedded."""

import re
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from msgspec import Struct

from polymnia.engine.indexer import distinct_perspectives
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import EmbeddingModel, Perspective
from polymnia.search.templates import DOCUMENT_FIELDS, QUERY_FIELDS, check_template
from polymnia.stores.contract import TEXT, Reader, VectorReader

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
    """Return the perspectives with their coverage, oldest first. Raise NotSupported in a store without vectors."""
    with memory.reading() as read:
        model = current_model(memory, read.vectors)
        return [_coverage(read, model, each) for each in read.vectors.perspectives()]


def coverage(memory: Memory) -> float:
    """Return the share of vectors that exist, over all perspectives; 1 if there is nothing to embed."""
    with memory.reading() as read:
        model = current_model(memory, read.vectors)
        counts = [_coverage(read, model, each) for each in distinct_perspectives(read.vectors)]
    _notice(memory, [each.perspective for each in counts])
    total = sum(each.total for each in counts)
    return sum(each.embedded for each in counts) / total if total else 1.0


def own_perspectives(
    memory: Memory, vectors: VectorReader, defaults: Sequence[Perspective]
) -> list[Perspective]:
    """Return where to search: the memory's own perspectives or, while it has none, the defaults that embed its text."""
    found = vectors.perspectives()
    _notice(memory, found)
    own = [each for each in found if each.name != TEXT]
    return own or [each for each in defaults if each.document == found[0].document]


def ensure(memory: Memory, defaults: Sequence[Perspective]) -> None:
    """Give a memory that has none of its own the default perspectives, and embed it in them in the background.

    A memory without an embedder needs none.
    """
    if memory.meaning is None:
        return
    with memory.reading() as read:
        has_own = len(read.vectors.perspectives()) > 1
    if not has_own:
        for each in defaults:
            memory.store.vectors.set_perspective(each)
        memory.request_indexing()


def store(
    memory: Memory, name: str, *, document: str | None = None, query: str | None = None
) -> Perspective:
    """Add a perspective or change its templates; return it. What is not given stays, or is the plain text.

    A running server embeds the memory in a changed document template. Raise BadInput.
    """
    with memory.reading() as read:
        known = {each.name: each for each in read.vectors.perspectives()}
    if not _NAME.fullmatch(name):
        raise BadInput(f"invalid name {name!r}: use letters, digits, '-' and '_', at most 50")
    if name not in known and len(known) >= MAX_PERSPECTIVES:
        raise BadInput(f"there are {len(known)} perspectives already; remove one first")
    old = known.get(name, Perspective(name, "{text}", "{query}"))
    new = Perspective(
        name, old.document if document is None else document, old.query if query is None else query
    )
    check_template(new.document, DOCUMENT_FIELDS, "document template")
    check_template(new.query, QUERY_FIELDS, "query template")
    memory.store.vectors.set_perspective(new)
    return new


def remove(memory: Memory, name: str) -> None:
    """Remove a perspective; a running server deletes its vectors. Raise BadInput for the last and an unknown one."""
    with memory.reading() as read:
        own = [each.name for each in read.vectors.perspectives() if each.name != TEXT]
    if own == [name]:
        raise BadInput(f"{name} is the last perspective; add another one before you remove it")
    memory.store.vectors.remove_perspective(name)


def current_model(memory: Memory, vectors: VectorReader) -> EmbeddingModel | None:
    """Return the newest model that the memory's embedder made vectors with."""
    url = memory.meaning.url if memory.meaning is not None else None
    return next((each for each in reversed(vectors.models()) if url in (None, each.url)), None)


def _notice(memory: Memory, found: Sequence[Perspective]) -> None:
    """Embed in the background what is missing after another process, such as a command, changed templates."""
    documents = frozenset([each.document for each in found])
    if _noticed.get(memory) != documents:
        _noticed[memory] = documents
        memory.request_indexing()


def _coverage(
    read: Reader, model: EmbeddingModel | None, perspective: Perspective
) -> PerspectiveCoverage:
    if model is None:
        return PerspectiveCoverage(perspective, 0, read.counts().observations)
    return PerspectiveCoverage(
        perspective, *read.vectors.coverage(model.number, perspective=perspective.name)
    )
