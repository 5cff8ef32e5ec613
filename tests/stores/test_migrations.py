"""The numbers of the migrations, which a database records."""

from pathlib import Path

import pytest

import polymnia.stores
from polymnia.stores.sql import load_migrations


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "directory"])
def test_migrations_are_numbered_without_a_gap_or_a_repeat(kind: str) -> None:
    package = Path(polymnia.stores.__file__).parent / kind
    numbers = [number for number, _ in load_migrations(package)]
    assert numbers == list(range(1, len(numbers) + 1))
