"""The dataset: a graph of any size in a memory.jsonl file, the same on every run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

SEED = 20251125
WORDS_PER_OBSERVATION = 7
ENTITY_TYPES = ("person", "project", "place", "idea")
RELATION_TYPES = ("knows", "needs")

Line = dict[str, object]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A generated file and the number of its entities."""

    size: int
    path: Path


def write_dataset(size: int, path: Path) -> Dataset:
    """Write `size` entities of 3 observations and 2 relations each."""
    rng = Random(SEED)
    encode = msgspec.json.encode
    with path.open("wb") as file:
        file.writelines(encode(line) + b"\n" for line in graph_lines(rng, size))
    return Dataset(size, path)


def graph_lines(rng: Random, size: int) -> Iterator[Line]:
    """Yield the lines of the file: all entities, then all relations."""
    for index in range(size):
        yield {"type": "entity", **entity(rng, entity_name(index), token(index))}
    for index in range(size):
        for relation_type in RELATION_TYPES:
            target = entity_name(rng.randrange(size))
            line = relation(entity_name(index), target, relation_type)
            yield {"type": "relation", **line}


def entity_name(index: int) -> str:
    """Return the name of the entity at this place in the file."""
    return f"entity-{index:06d}"


def token(index: int) -> str:
    """Return a word that only this entity has.

    An odd multiplier scatters the numbers without collisions, and `q` occurs in no other word, so a
    token is never part of another word.
    """
    return f"q{index * 2654435761 % 2**32:08x}"


def entity(rng: Random, name: str, unique: str) -> Line:
    """Return an entity with three observations, one of which has the unique word."""
    facts = [sentence(rng), f"{sentence(rng)} {unique}", sentence(rng)]
    return {
        "name": name,
        "entityType": rng.choice(ENTITY_TYPES),
        "observations": facts,
    }


def relation(source: str, target: str, relation_type: str) -> Line:
    """Return a relation as the reference catalogue spells it."""
    return {"from": source, "to": target, "relationType": relation_type}


def sentence(rng: Random) -> str:
    """Return about fifty characters of random words."""
    return " ".join(rng.choices(WORDS, k=WORDS_PER_OBSERVATION))


def make_words(rng: Random, count: int) -> tuple[str, ...]:
    """Return pronounceable words of two to four syllables."""
    syllables = [c + v for c in "bcdfghjklmnprstvwxyz" for v in "aeiou"]
    return tuple("".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(count))


WORDS = make_words(Random(SEED), 2000)
