"""Load named SQL from the files of a package, and numbered migrations."""

from functools import lru_cache
from pathlib import Path

_NAME = "-- name: "


def load_queries(package: Path) -> dict[str, str]:
    """Return the statements of the package's `.sql` files by name."""
    return {
        name: text
        for file in sorted(package.glob("*.sql"))
        for name, text in read_queries(file).items()
    }


def read_queries(file: Path) -> dict[str, str]:
    """Return the statements of a file by name. Comments after the name say why; the rest is one statement."""
    queries: dict[str, str] = {}
    for block in file.read_text("utf-8").split(_NAME)[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        queries[name.strip()] = "\n".join(lines).strip().rstrip(";")
    return queries


@lru_cache(maxsize=8)
def load_migrations(package: Path) -> list[tuple[int, str]]:
    """Return the migrations in order: `0001_initial.sql` is (1, its text)."""
    files = sorted((package / "migrations").glob("*.sql"))
    return [(int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files]
