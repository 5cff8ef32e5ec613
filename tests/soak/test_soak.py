"""A short soak; `python -m tests.soak --hours N` is the long one."""

import pytest

from tests.soak.__main__ import soak
from tests.soak.costs import Sample, can_measure, measure_growth


@pytest.mark.skipif(not can_measure(), reason="only Linux shows what a process uses")
def test_a_loaded_server_answers_rightly_and_leaks_nothing() -> None:
    samples, problems = soak(30, 3)
    assert problems == []
    assert samples[-1].calls > 0
    assert measure_growth(samples).problems() == []


def test_a_leak_is_a_problem() -> None:
    leak = [Sample(n * 1000, n << 20, 20 + n, 10 + n, 0.01) for n in range(1, 61)]
    assert len(measure_growth(leak).problems()) == 3


def test_a_server_that_stays_as_it_is_has_no_problem() -> None:
    steady = [Sample(n * 1000, 100 << 20, 30, 12, 0.01) for n in range(1, 61)]
    growth = measure_growth(steady)
    assert growth.problems() == []
    assert growth.latency_ratio == 1.0
