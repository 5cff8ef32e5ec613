"""How well a hit answers, in absolute terms."""

import pytest

from polymnia.model import Hit, Passage, Signals
from polymnia.search.hits import Fit, fit_of

PASSAGE = Passage("billing-worker", "service", 1, "moved its queue")


@pytest.mark.parametrize(
    ("hit", "fit"),
    [
        (Hit(PASSAGE, 0.1, "name", Signals()), "strong"),
        (Hit(PASSAGE, 9.0, "all words", Signals()), "strong"),
        (Hit(PASSAGE, 6.0, "any word", Signals(), is_weak=True), "good"),
        (Hit(PASSAGE, 3.0, "all words", Signals(), share=1.0), "good"),
        (Hit(PASSAGE, 4.5, "context", Signals(), is_weak=True), "fair"),
        (Hit(PASSAGE, 3.0, "meaning", Signals()), "fair"),
        (Hit(PASSAGE, 3.0, "any word", Signals(), share=0.5), "fair"),
        (Hit(PASSAGE, 3.0, "meaning", Signals(), is_weak=True), "weak"),
    ],
)
def test_a_fit_does_not_depend_on_other_hits(hit: Hit, fit: Fit) -> None:
    assert fit_of(hit) == fit
