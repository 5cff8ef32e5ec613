"""New facts that may contradict facts about other entities."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from polymnia.engine.curation.contradictions import describe_difference
from polymnia.model import Fact
from polymnia.search.question import content_words
from polymnia.search.terms import terms_of
from polymnia.stores.contract import Reader

# New facts of a call that are compared, other entities that each is compared with, and the newest
# facts of those: a receipt is not a review.
MAX_COMPARED_FACTS, MAX_ENTITIES, MAX_FACTS = 10, 5, 60
# Names that share a word with a text, and facts that mention an entity.
MAX_NAMES, MAX_MENTIONS = 50, 20


class Conflict(Struct, frozen=True):
    """A fact of another entity that a new one may contradict."""

    entity: str
    fact: Fact


def find_conflicts(read: Reader, name: str, texts: Sequence[str]) -> dict[str, Conflict]:
    """Return facts of other entities that the new facts of an entity may contradict, by text.

    Only entities that the new fact names, or whose facts name this entity, are compared: two
    services may well have two timeouts.
    """
    conflicts = {}
    for text in texts[:MAX_COMPARED_FACTS]:
        for entity, fact in _comparable_facts(read, name, text):
            names = {*terms_of(name), *terms_of(entity)}
            terms, named = list(terms_of(text)), list(terms_of(entity))
            is_subject = bool(named) and terms[: len(named)] == named
            if is_subject:
                words, other_words = _words(text) - names, _words(fact.text) - names
                shared = len(words & other_words)
                # This share of the shorter text's words, without the names, is enough.
                is_subject = bool(shared) and shared >= 0.3 * min(len(words), len(other_words))
            if is_subject or describe_difference(fact.text, text, names):
                conflicts[text] = Conflict(entity, fact)
                break
    return conflicts


def _comparable_facts(read: Reader, name: str, text: str) -> Iterator[tuple[str, Fact]]:
    """Yield facts of entities that the text names, then facts of others that name the entity."""
    own_terms, terms = set(terms_of(name)), set(terms_of(text))
    similar_names, mentions = read.together(
        lambda: read.names_with(sorted(terms), MAX_NAMES),
        lambda: read.candidates(sorted(own_terms), MAX_MENTIONS, every=True),
    )
    named = []
    for other in similar_names:
        if other != name and terms.issuperset(terms_of(other)):
            named.append(other)
    for entity in read.entities(named[:MAX_ENTITIES]) if named else ():
        for fact in entity.facts[-MAX_FACTS:]:
            yield entity.name, fact
    for passage in mentions:
        if passage.ordinal > 0 and passage.entity != name:
            yield passage.entity, Fact(passage.ordinal, passage.text)


def _words(text: str) -> set[str]:
    return set(terms_of(" ".join(content_words(text))))
