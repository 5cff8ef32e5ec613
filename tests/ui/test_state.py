"""Saved questions and dismissed findings, in a file or a database."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from polymnia.errors import StoreDamaged, StoreTooNew
from polymnia.stores.open import open_catalogue, open_web_state
from polymnia.web.state import MAX_QUESTIONS, SavedQuestion, SharedState, SiteState


def test_what_is_kept_is_there_for_the_next_server(tmp_path: Path) -> None:
    path = tmp_path / "memory.db.web"
    with SiteState(path).edit("harbour") as state:
        state.questions.append(SavedQuestion("who", "Ann", place=3))
        state.dismissed.append(["orphans", "Ann"])
    found = SiteState(path).read("harbour")
    assert (found.questions, found.dismissed) == (
        [SavedQuestion("who", "Ann", place=3)],
        [["orphans", "Ann"]],
    )
    assert SiteState(path).read("other").questions == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_change_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "memory.db.web")
    with pytest.raises(ValueError, match="stop"), state.edit("harbour") as parts:
        parts.dismissed.append(["orphans", "Ann"])
        raise ValueError("stop")
    assert state.read("harbour").dismissed == []


def test_the_oldest_questions_make_room(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "memory.db.web")
    with state.edit("harbour") as parts:
        parts.questions += [
            SavedQuestion(str(number), "Ann") for number in range(MAX_QUESTIONS + 5)
        ]
    assert state.read("harbour").questions[0].question == "5"


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
            state.questions.append(SavedQuestion("who", "Ann", place=3))
        with two.edit("harbour") as state:
            state.dismissed.append(["orphans", "Ann"])
        kept = one.read("harbour")
        assert (kept.questions, kept.dismissed) == (
            [SavedQuestion("who", "Ann", place=3)],
            [["orphans", "Ann"]],
        )
        assert two.read("other").questions == []
        catalogue.delete("harbour")
        catalogue.create("harbour")
        assert one.read("harbour").questions == []
    catalogue.close()


@contextmanager
def shared_state(url: str) -> Iterator[SharedState]:
    """Yield the state as a server has it."""
    store = open_web_state(url)
    assert store is not None
    with closing(store):
        yield SharedState(store)
