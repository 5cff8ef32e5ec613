"""An entity as it was, without a browser."""

from pathlib import Path

from polymnia.engine.graph import facts
from polymnia.engine.history.versions import versions
from polymnia.model import FactAddition
from tests.ui.client import Visitor, make_token
from tests.ui.pages import harbour


def test_moments_of_an_entity(tmp_path: Path) -> None:
    with harbour(tmp_path) as (running, memory):
        visitor = Visitor(running.port)
        visitor.post("/ui/entity/observe", name="billing-worker", text="has a new owner")
        addition = FactAddition("billing-worker", ("is paged at night",))
        facts.add(memory, [addition], by="codex", skip_repeats=True)
        at = versions(memory, "billing-worker")[0].at
        shown = visitor.get(f"/ui/entity?name=billing-worker&at={at}")
        assert "came later has a new owner" in shown.words
        assert "codex , add facts" in shown.words  # the tool says observations
        assert "has a new owner" not in visitor.get(f"{_plain(at)}").text.split("<main")[1]
        assert visitor.get("/ui/entity?name=billing-worker&at=2001-01-01").status == 404
        assert visitor.get("/ui/entity?name=billing-worker&at=soon").status == 400
        reader = Visitor(running.port)
        reader.log_in(make_token(str(tmp_path / "memory.db"), "reader", "read"))
        assert reader.get(f"/ui/entity?name=billing-worker&at={at}").status == 200


def _plain(at: int) -> str:
    return f"/ui/entity?name=billing-worker&at={at}&show=plain"
