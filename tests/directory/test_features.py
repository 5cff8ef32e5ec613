"""Workspaces in a directory can do what a single store can.

Change feed, search by meaning, sessions that end.
"""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Queue

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia.dialects.base import ServerRules
from polymnia.dialects.vault import make_dialect
from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic import indexer
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.engine.workspaces import DEFAULT, Workspaces, open_workspaces
from polymnia.errors import StoreError
from polymnia.mcp.server import Server
from polymnia.model import Change, EntityDraft, NoteScope
from polymnia.stores.directory.catalogue import DirectoryCatalogue
from polymnia.stores.sqlite.store import SqliteStore
from tests.directory.directories import ME, names_in, on_disk, opened, write
from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

SESSION = NoteScope("s", "ann")
PROCESS = """
import sys
from polymnia.engine.graph import entities
from polymnia.engine import notes
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft, Note, NoteScope

memory = open_workspaces(sys.argv[1]).memory("alpha")
for line in sys.stdin:
    if line == "note\\n":
        note = Note("key", "private", (), NoteScope("s", "ann"))
        notes.commit(memory, note, by="other", member="them")
    else:
        entities.create(memory, [EntityDraft(line.strip(), "thing")], by="other")
    print("done", flush=True)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    workspaces = opened(tmp_path / "data")
    for name in (DEFAULT, "alpha", "beta"):
        workspaces.create(name)
    workspaces.close()
    return tmp_path / "data"


@pytest.fixture
def other(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run another process that writes the entities it is sent to `alpha`."""
    command = [sys.executable, "-c", PROCESS, f"{directory}/"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


@pytest.mark.parametrize("is_open", [True, False])
def test_changes_by_other_processes_are_followed(
    directory: Path, other: "subprocess.Popen[str]", *, is_open: bool
) -> None:
    workspaces = opened(directory)
    if is_open:
        workspaces.memory("alpha")
    heard: Queue[tuple[str, Change]] = Queue()
    wanted = threading.Event()
    wanted.set()
    workspaces.follow(
        lambda name, change: heard.put((name, change)), wanted.is_set, None if is_open else "alpha"
    )
    write(workspaces.memory("beta"), "own")
    tell(other, "theirs")
    name, change = heard.get(timeout=TIMEOUT_S)
    assert (name, change.actor, [entity.name for entity in change.after.entities]) == (
        "alpha",
        "other",
        ["theirs"],
    )
    assert heard.empty()
    wanted.clear()
    workspaces.close()


class Embedder(BagEmbedder):
    """The bag of words, with an event that is set when it has embedded something."""

    def __init__(self) -> None:
        super().__init__()
        self.has_embedded = threading.Event()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
        if not asking:
            self.has_embedded.set()
        return super().embed(texts, asking=asking)


def test_every_workspace_is_embedded_and_searched_by_meaning(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "INDEX_DELAY_S", 0)
    embedder = Embedder()
    meaning = Meaning(SharedEmbedder("bag", lambda url: embedder))
    workspaces = Workspaces(DirectoryCatalogue(str(directory)), meaning=meaning)
    memory = workspaces.memory("alpha")
    drafts = [
        EntityDraft("Ann", "person", ("has a puppy",)),
        EntityDraft("Ben", "person", ("has a boat",)),
    ]
    entities.create(memory, drafts, by=ME)
    assert embedder.has_embedded.wait(TIMEOUT_S)
    meaning.index(memory.store)  # wait for the batch that is being embedded
    found = recall(memory, "who has a dog", timeout=TIMEOUT_S)
    assert (found.note, found.hits[0].passage.text) == ("", "has a puppy")
    with memory.reading() as read:
        assert read.vectors.coverage(read.vectors.models()[0].number) == (2, 2)
    del memory
    workspaces.close()


def vault(workspaces: Workspaces, *, persist: bool = False) -> Server:
    server = Server(
        make_dialect(ServerRules(persist_sessions=persist)), workspaces, workspace=DEFAULT
    )
    server.start()
    return server


def test_session_notes_of_a_killed_server_are_gone_in_every_workspace(
    directory: Path, other: "subprocess.Popen[str]"
) -> None:
    tell(other, "note")
    workspaces = opened(directory)
    vault(workspaces)
    assert [note.content for note in notes.page(workspaces.memory("alpha"), SESSION)] == [
        "private"
    ]  # it still runs
    workspaces.close()
    other.kill()
    other.wait()
    workspaces = opened(directory)
    vault(workspaces)
    assert notes.page(workspaces.memory("alpha"), SESSION) == []
    workspaces.close()
    assert [path for path in on_disk(directory) if "-server-" in path] == []


def test_persistent_session_notes_survive(directory: Path, other: "subprocess.Popen[str]") -> None:
    tell(other, "note")
    other.kill()
    other.wait()
    workspaces = opened(directory)
    vault(workspaces, persist=True)
    assert [note.content for note in notes.page(workspaces.memory("alpha"), SESSION)] == ["private"]
    workspaces.close()


def test_a_name_that_passed_to_another_workspace_has_another_id(directory: Path) -> None:
    workspaces = opened(directory)
    first = workspaces.find("alpha").id
    workspaces.delete("alpha")
    workspaces.create("alpha")
    assert workspaces.find("alpha").id != first
    workspaces.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_everything_that_is_created_is_private(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        workspaces = open_workspaces(f"{tmp_path}/new/data/")
        workspaces.create("alpha")
        workspaces.create("beta")
        write(workspaces.memory("alpha"), "known")
        workspaces.archive("beta")
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
        workspaces.close()
    finally:
        os.umask(before)
    assert {path.name for path in modes if path.suffix.startswith(".db-")} != set()
    assert {
        path: oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    } == {}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_store_can_be_closed_while_threads_use_it(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "memory.db"))
    memory = Memory(store)
    write(memory, "known")
    failures: list[BaseException] = []
    under_way = threading.Barrier(5)

    def use(number: int) -> None:
        under_way.wait()
        try:
            for place in range(200):
                entities.open_named(memory, ["known"])
                write(memory, f"{number}-{place}")
        except StoreError:
            pass  # it was closed
        except BaseException as exc:  # noqa: BLE001  # whatever it is, the test fails with it
            failures.append(exc)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    under_way.wait()
    store.close()
    for thread in threads:
        thread.join()
    assert failures == []
    again = SqliteStore(str(tmp_path / "memory.db"))
    assert again.check() == []
    again.close()


def test_workspaces_can_be_closed_while_a_thread_reads(directory: Path) -> None:
    workspaces = opened(directory)
    write(workspaces.memory("alpha"), "known")
    memory = workspaces.memory("alpha")
    with memory.reading() as read:
        workspaces.close()
        assert [entity.name for entity in read.entities()] == ["known"]
    with pytest.raises(StoreError, match="was closed"):
        workspaces.memory("alpha")
    del memory
    again = opened(directory)
    assert names_in(again, "alpha") == ["known"]
    again.close()
