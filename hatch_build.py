"""Build hook: the README for package indexes, with links that work outside the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/polymnia/polymnia"
_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)(?P<path>[^)]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    """Fills in `readme`, which is dynamic in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text)}


def absolute_links(text: str) -> str:
    """Return the text with links into the repository made absolute."""
    return _RELATIVE_LINK.sub(lambda found: f"]({REPOSITORY}/blob/main/{found['path']})", text)
