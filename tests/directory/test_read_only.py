"""A read-only data directory.

Nothing is created, migrated or replaced, and no write permission is needed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.workspaces import Workspaces, open_workspaces
from polymnia.errors import StoreBusy, StoreError, StoreForeign, WorkspaceNotFound
from polymnia.stores import open_catalogue
from tests.directory.directories import names_in, opened, snapshot, write
from tests.directory.earlier import earlier_directory
from tests.processes import TIMEOUT_S

WRITER = """
import sys
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft

workspaces = open_workspaces(sys.argv[1])
for name in sys.stdin:
    entities.create(workspaces.memory("alpha"), [EntityDraft(name.strip(), "thing")], by="writer")
    print("done", flush=True)
workspaces.close()
"""
# Another user may not be able to read Python's own files, so everything is imported before.
READER = """
import os, sys
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces

def look():
    workspaces = open_workspaces(sys.argv[1], read_only=True)
    names = [each.name for each in entities.read_all(workspaces.memory("alpha")).entities]
    print([each.name for each in workspaces.find_all()], names)
    workspaces.close()

look()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
look()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One workspace in use, and one archived, written by a process that has ended."""
    workspaces = opened(tmp_path / "data")
    for name in ("alpha", "beta"):
        workspaces.create(name)
        write(workspaces.memory(name), "known")
    workspaces.archive("beta")
    workspaces.close()
    return tmp_path / "data"


@pytest.fixture
def looking(directory: Path) -> Iterator[Workspaces]:
    workspaces = opened(directory, read_only=True)
    yield workspaces
    workspaces.close()


@contextmanager
def writer(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run another process that writes an entity for each name it is sent."""
    command = [sys.executable, "-c", WRITER, f"{directory}/"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def send(process: "subprocess.Popen[str]", name: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_reading_changes_no_byte_and_creates_no_file(directory: Path) -> None:
    before = snapshot(directory)
    looking = opened(directory, read_only=True)
    assert [workspace.name for workspace in looking.find_all()] == ["alpha", "beta"]
    assert names_in(looking, "alpha") == ["known"]
    assert looking.memory("alpha").store.check() == []
    looking.close()
    assert snapshot(directory) == before


def test_reading_beside_a_running_server_changes_nothing_and_sees_its_writes(
    directory: Path,
) -> None:
    with writer(directory) as process:
        send(process, "first")
        before = snapshot(directory)
        looking = opened(directory, read_only=True)
        assert names_in(looking, "alpha") == ["known", "first"]
        assert snapshot(directory) == before
        send(process, "second")
        assert names_in(looking, "alpha") == ["known", "first", "second"]
        looking.close()


def test_rows_that_a_killed_server_left_in_its_log_are_read(directory: Path) -> None:
    with writer(directory) as process:
        send(process, "first")
    before = snapshot(directory)
    assert any(name.endswith("-wal") for name in before)
    looking = opened(directory, read_only=True)
    assert names_in(looking, "alpha") == ["known", "first"]
    looking.close()
    assert snapshot(directory) == before


def test_a_server_that_starts_later_is_followed(looking: Workspaces, directory: Path) -> None:
    assert names_in(looking, "alpha") == ["known"]
    with writer(directory) as process:
        send(process, "first")
        assert names_in(looking, "alpha") == ["known", "first"]
    others = opened(directory)
    others.create("gamma")
    others.close()
    assert [workspace.name for workspace in looking.find_all()] == ["alpha", "beta", "gamma"]
    assert names_in(looking, "alpha") == ["known", "first"]


def test_reading_a_file_that_changes_meanwhile_is_an_error(
    looking: Workspaces, directory: Path
) -> None:
    memory = looking.memory("alpha")
    others = opened(directory)
    with pytest.raises(StoreBusy, match="try again"), memory.reading() as read:
        assert read.counts().entities == 1
        write(others.memory("alpha"), "new")
        others.close()  # brings the log into the file
    assert names_in(looking, "alpha") == ["known", "new"]


@pytest.mark.parametrize("change", ["create", "archive", "restore", "delete"])
def test_every_change_is_rejected(looking: Workspaces, directory: Path, change: str) -> None:
    before = snapshot(directory)
    with pytest.raises(StoreError, match="--read-only; nothing was changed"):
        getattr(looking, change)("new" if change == "create" else "alpha")
    with pytest.raises(StoreError):
        write(looking.memory("alpha"), "new")
    assert snapshot(directory) == before


def test_a_directory_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no memory"):
        open_catalogue(f"{tmp_path}/none/", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_an_earlier_program_is_not_converted(tmp_path: Path) -> None:
    earlier_directory(tmp_path / "data")
    before = snapshot(tmp_path / "data")
    looking = opened(tmp_path / "data", read_only=True)
    assert [workspace.name for workspace in looking.find_all()] == ["done", "work"]
    with pytest.raises(StoreForeign, match="once without --read-only"):
        looking.memory("work")
    with pytest.raises(WorkspaceNotFound):
        looking.memory("typo")
    looking.close()
    assert snapshot(tmp_path / "data") == before


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else"
)
def test_a_user_without_write_permission_can_read(directory: Path) -> None:
    with TemporaryDirectory() as place:  # other users can reach it
        theirs = Path(shutil.copytree(directory, Path(place) / "data"))
        for path in [Path(place), theirs, *theirs.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        before = snapshot(theirs)
        command = [sys.executable, "-c", READER, f"{theirs}/"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert (done.stderr, done.stdout) == ("", "['alpha', 'beta'] ['known']\n" * 2)
        assert snapshot(theirs) == before


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_directory_without_write_permission_can_be_read(directory: Path) -> None:
    folders = [directory, directory / "projects", directory / "archive"]
    for path in folders:
        path.chmod(0o500)
    try:
        looking = open_workspaces(f"{directory}/", read_only=True)
        assert [entity.name for entity in entities.read_all(looking.memory("alpha")).entities] == [
            "known"
        ]
        looking.close()
    finally:
        for path in folders:
            path.chmod(0o700)
