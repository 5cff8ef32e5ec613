"""What a workspace may be called."""

import re
import unicodedata

from polymnia.errors import BadInput
from polymnia.search.text import fold

LONGEST = 100
_PUNCTUATION = "-_."
_BETWEEN = re.compile(r"[^\w]+")


def check_name(name: str) -> None:
    """Raises BadInput, with a name that would do, when this one does not."""
    if len(name) > LONGEST:
        raise BadInput(f"a name may have {LONGEST} characters at most; this one has {len(name)}")
    if not _is_name(name):
        example = _BETWEEN.sub("-", name).strip("-_").lower() or "my-project"
        raise BadInput(
            f"{name!r} cannot be a name: use letters, digits, '-', '_' and '.', beginning with a letter or digit, "
            f"for example {example!r}"
        )


def same_name(first: str, second: str) -> bool:
    """Whether people, and some file systems, would take one for the other."""
    return fold(first) == fold(second)


def _is_name(name: str) -> bool:
    """Return True for a letter or digit followed by letters, digits, combining marks and punctuation.

    So a name is never a hidden file, an option or a way out of a directory, should it become a path.
    """
    return name[:1].isalnum() and not name.endswith(".") and all(map(_is_allowed, name))


def _is_allowed(character: str) -> bool:
    return character.isalnum() or character in _PUNCTUATION or unicodedata.category(character).startswith("M")
