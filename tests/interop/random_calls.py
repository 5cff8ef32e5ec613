"""Random tool calls that Polymnia and the npm reference server must answer alike.

Two kinds of calls are left out because the servers differ on purpose. Polymnia stores a value that
repeats inside one call once, the npm server twice: a name in `create_entities`, a relation in
`create_relations`, a text in `add_observations`. Polymnia finds composed and decomposed letters
alike (ñ) and folds case fully (ß, final ς).
"""

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import TypeVar

from .conversation import JSON, Call, entity, relation

T = TypeVar("T")

NAMES = (
    "Ada",
    "ada",
    "Ada Lovelace",
    "Élodie",
    "ñandu",
    "n\u0303andu",
    "東京",
    "İstanbul",
    "Ωmega",
    "🦊 fox",
    "100%_sure*",
    'a "quoted" \\ name',
    "line\nbreak",
    "",
)
TYPES = ("person", "Person", "city", "ÉTAT", "")
TEXTS = (
    "Drinks tea",
    "drinks TEA",
    "Né à Paris",
    "数学が好き",
    "tab\tand\u2028separator",
    "bell \u0007, delete \u007f, done",
    "👩‍👩‍👧 family",
    "O'Brien; DROP TABLE entity --",
    "long " * 1000,
    "",
)
RELATION_TYPES = ("knows", "KNOWS", "lives in", "住む")
QUERIES = (
    "ada",
    "ADA",
    "é",
    "É",
    "京",
    "İST",
    "i̇st",
    "ω",
    "🦊",
    "tea",
    "%",
    "_",
    "*",
    '"',
    "'",
    "\\",
    "\u0000, d",
    "zz",
    "",
)
RELATIONS = tuple(relation(*ends) for ends in product(NAMES, NAMES, RELATION_TYPES))


def random_calls(seed: int, count: int) -> list[Call]:
    rng = Random(seed)
    tools = rng.choices(list(_ARGUMENTS), _WEIGHTS, k=count)
    return [Call(tool, _ARGUMENTS[tool](rng)) for tool in tools]


def _create_entities(rng: Random) -> JSON:
    return {"entities": [_entity(rng, name) for name in _some(rng, NAMES)]}


def _entity(rng: Random, name: str) -> JSON:
    return entity(name, rng.choice(TYPES), *rng.choices(TEXTS, k=rng.randint(0, 3)))


def _create_relations(rng: Random) -> JSON:
    return {"relations": _some(rng, RELATIONS)}


def _add_facts(rng: Random) -> JSON:
    names = rng.sample(NAMES, rng.randint(1, 2))
    return {"observations": [{"entityName": name, "contents": _some(rng, TEXTS)} for name in names]}


def _delete_entities(rng: Random) -> JSON:
    return {"entityNames": rng.choices(NAMES, k=rng.randint(0, 2))}


def _delete_facts(rng: Random) -> JSON:
    names = rng.choices(NAMES, k=rng.randint(0, 3))
    return {
        "deletions": [{"entityName": name, "observations": _some(rng, TEXTS)} for name in names]
    }


def _delete_relations(rng: Random) -> JSON:
    return {"relations": rng.choices(RELATIONS, k=rng.randint(0, 40))}


def _read_graph(rng: Random) -> JSON:
    return {}


def _search_nodes(rng: Random) -> JSON:
    return {"query": rng.choice(QUERIES)}


def _open_nodes(rng: Random) -> JSON:
    return {"names": rng.choices(NAMES, k=rng.randint(0, 4))}


def _some(rng: Random, pool: Sequence[T]) -> list[T]:
    """Return up to three different members of the pool."""
    return rng.sample(pool, rng.randint(0, 3))


_ARGUMENTS: dict[str, Callable[[Random], JSON]] = {
    "create_entities": _create_entities,
    "create_relations": _create_relations,
    "add_observations": _add_facts,
    "delete_entities": _delete_entities,
    "delete_observations": _delete_facts,
    "delete_relations": _delete_relations,
    "read_graph": _read_graph,
    "search_nodes": _search_nodes,
    "open_nodes": _open_nodes,
}
_WEIGHTS = (5, 5, 4, 1, 2, 1, 1, 3, 3)
"""Writes are more frequent than deletes, so that the graph grows."""
