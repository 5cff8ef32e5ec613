"""Commands that look at a memory make none: a path with nothing at it is most likely a typing mistake."""

from pathlib import Path

from polymnia.errors import BadInput
from polymnia.stores import store_kind


def refuse_missing(url: str) -> None:
    """Raises BadInput when there is no file behind the URL."""
    kind, path = store_kind(url)
    if kind == "directory":
        if not (Path(path) / "_meta.db").is_file():
            raise BadInput(f"there are no workspaces in {path}")
        return
    if kind != "memory" and path != ":memory:" and not Path(path).is_file():
        raise BadInput(f"there is no file {path}")
