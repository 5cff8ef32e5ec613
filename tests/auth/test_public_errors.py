"""What remote clients read of an error: no files and no commands."""

from pathlib import Path

import pytest

from polymnia import errors
from polymnia.auth.authenticator import Authenticator
from polymnia.auth.tokens import file_tokens
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.errors import (
    BadInput,
    NotAdmitted,
    PolymniaError,
    StoreError,
    WorkspaceArchived,
    WorkspaceNotFound,
)
from polymnia.stores import open_store

STORE_ERRORS = [
    var for var in vars(errors).values() if isinstance(var, type) and issubclass(var, StoreError)
]


@pytest.mark.parametrize("kind", STORE_ERRORS)
def test_a_store_error_is_summarised_without_its_message(kind: type[StoreError]) -> None:
    error = kind("/srv/memory.db is damaged; run `polymnia doctor --store /srv/memory.db`")
    assert "/srv/memory.db" in str(error)
    assert "/" not in error.public
    assert "`" not in error.public


@pytest.mark.parametrize(
    "error",
    [
        WorkspaceNotFound("sales", "`polymnia workspace create sales --store /srv/data/` makes it"),
        WorkspaceArchived("sales"),
        BadInput("this store holds a single workspace", hint="use --store /srv/data/"),
    ],
)
def test_a_hint_is_for_whoever_runs_the_server(error: PolymniaError) -> None:
    assert str(error).startswith(f"{error.public}; ")
    assert "polymnia" not in error.public
    assert "--store" not in error.public


def test_a_client_without_a_token_is_not_told_how_to_create_one(tmp_path: Path) -> None:
    tokens = file_tokens(tmp_path / "memory.db.tokens")
    tokens.create("alice", can="read")
    with pytest.raises(NotAdmitted) as caught:
        Authenticator(tokens).admit(None)
    assert caught.value.public == "a token is required"


def test_a_store_of_one_workspace_does_not_tell_where_it_is(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "memory.jsonl"))
    with pytest.raises(BadInput) as caught:
        one_workspace(Memory(store)).create("sales")
    store.close()
    assert str(tmp_path) in str(caught.value)
    assert str(tmp_path) not in caught.value.public
