"""Full disks and disks that do not confirm writes.

Refused with a sentence, and nothing acknowledged is lost.
"""

import builtins
import errno
import io
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from polymnia.engine.memory import Memory
from polymnia.errors import StoreError, StoreStopped
from tests.durability.disks import (
    Disk,
    LimitedFiles,
    Narrow,
    PythonDisk,
    SmallDevice,
    SqliteDisk,
    mount_small_device,
    unmount,
)
from tests.durability.graphs import create, names, names_at, opened, problems_at, read
from tests.durability.servers import ServerProcess, creation, names_in, text_of, tool_call
from tests.processes import polymnia_command

_READ = tool_call("read_graph", {})
_LARGE = creation("large", ["x" * 30_000 + str(number) for number in range(4)])


@pytest.fixture(params=["files that may not grow", "a full device"])
def narrow(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Iterator[Narrow]:
    if request.param == "files that may not grow":
        if not hasattr(pytest.importorskip("resource"), "prlimit"):
            pytest.skip("this system cannot limit the files of another process")
        yield LimitedFiles(path)
        return
    device = tmp_path / "device"
    device.mkdir()
    if reason := mount_small_device(device):
        pytest.skip(reason)
    try:
        yield SmallDevice(device / path.name)
    finally:
        unmount(device)


@pytest.fixture
def disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk of the store at `path`. It works until a test makes it fail."""
    if path.suffix != ".db":
        yield PythonDisk(monkeypatch)
        return
    disk = SqliteDisk()
    try:
        yield disk
    finally:
        disk.unregister()


def test_a_write_without_room_is_refused_and_changes_nothing(narrow: Narrow) -> None:
    with ServerProcess(narrow.path) as server:
        server.ask(creation("before", ["a fact"]))
        usual = set(narrow.path.parent.iterdir())
        narrow.squeeze(server)
        refused = server.ask(_LARGE)
        assert refused["isError"]
        assert narrow.path.name in text_of(refused)
        assert "nothing was changed" in text_of(refused)
        assert names_in(server.ask(_READ)) == ["before"]
        narrow.relieve(server)
        assert set(narrow.path.parent.iterdir()) == usual
        server.kill()
    assert problems_at(narrow.path) == []
    with opened(narrow.path) as memory:
        (before,) = read(memory).entities
    assert (before.name, before.texts) == ("before", ("a fact",))


def test_writes_go_on_when_there_is_room_again(narrow: Narrow) -> None:
    with ServerProcess(narrow.path) as server:
        server.ask(creation("before"))
        narrow.squeeze(server)
        server.ask(_LARGE)
        narrow.relieve(server)
        server.ask(creation("after"))
    assert names_at(narrow.path) == ["before", "after"]


def test_every_write_of_a_group_that_the_disk_does_not_confirm_is_refused(
    path: Path, disk: Disk
) -> None:
    refused: list[str] = []

    def write(name: str) -> None:
        with pytest.raises(StoreStopped):
            create(memory, name)
        refused.append(name)

    wanted = [f"unconfirmed {number}" for number in range(8)]
    with opened(path) as memory:
        create(memory, "before")
        disk.fail()
        _in_threads([partial(write, name) for name in wanted])
        disk.heal()
    assert sorted(refused) == wanted


def test_after_an_unconfirmed_write_only_reads_go_on(path: Path, disk: Disk) -> None:
    """Even if the disk seems to work again: it is not known which writes it dropped."""
    with _stopped(path, disk) as memory:
        with pytest.raises(StoreStopped):
            create(memory, "later")
        assert "before" in names(memory)
    assert names_at(path)[:2] == ["earlier", "before"]
    assert problems_at(path) == []


def test_a_store_opened_again_on_a_healthy_disk_takes_writes(path: Path, disk: Disk) -> None:
    with _stopped(path, disk):
        pass
    with opened(path) as memory:
        create(memory, "later")
    assert "later" in names_at(path)


def test_a_file_is_confirmed_only_with_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory holds the new name of a file.

    If it is not on disk, a power cut brings the old file back.
    """
    disk = PythonDisk(monkeypatch)
    with opened(tmp_path / "memory.jsonl") as memory:
        create(memory, "before")
        disk.fail(after=1)
        with pytest.raises(StoreStopped):
            create(memory, "unconfirmed")


@pytest.mark.skipif(os.name == "nt", reason="directories are not forced to disk here")
@pytest.mark.parametrize("allowed", range(8))
def test_a_write_without_a_free_descriptor_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    """Whichever file cannot be opened.

    Once the new content is in place, it is too late to refuse.
    """
    path = tmp_path / "memory.jsonl"
    with opened(path) as memory:
        create(memory, "before")
        with monkeypatch.context() as patch:
            _allow_opening(patch, allowed)
            acknowledged = ["after"] if _is_acknowledged(memory, "after") else []
    assert names_at(path) == ["before", *acknowledged]


def test_a_failure_to_keep_bad_lines_stops_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _with_a_bad_line(tmp_path)
    disk = PythonDisk(monkeypatch)
    with opened(path) as memory:
        disk.fail()
        with pytest.raises(StoreStopped):
            create(memory, "unconfirmed")
        disk.heal()
        with pytest.raises(StoreStopped):
            create(memory, "later")


def test_bad_lines_stay_in_the_file_until_they_are_kept_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _with_a_bad_line(tmp_path)
    disk = PythonDisk(monkeypatch)
    disk.fail()
    with opened(path) as memory, pytest.raises(StoreStopped):
        create(memory, "unconfirmed")
    assert b"this is not JSON" in path.read_bytes()


def test_bad_lines_are_kept_once_even_if_the_write_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _with_a_bad_line(tmp_path)
    disk = PythonDisk(monkeypatch)
    disk.fail(after=1)
    with opened(path) as memory, pytest.raises(StoreStopped):
        create(memory, "unconfirmed")
    disk.heal()
    with opened(path) as memory:
        create(memory, "later")
    assert Path(f"{path}.rejected").read_bytes() == b"this is not JSON\n"


@pytest.mark.parametrize(
    "before", [b"this is", b"and this is not JSON\n"], ids=["half of it", "one that ends like it"]
)
def test_a_bad_line_is_kept_as_a_separate_line(tmp_path: Path, before: bytes) -> None:
    path = _with_a_bad_line(tmp_path)
    Path(f"{path}.rejected").write_bytes(before)
    with opened(path) as memory:
        create(memory, "first")
    assert Path(f"{path}.rejected").read_bytes().splitlines() == [
        before.strip(),
        b"this is not JSON",
    ]


@pytest.mark.skipif(os.name == "nt", reason="files have no modes here")
def test_only_the_owner_can_read_kept_lines(tmp_path: Path) -> None:
    path = _with_a_bad_line(tmp_path)
    with opened(path) as memory:
        create(memory, "first")
    assert Path(f"{path}.rejected").stat().st_mode & 0o077 == 0


def test_leftovers_that_cannot_be_removed_do_not_prevent_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.jsonl"
    Path(f"{path}.0123456789abcdef.tmp").touch()
    monkeypatch.setattr(os, "unlink", _read_only)
    with opened(path) as memory:
        create(memory, "first")
    assert names_at(path) == ["first"]


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away"
)
def test_a_file_keeps_its_owner_when_another_user_writes(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    with opened(path) as memory:
        create(memory, "first")
        os.chown(path, 12345, 12345)
        create(memory, "second")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


def test_a_disk_that_also_refuses_to_clean_up_stops_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error a file system often becomes read-only, and the unconfirmed file cannot be
    removed.
    """
    disk = PythonDisk(monkeypatch)
    with opened(tmp_path / "memory.jsonl") as memory:
        create(memory, "before")
        disk.fail()
        monkeypatch.setattr(os, "unlink", _read_only)
        with pytest.raises(StoreStopped):
            create(memory, "unconfirmed")


@pytest.mark.parametrize("room", [0, 1000, 4096, 20_000, 33_000])
def test_a_store_that_cannot_be_made_for_want_of_room_says_so(tmp_path: Path, room: int) -> None:
    """Whichever step of making it is the one that fails."""
    status, told = _served_with(room, tmp_path / "memory.db")
    assert status == 1
    assert "memory.db" in told
    assert "disk" in told or "room" in told


@contextmanager
def _stopped(path: Path, disk: Disk) -> Iterator[Memory]:
    """Yield a memory whose disk did not confirm the last write and works again."""
    with opened(path) as memory:
        create(memory, "earlier")
        create(memory, "before")
        disk.fail()
        with pytest.raises(StoreStopped, match=path.name):
            create(memory, "unconfirmed")
        disk.heal()
        yield memory


def _in_threads(works: list[Callable[[], None]]) -> None:
    threads = [Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _with_a_bad_line(directory: Path) -> Path:
    path = directory / "memory.jsonl"
    path.write_bytes(b"this is not JSON\n")
    return path


def _allow_opening(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let only `count` more files be opened, by `os.open` or `open`."""
    left = count

    def limited(really: Callable[..., object], *arguments: object, **options: object) -> object:
        nonlocal left
        if left == 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        left -= 1
        return really(*arguments, **options)

    for module in (os, io, builtins):
        patch.setattr(module, "open", partial(limited, module.open))


def _is_acknowledged(memory: Memory, name: str) -> bool:
    try:
        create(memory, name)
    except StoreError:
        return False
    return True


def _read_only(path: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def _served_with(room: int, path: Path) -> tuple[int, str]:
    """How a server ends whose files may only grow so large, and what it says."""
    resource = pytest.importorskip("resource")
    ended = subprocess.run(
        polymnia_command("serve", "--dialect", "reference", "--store", str(path)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    return ended.returncode, ended.stderr
