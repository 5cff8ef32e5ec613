"""Random query strings, for hypothesis and for a command that tries many.

`python -m tests.stores.random_queries --count 20000` searches a SQLite store for that many and
counts the failures.
"""

import argparse
import random
import sys

from hypothesis import strategies

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.search import full_text
from polymnia.errors import PolymniaError
from polymnia.model import EntityDraft
from polymnia.stores.sqlite.store import SqliteStore

PIECES = [
    *(
        "alice",
        "tea",
        "coffee",
        "name",
        "content",
        "entity_type",
        "parts",
        "rank",
        "words",
        "日本語",
        "é",
        "ß",
        "0",
        "_",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "NEAR(",
        "and",
        "not",
        ":",
        "{",
        "}",
        "(",
        ")",
        '"',
        '""',
        "'",
        "*",
        "^",
        "+",
        "-",
    ),
    *(
        ",",
        ".",
        ";",
        "--",
        "/*",
        "\\",
        "%",
        "?",
        "?1",
        "$x",
        "@",
        "#",
        "!",
        "=",
        "<",
        ">",
        "|",
        "&",
        "~",
        "`",
        "[",
        "]",
    ),
    *(
        " ",
        "  ",
        "\t",
        "\n",
        "\x00",
        "\x7f",
        "\u200b",
        "\ufeff",
        "😀",
        "a" * 300,
        "x" * 5,
        "1" * 40,
        "\U0010ffff",
    ),
    "\ud800",
]


def queries() -> strategies.SearchStrategy[str]:
    """Return any text, and texts made of what is syntax to FTS5."""
    text = strategies.text(max_size=40)
    pieces = strategies.lists(strategies.sampled_from(PIECES), max_size=12).map("".join)
    spaced = strategies.lists(strategies.sampled_from(PIECES), max_size=12).map(" ".join)
    return text | pieces | spaced


def random_query(source: random.Random) -> str:
    """Return such a text without hypothesis: quick, and the same for the same seed."""
    if source.random() < 0.3:
        return "".join(
            [
                chr(source.choice((source.randrange(1, 128), source.randrange(160, 0xD7FF))))
                for _ in range(12)
            ]
        )
    return source.choice(("", " ")).join(source.choices(PIECES, k=source.randrange(0, 14)))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    source = random.Random(given.seed)
    store = SqliteStore(":memory:")
    memory = Memory(store)
    drafts = [
        EntityDraft(f"{name} {number}", "thing", ("tea and coffee", name))
        for number in range(50)
        for name in PIECES[:8]
    ]
    entities.create(memory, drafts, by="test")
    failures = answered = 0
    for _ in range(given.count):
        query = random_query(source)
        try:
            answered += bool(full_text(memory, query).entities)
        except PolymniaError as exc:
            failures += 1
            print(f"{query!r}: {exc}")
    print(f"{given.count} queries: {failures} failed, {answered} found something")
    store.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
