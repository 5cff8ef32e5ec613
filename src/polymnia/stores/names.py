"""The names that workspaces may have."""

import re
import unicodedata

from polymnia.errors import BadInput
from polymnia.search.terms import fold

MAX_NAME_LENGTH = 100


def check_name(name: str) -> None:
    """Raise BadInput, with a name that is allowed, if this one is not."""
    if len(name) > MAX_NAME_LENGTH:
        raise BadInput(f"the name has {len(name)} characters: {MAX_NAME_LENGTH} are allowed")
    # A name that is used as a path is never a hidden file, an option or a parent directory.
    is_allowed = name[:1].isalnum() and not name.endswith(".")
    for character in name:
        is_mark = unicodedata.category(character).startswith("M")
        is_allowed = is_allowed and (character.isalnum() or is_mark or character in "-_.")
    if not is_allowed:
        example = re.sub(r"[^\w]+", "-", name).strip("-_").lower() or "my-project"
        raise BadInput(
            f"{name!r} cannot be a name: use letters, digits, '-', '_' and '.', "
            f"beginning with a letter or digit, for example {example!r}"
        )


def same_name(first: str, second: str) -> bool:
    """Return True if people, or some file systems, could not tell the names apart."""
    return fold(first) == fold(second)
