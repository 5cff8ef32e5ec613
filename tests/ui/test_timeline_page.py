"""The calendar of what was said when."""

from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.model import FactAddition
from tests.ui.client import Visitor

# Noon of 14 May 2024 in UTC.
MAY = 1_715_688_000_000_000


def test_a_day_has_the_facts_that_were_said_then(visitor: Visitor, memory: Memory) -> None:
    drafts = [FactAddition("Harbour API", ("moved to Bergen",), valid_at=MAY)]
    facts.add(memory, drafts, by="codex", skip_repeats=False)
    shown = visitor.get("/ui/timeline")
    assert "Timeline" in shown.words
    assert "moved to Bergen" not in shown.words  # it starts with the last day
    shown = visitor.get("/ui/timeline?day=2024-05-14")
    assert "May 2024 1 fact" in shown.words
    assert "moved to Bergen" in shown.words
    assert "Later" in shown.words
    assert "Nothing was said on this day" in visitor.get("/ui/timeline?day=2024-05-15").words


def test_a_day_that_is_none_is_refused(visitor: Visitor) -> None:
    for day in ("soon", "9999-12-31", "2024-13-01"):
        assert visitor.get(f"/ui/timeline?day={day}").status == 400
