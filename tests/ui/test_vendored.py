"""The scripts of other projects are the ones that were published."""

from hashlib import sha256

import pytest

from docs.vendor import FILES, STATIC, VendoredFile


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.target)
def test_a_vendored_file_is_the_published_one(file: VendoredFile) -> None:
    assert sha256((STATIC / file.target).read_bytes()).hexdigest() == file.sha256


def test_every_vendored_file_is_in_the_table() -> None:
    present = {f"vendor/{path.name}" for path in (STATIC / "vendor").iterdir()}
    assert present == {file.target for file in FILES if file.target.startswith("vendor/")}
