"""Load named SQL from the files of a package, and numbered migrations."""

import re
from functools import lru_cache
from pathlib import Path

_BLOCK = re.compile(
    r"^-- (name|fragment): (\w+)\n((?:(?!-- (?:name|fragment): ).*\n?)*)", re.MULTILINE
)


def load_queries(package: Path) -> dict[str, str]:
    """Return the statements of the package's `.sql` files by name."""
    queries: dict[str, str] = {}
    for file in sorted(package.glob("*.sql")):
        queries |= read_queries(file)
    return queries


def read_queries(file: Path) -> dict[str, str]:
    """Return the statements of a file by name.

    Comments after the name say why; the rest is one statement. A fragment is a part of several
    statements, which have its name in braces.
    """
    queries: dict[str, str] = {}
    fragments: dict[str, str] = {}
    for kind, name, body in _BLOCK.findall(file.read_text("utf-8")):
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        text = "\n".join(lines).strip().rstrip(";")
        for fragment, part in fragments.items():
            text = text.replace(f"{{{fragment}}}", part)
        if kind == "fragment":
            fragments[name] = text
        else:
            queries[name] = text
    return queries


@lru_cache(maxsize=8)
def load_migrations(package: Path) -> list[tuple[int, str]]:
    """Return the migrations in order: `0001_initial.sql` is (1, its text)."""
    files = sorted((package / "migrations").glob("*.sql"))
    return [(int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files]
