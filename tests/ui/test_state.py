"""Dismissed findings, in a file or a database."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from polymnia.errors import StoreDamaged, StoreTooNew
from polymnia.stores.open import open_catalogue, open_web_state
from polymnia.web.findings import MAX_DISMISSED, SharedState, SiteState


def test_what_is_kept_is_there_for_the_next_server(tmp_path: Path) -> None:
    path = tmp_path / "memory.db.web"
    with SiteState(path).edit("harbour") as state:
        state.dismissed.append(["orphans", "Ann"])
    assert SiteState(path).read("harbour").dismissed == [["orphans", "Ann"]]
    assert SiteState(path).read("other").dismissed == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_change_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "memory.db.web")
    with pytest.raises(ValueError, match="stop"), state.edit("harbour") as parts:
        parts.dismissed.append(["orphans", "Ann"])
        raise ValueError("stop")
    assert state.read("harbour").dismissed == []


def test_the_oldest_findings_make_room(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "memory.db.web")
    with state.edit("harbour") as parts:
        parts.dismissed += [["orphans", str(number)] for number in range(MAX_DISMISSED + 5)]
    assert state.read("harbour").dismissed[0] == ["orphans", "5"]


def test_saved_questions_of_an_earlier_version_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "memory.db.web"
    question = '{"question":"who","expected":"Ann","place":3}'
    path.write_text(
        f'{{"version":1,"workspaces":{{"harbour":{{"questions":[{question}],"dismissed":[]}}}}}}'
    )
    with SiteState(path).edit("harbour") as state:
        state.dismissed.append(["orphans", "Ann"])
    assert question in re.sub(r"\s+", "", path.read_text())


def test_without_a_path_it_is_kept_in_memory() -> None:
    state = SiteState(None)
    with state.edit("harbour") as parts:
        parts.dismissed.append(["orphans", "Ann"])
    assert state.read("harbour").dismissed == [["orphans", "Ann"]]


@pytest.mark.parametrize(
    ("text", "error"),
    [("[]", StoreDamaged), ("{", StoreDamaged), ('{"version": 9, "workspaces": {}}', StoreTooNew)],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, text: str, error: type[Exception]
) -> None:
    path = tmp_path / "memory.db.web"
    path.write_text(text)
    with pytest.raises(error, match=r"memory\.db\.web"):
        SiteState(path).read("harbour")


def test_what_one_server_keeps_in_a_database_is_there_for_the_others(
    postgres_database: str,
) -> None:
    catalogue = open_catalogue(postgres_database)
    assert catalogue is not None
    for name in ("harbour", "other"):
        catalogue.create(name)
    with shared_state(postgres_database) as one, shared_state(postgres_database) as two:
        with one.edit("harbour") as state:
            state.dismissed.append(["gaps", "Ann", "Bob"])
        with two.edit("harbour") as state:
            state.dismissed.append(["orphans", "Ann"])
        assert one.read("harbour").dismissed == [["gaps", "Ann", "Bob"], ["orphans", "Ann"]]
        assert two.read("other").dismissed == []
        catalogue.delete("harbour")
        catalogue.create("harbour")
        assert one.read("harbour").dismissed == []
    catalogue.close()


@contextmanager
def shared_state(url: str) -> Iterator[SharedState]:
    """Yield the state as a server has it."""
    store = open_web_state(url)
    assert store is not None
    with closing(store):
        yield SharedState(store)
