"""The playground without a browser: signals, rankings, absences and saved questions."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from msgspec.json import decode

from polymnia.dialects.native.shapes import Recall
from tests.ui.client import Visitor, make_token
from tests.ui.pages import harbour

QUESTION = "who+moved+the+queue+off+Redis"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    directory = tmp_path_factory.mktemp("playground")
    with harbour(directory) as (running, _):
        yield running.port, directory


@pytest.fixture
def visitor(url: tuple[int, Path]) -> Visitor:
    return Visitor(url[0])


def test_without_a_question_the_page_says_what_to_do(visitor: Visitor) -> None:
    assert "Nothing was asked yet" in visitor.get("/ui/playground").words


def test_every_hit_has_its_signals_and_the_three_rankings(visitor: Visitor) -> None:
    shown = visitor.get(f"/ui/playground?q={QUESTION}")
    assert "billing-worker" in shown.words
    assert "Rank by words, by meaning, by both" in shown.words
    assert 'id="signals"' in shown.text
    assert "style=" not in shown.text


def test_a_filter_narrows_the_hits(visitor: Visitor) -> None:
    shown = visitor.get(f"/ui/playground?q={QUESTION}&type=person")
    signals = shown.text.split('id="signals"')[-1].split("</table>")[0]
    assert "billing-worker" not in signals


def test_the_copied_call_is_one_that_the_tool_takes(visitor: Visitor) -> None:
    shown = visitor.get(f"/ui/playground?q={QUESTION}&type=person&since=30d").text
    copied = re.search(r'id="recall-call">(.*?)</code>', shown)
    assert copied is not None
    call = decode(unescape(copied[1]), type=Recall)
    assert (call.query, call.types, call.since) == (
        "who moved the queue off Redis",
        ["person"],
        "30d",
    )


def test_why_not_answers_in_a_sentence(visitor: Visitor) -> None:
    ask = f"/ui/playground/why?q={QUESTION}&wanted="
    assert "is here, on rank 1." in visitor.get(f"{ask}billing-worker").words
    assert (
        "is kept out by the type in the filter"
        in visitor.get(f"{ask}billing-worker&type=person").words
    )
    assert "There is no entity nobody" in visitor.get(f"{ask}nobody").words
    assert "does not have the words" in visitor.get(f"{ask}small+pull+requests").words


def test_a_question_is_saved_asked_again_and_deleted(
    visitor: Visitor, url: tuple[int, Path]
) -> None:
    question = "who moved the queue off Redis"
    shown = visitor.post("/ui/playground/save", q=question, expected="billing-worker")
    assert "1 of 1 find what they should among the first 5" in shown.words
    assert (url[1] / "memory.db.web").stat().st_mode & 0o777 == 0o600
    visitor.post("/ui/playground/save", q="who likes tea", expected="Harbour API")
    shown = visitor.post("/ui/playground/run")
    assert "1 of 2 find what they should" in visitor.get("/ui/playground").words
    visitor.post("/ui/playground/delete", question="who likes tea")
    assert "1 of 1 find" in visitor.get("/ui/playground").words
    visitor.post("/ui/playground/delete", question=question)
    assert "None yet" in visitor.get("/ui/playground").words


def test_a_reader_sees_no_buttons_that_save(tmp_path: Path) -> None:
    with harbour(tmp_path) as (running, _):
        reader = Visitor(running.port)
        reader.log_in(make_token(str(tmp_path / "memory.db"), "reader", "read"))
        shown = reader.get(f"/ui/playground?q={QUESTION}")
        assert "billing-worker" in shown.words
        assert 'method="post"' not in shown.text.split("<main")[1]
        fields = {"form_token": shown.form_token, "q": "x", "expected": "y"}
        assert reader.post_raw("/ui/playground/save", fields, Origin=reader.origin).status == 403
