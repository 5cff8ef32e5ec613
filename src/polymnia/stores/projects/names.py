"""What a workspace may be called."""

import re

from polymnia.errors import BadInput
from polymnia.search.text import fold

LONGEST = 100
# A letter or digit first: no hidden files, no options, no way out of a directory should it ever become a path.
_NAME = re.compile(r"[^\W_][\w.-]*")
_BETWEEN = re.compile(r"[^\w]+")


def check_name(name: str) -> None:
    """Raises BadInput, with a name that would do, when this one does not."""
    if len(name) > LONGEST:
        raise BadInput(f"a name may have {LONGEST} characters at most; this one has {len(name)}")
    if not _NAME.fullmatch(name) or name.endswith("."):
        example = _BETWEEN.sub("-", name).strip("-_").lower() or "my-project"
        raise BadInput(
            f"{name!r} cannot be a name: use letters, digits, '-', '_' and '.', beginning with a letter or digit, "
            f"for example {example!r}"
        )


def same_name(first: str, second: str) -> bool:
    """Whether people, and some file systems, would take one for the other."""
    return fold(first) == fold(second)
