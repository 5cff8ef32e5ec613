"""What a query means to a full-text index: an expression of its own syntax, or the words in it."""

import re

# More words than anybody asks with; each costs a look into the index.
_MOST_WORDS = 100
_WORD = re.compile(r"[^\W_]+")
_EVERYTHING = ("", "*")


def wants_everything(query: str) -> bool:
    """Whether the query names nothing at all."""
    return query.strip() in _EVERYTHING


def expressions(query: str) -> list[str]:
    """What to ask the index, one after the other until it understands: the query as it is, then any of its words."""
    words = list(dict.fromkeys(_WORD.findall(query)))[:_MOST_WORDS]
    if not words:
        return []
    return [query.replace("\x00", " "), " OR ".join([f'"{word}"' for word in words])]
