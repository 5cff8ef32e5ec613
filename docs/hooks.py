"""MkDocs hooks.

Fill in the parts of the navigation that are made from code, and link what is outside docs/.
"""

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
_LINK = re.compile(r"\]\((?P<target>(?![a-z]+:)[^)#\s]+)(?P<anchor>#[^)]*)?\)")
# Sections of the navigation that list a directory.
_DIRECTORIES = {
    "Clients": "clients",
    "Dialects": "dialects",
    "Formats": "formats",
    "Decisions": "decisions",
}


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    nav = _fill(config.nav)
    rest = [path.name for path in sorted(DOCS.glob("*.md")) if f"'{path.name}'" not in str(nav)]
    config.nav = [*nav, {"More": rest}] if rest else nav
    return config


def _fill(nav: Any) -> Any:
    if isinstance(nav, list):
        return [_fill(entry) for entry in nav]
    if isinstance(nav, dict):
        return {
            name: _pages(_DIRECTORIES[name]) if name in _DIRECTORIES else _fill(nav[name])
            for name in nav
        }
    return nav


def _pages(directory: str) -> list[str]:
    """Return the pages of a directory, its index first."""
    names = sorted(path.name for path in (DOCS / directory).glob("*.md"))
    return [f"{directory}/{name}" for name in sorted(names, key=lambda name: name != "index.md")]


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Turn links to files of the repository that are not part of the site into links to the
    repository.
    """
    here = posixpath.dirname(page.file.src_uri)
    base = f"{config.repo_url}/blob/main"

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", here, found["target"]))
        inside = path.startswith("docs/") and (path.endswith((".md", ".svg", ".png")))
        return found[0] if inside else f"]({base}/{path}{found['anchor'] or ''})"

    return _LINK.sub(link, markdown)
