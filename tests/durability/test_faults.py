"""A fault at some steps of the file stores; `python -m tests.durability.faults` tries all of them."""

from random import Random

import pytest

from tests.durability.faults import FAULTS, FILES, Case, count_calls, try_case

_CALLS_TO_TRY = 8


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("file", FILES)
def test_a_fault_at_any_call_loses_nothing_and_leaves_nothing(file: str, fault: str) -> None:
    calls = range(1, count_calls(file) + 1)
    for call in Random(f"{file} {fault}").sample(calls, _CALLS_TO_TRY):
        try_case(Case(file, fault, call))


def test_the_script_makes_the_same_calls_every_time() -> None:
    for file in FILES:
        assert count_calls(file) == count_calls(file) > 50
