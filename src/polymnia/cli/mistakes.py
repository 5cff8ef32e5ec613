"""Explain wrong arguments, and suggest similar words."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_CHOICE = re.compile(
    r"(?P<where>.*?)invalid choice: '?(?P<given>[^'(]*?)'? \((?:.*?)choose from (?P<choices>.*)\)$"
)
_MIN_SIMILARITY = 0.6


def explain(message: str) -> str:
    """Return argparse's message, with a suggestion if a word is not one of the possible ones."""
    found = _CHOICE.match(message)
    if found is None:
        return message
    choices = re.findall(r"[\w.-]+", found["choices"])
    where = found["where"].removeprefix("argument ")
    return f"{where}{found['given']!r} is not one of {', '.join(choices)}{suggest(found['given'], choices)}"


def suggest(word: str, words: Iterable[str]) -> str:
    """Return a question that names the most similar words, to put after a sentence; empty if there are none."""
    near = get_close_matches(word, list(words), 2, _MIN_SIMILARITY)
    return f"; did you mean {' or '.join(near)}?" if near else ""
