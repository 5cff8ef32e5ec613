"""Faults at some steps of every store; `python -m tests.durability.faults` tries all of them."""

import pytest

from tests.durability.faults import FAULTS
from tests.durability.shim import run_with_shim, why_not
from tests.durability.subjects import NAMES

_SAMPLE = 4

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.mark.parametrize("kind", NAMES)
def test_a_fault_at_any_call_loses_nothing_and_leaves_nothing(kind: str) -> None:
    result = run_with_shim(
        "tests.durability.faults", ["--store", kind, "--sample", str(_SAMPLE), "--seed", "7"]
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("0 broken promises") == len(FAULTS)
