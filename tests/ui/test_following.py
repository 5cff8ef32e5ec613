"""Following the history: a page asks for the changes that it does not show yet."""

from collections.abc import Iterator

import pytest

from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.model import ChangeQuery, FactAddition
from tests.transports.running import Running
from tests.ui.client import Visitor
from tests.ui.pages import harbour


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Memory]]:
    with harbour(tmp_path_factory.mktemp("ui")) as both:
        yield both


def test_a_page_gets_the_changes_of_another_process_that_it_does_not_show(
    site: tuple[Running, Memory],
) -> None:
    running, memory = site
    visitor = Visitor(running.port)
    shown = visitor.get("/ui/history")
    last = int(shown.text.split('data-last="')[1].split('"')[0])
    for text in ("one", "two", "three"):
        addition = FactAddition("billing-worker", (text,))
        facts.add(memory, [addition], by="second", skip_repeats=True)
    rows = visitor.get(f"/ui/history?after={last}", HX_Request="true")
    assert rows.text.count("<li") == 3
    assert "<html" not in rows.text
    assert "second added a fact to billing-worker" in rows.words
    assert visitor.get(f"/ui/history?after={last + 3}", HX_Request="true").text.count("<li") == 0


def test_a_page_that_follows_with_filters_gets_only_what_they_select(
    site: tuple[Running, Memory],
) -> None:
    running, memory = site
    with memory.reading() as read:
        last = read.history.change_heads(ChangeQuery(limit=1))[0].id
    for name in ("billing-worker", "Mara Lindqvist"):
        addition = FactAddition(name, (f"a later fact of {name}",))
        facts.add(memory, [addition], by="third", skip_repeats=True)
    rows = Visitor(running.port).get(
        f"/ui/history?after={last}&name=Mara+Lindqvist", HX_Request="true"
    )
    assert rows.text.count("<li") == 1
    assert "billing-worker" not in rows.text
