"""How well a hit answers, in absolute terms."""

import pytest

from polymnia.model import Hit, Passage, Signals
from polymnia.search.hits import Fit, MatchQuality, fit_of

PASSAGE = Passage("billing-worker", "service", 1, "moved its queue")


@pytest.mark.parametrize(
    ("hit", "match", "fit"),
    [
        (Hit(PASSAGE, 0.1, "name", Signals()), "none", "strong"),
        (Hit(PASSAGE, 9.0, "all words", Signals()), "clear", "strong"),
        (Hit(PASSAGE, 9.0, "all words", Signals()), "none", "weak"),
        (Hit(PASSAGE, 6.0, "any word", Signals(), is_weak=True), "clear", "good"),
        (Hit(PASSAGE, 3.0, "all words", Signals(), share=1.0), "clear", "good"),
        (Hit(PASSAGE, 4.5, "context", Signals(), is_weak=True), "clear", "fair"),
        (Hit(PASSAGE, 3.0, "meaning", Signals()), "clear", "fair"),
        (Hit(PASSAGE, 3.0, "meaning", Signals()), "perhaps", "weak"),
        (Hit(PASSAGE, 3.0, "any word", Signals(), share=0.5), "perhaps", "fair"),
        (Hit(PASSAGE, 3.0, "meaning", Signals(), is_weak=True), "clear", "weak"),
    ],
)
def test_a_fit_does_not_depend_on_other_hits(hit: Hit, match: MatchQuality, fit: Fit) -> None:
    assert fit_of(hit, match) == fit
