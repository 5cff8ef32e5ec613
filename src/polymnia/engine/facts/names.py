"""Names that mean an entity without being spelled exactly like its name."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from polymnia.model import Entity
from polymnia.search.similarity import are_names_alike
from polymnia.search.terms import plain, terms_of, words_of
from polymnia.stores.contract import Reader, check_cancelled

MAX_SIMILAR_NAMES = 3
# Names that an unknown name is compared with.
MAX_COMPARED_NAMES = 50
MAX_RESOLVED_NAMES = 20
# The type of an entity that is stored without one.
DEFAULT_TYPE = "thing"
# A first name stands for a person. "Worker" is not short for "Worker pool".
_PERSON = "person"


def find_candidates(read: Reader, name: str) -> list[Entity]:
    """Return outlines of entities that share a word with the name, or had it."""
    names, aliased = read.together(
        lambda: read.names_with(terms_of(name), MAX_COMPARED_NAMES), read.aliased
    )
    candidates = read.outlines(names) if names else []
    return candidates + [entity for entity in aliased if _had_name(entity, _key(name))]


def resolve_name(read: Reader, name: str) -> str:
    """Return the name of the only entity that a name can mean; the name itself if none is clear."""
    return resolve_names(read, [name])[name]


def resolve_names(read: Reader, names: Collection[str]) -> dict[str, str]:
    """Map each name to that of the only entity that it can mean, or else to itself.

    Only the first MAX_RESOLVED_NAMES unknown names are compared with others.
    """
    resolved = {name: name for name in names}
    unknown = resolved.keys() - read.existing_names(names)
    for name in [name for name in resolved if name in unknown][:MAX_RESOLVED_NAMES]:
        check_cancelled()
        entity = guess_entity(name, find_candidates(read, name))
        if entity is not None:
            resolved[name] = entity.name
    return resolved


def guess_entity(name: str, candidates: list[Entity], *, new_type: str = "") -> Entity | None:
    """Return the only entity that the name can mean; None if it is not clear.

    The names differ in case, accents and spaces only, the entity had the name before, or the name
    is part of one other name. A
    new type says that the caller may want a new entity: then only people are known by part of
    their name.
    """
    key = _key(name)
    same = [entity for entity in candidates if _key(entity.name) == key]
    if not same:
        same = [entity for entity in candidates if _had_name(entity, key)]
    if same:
        return same[0] if len({entity.id for entity in same}) == 1 else None
    # With so many candidates there may be more that were not read.
    if len(candidates) >= MAX_COMPARED_NAMES:
        return None
    words = _words(name)
    longer = [entity for entity in candidates if words and words < _words(entity.name)]
    if len(longer) > 1:  # "Noah" is not short for "Noah's birthday cake"
        longer = [entity for entity in longer if plain(entity.type) == _PERSON]
    if len(longer) != 1:
        return None
    (entity,) = longer
    if new_type and not _PERSON == plain(new_type) == plain(entity.type):
        return None
    return entity


def similar_names(entity: Entity, candidates: Iterable[Entity]) -> tuple[str, ...]:
    """Return names of other entities that may mean the same thing.

    An entity without a given type may be of any type.
    """
    others = []
    for other in candidates:
        one = entity
        if entity.type == DEFAULT_TYPE:
            one = replace(entity, type=other.type)
        if are_names_alike(one, other):
            others.append(other.name)
    return tuple(others[:MAX_SIMILAR_NAMES])


def _had_name(entity: Entity, key: str) -> bool:
    return any(_key(alias) == key for alias in entity.aliases)


def _key(name: str) -> str:
    return " ".join(plain(name).split())


def _words(name: str) -> set[str]:
    return set(words_of(plain(name)))
