"""The table of entities, actions on several, and a search over all workspaces."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from polymnia.engine.graph import entities, facts
from polymnia.engine.graph.entities import open_named
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft, FactAddition
from tests.ui.client import Shown, Visitor, make_token, serve
from tests.ui.pages import harbour


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Visitor, Memory]]:
    with harbour(tmp_path_factory.mktemp("entities")) as (running, memory):
        yield Visitor(running.port), memory


def test_the_table_sorts(place: tuple[Visitor, Memory]) -> None:
    visitor, _ = place
    words = visitor.get("/ui/entities?sort=name").words
    assert words.index("billing-worker") < words.index("Harbour API") < words.index("mara.lindqv")
    words = visitor.get("/ui/entities?sort=name&down=1").words
    assert words.index("billing-worker") > words.index("Harbour API")
    assert visitor.get("/ui/entities?sort=secret").status == 400


def test_several_entities_get_a_type_or_are_merged(place: tuple[Visitor, Memory]) -> None:
    visitor, memory = place
    names = ("Mara Lindqvist", "mara.lindqvist")
    picks = [("pick", f"entity\t0\t{name}") for name in names]
    assert "will change" in _post(visitor, "/ui/selection", [*picks, ("action", "type")]).words
    done = _post(visitor, "/ui/selection/apply", [*picks, ("action", "type"), ("type", "human")])
    assert "Changed the type of 2 entities" in done.words
    assert {entity.type for entity in open_named(memory, names).entities} == {"human"}
    merge = [*picks, ("action", "merge"), ("keep", "Mara Lindqvist")]
    assert (
        "Merged 1 entity into Mara Lindqvist" in _post(visitor, "/ui/selection/apply", merge).words
    )
    assert len(open_named(memory, names).entities) == 1
    assert _post(visitor, "/ui/selection/apply", [*picks, ("action", "drop")]).status == 400


def test_entities_and_facts_move_to_another_workspace(tmp_path: Path) -> None:
    url = f"{tmp_path}/"
    with closing(open_workspaces(url)) as workspaces:
        for name in ("harbour", "payroll", "secret"):
            workspaces.create(name)
        drafts = [EntityDraft("Mara", "person", ("sails", "earns well")), EntityDraft("Ann", "x")]
        entities.create(workspaces.memory("harbour"), drafts, by="codex")
    token = make_token(url, "limited", "write", ("harbour", "payroll"))
    with serve(url) as running:
        visitor = Visitor(running.port)
        visitor.log_in(token)
        picks = [("pick", "fact\t2\tMara"), ("pick", "entity\t0\tAnn")]
        fields = [*picks, ("action", "relocate"), ("w", "harbour")]
        shown = _post(visitor, "/ui/selection", fields)
        assert "To the workspace" in shown.words
        assert "secret" not in shown.words
        foreign = [*fields, ("workspace", "secret")]
        assert _post(visitor, "/ui/selection/apply", foreign).status == 403
        done = _post(visitor, "/ui/selection/apply", [*fields, ("workspace", "payroll")])
        assert "Moved 2 things to payroll" in done.words
        assert "earns well" in visitor.get("/ui/entity?name=Mara&w=payroll").words
        assert "earns well" not in _facts(visitor.get("/ui/entity?name=Mara&w=harbour"))
        assert visitor.get("/ui/entity?name=Ann&w=payroll").status == 200


def _facts(shown: Shown) -> str:
    return shown.words.split("History")[0]


def _post(visitor: Visitor, path: str, fields: list[tuple[str, str]]) -> Shown:
    token = visitor.get("/ui/more").form_token
    shown = visitor.post_raw(path, [("form_token", token), *fields], Origin=visitor.origin)
    return visitor.get(shown.headers["location"]) if shown.status == 303 else shown


def test_a_search_over_all_workspaces_shows_only_what_a_token_may_see(tmp_path: Path) -> None:
    store = f"{tmp_path}/data/"
    with closing(open_workspaces(store)) as workspaces:
        for name in ("shop", "lab", "secret"):
            workspaces.create(name)
            memory = workspaces.memory(name)
            entities.create(memory, [EntityDraft(f"{name} kettle", "tool")], by="codex")
            turns = tuple(f"turn {number} of {name}" for number in range(3))
            draft = FactAddition(f"{name} kettle", (*turns, "kettle boils"), source="chat 1")
            facts.add(memory, [draft], by="codex", skip_repeats=False)
    with serve(store) as running:
        visitor = Visitor(running.port)
        visitor.log_in(make_token(store, "admin", "admin"))
        limited = Visitor(running.port)
        limited.log_in(make_token(store, "limited", "write", ("shop", "lab")))
        shown = visitor.get("/ui/?q=kettle&all=1")
        assert all(f"{name} kettle" in shown.words for name in ("shop", "lab", "secret"))
        words = limited.get("/ui/?q=kettle&all=1").words
        assert "shop kettle" in words and "lab kettle" in words
        assert "secret" not in words
        assert "Nothing good found" in limited.get("/ui/?q=zzqqxx&all=1").words
        assert "neighbouring turn" in visitor.get("/ui/?q=kettle+boils&w=shop").words
        forbidden = [
            "why?q=kettle&wanted=secret+kettle",
            "graph",
            "entities",
            "entities?sort=said",
            "new",
            "curation",
            "entity?name=x&at=7d",
        ]
        for path in forbidden:
            joint = "&" if "?" in path else "?"
            shown = limited.get(f"/ui/{path}{joint}w=secret")
            assert "secret kettle" not in shown.text, path
            assert shown.status == 403, path
