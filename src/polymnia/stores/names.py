"""The names that workspaces may have."""

import re
import unicodedata

from polymnia.errors import BadInput
from polymnia.search.terms import fold

MAX_NAME_LENGTH = 100
_PUNCTUATION = "-_."
_BETWEEN = re.compile(r"[^\w]+")


def check_name(name: str) -> None:
    """Raise BadInput, with a name that is allowed, if this one is not."""
    if len(name) > MAX_NAME_LENGTH:
        raise BadInput(f"the name has {len(name)} characters: {MAX_NAME_LENGTH} are allowed")
    if not _is_name(name):
        example = _BETWEEN.sub("-", name).strip("-_").lower() or "my-project"
        raise BadInput(
            f"{name!r} cannot be a name: use letters, digits, '-', '_' and '.', "
            f"beginning with a letter or digit, for example {example!r}"
        )


def same_name(first: str, second: str) -> bool:
    """Return True if people, or some file systems, could not tell the names apart."""
    return fold(first) == fold(second)


def _is_name(name: str) -> bool:
    """Return True for a letter or digit followed by letters, digits, marks and punctuation.

    So a name that is used as a path is never a hidden file, an option or a parent directory.
    """
    return name[:1].isalnum() and not name.endswith(".") and all(map(_is_allowed, name))


def _is_allowed(character: str) -> bool:
    return (
        character.isalnum()
        or character in _PUNCTUATION
        or unicodedata.category(character).startswith("M")
    )
