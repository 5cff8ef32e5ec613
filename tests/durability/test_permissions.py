"""File stores can be read without permission to write, and everything they create is private to the
user.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from polymnia.errors import StoreError
from polymnia.stores import open_store
from polymnia.stores.files.binlog import salvage
from tests.durability.graphs import create, names_at, opened

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files have no modes here")
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@pytest.fixture(params=["memory.jsonl", "memory.mcpmem"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / "below" / "twice" / str(request.param)


@pytest.fixture
def unwritable(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store in a directory in which nothing can be created or written.

    Modes alone do not stop root.
    """
    with opened(path) as memory:
        create(memory, "known")
    Path(f"{path}.lock").unlink()
    before = _content(path.parent)
    for module, is_writing in (
        (os, _has_writing_flags),
        (io, _has_writing_mode),
        (builtins, _has_writing_mode),
    ):
        monkeypatch.setattr(
            module, "open", partial(_refuse_writing, path.parent, is_writing, module.open)
        )
    yield path
    assert _content(path.parent) == before


def test_a_store_opened_read_only_needs_no_permission_to_write(unwritable: Path) -> None:
    store = open_store(str(unwritable), read_only=True)
    with store.reading() as read:
        assert [entity.name for entity in read.entities()] == ["known"]
    assert store.check() == []
    store.close()


def test_a_write_without_permission_is_refused_with_a_sentence(unwritable: Path) -> None:
    with (
        opened(unwritable) as memory,
        pytest.raises(StoreError, match="Permission denied; nothing was changed"),
    ):
        create(memory, "new")


def test_a_store_opened_read_only_refuses_a_write(path: Path) -> None:
    with opened(path) as memory:
        create(memory, "known")
    store = open_store(str(path), read_only=True)
    with pytest.raises(StoreError, match="opened read-only; nothing was changed"), store.writing():
        pass
    store.close()


def test_a_reader_without_a_lock_file_sees_later_writes(path: Path) -> None:
    with opened(path) as memory:
        create(memory, "first")
        Path(f"{path}.lock").unlink()
        store = open_store(str(path), read_only=True)
        for name in ("second", "third"):
            create(memory, name)
            with store.reading() as read:
                assert [entity.name for entity in read.entities()][-1] == name
        store.close()


def test_a_log_read_in_the_middle_of_an_append_is_read_on_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "memory.mcpmem"
    with opened(path) as memory:
        create(memory, "first")
        start = path.stat().st_size
        create(memory, "second", "third")
    whole = path.read_bytes()
    for cut in range(start + 1, len(whole)):
        path.write_bytes(whole[:cut])
        store = open_store(str(path), read_only=True)
        with store.reading() as read:
            assert [entity.name for entity in read.entities()] == ["first"]
        with path.open("ab") as file:
            file.write(whole[cut:])
        with store.reading() as read:
            assert [entity.name for entity in read.entities()] == ["first", "second", "third"]
        store.close()


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A user whose new files are readable and writable for all users."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_everything_a_store_creates_is_private(path: Path, tmp_path: Path) -> None:
    with opened(path) as memory:
        create(memory, "first")
    with path.open("ab") as file:
        file.write(b"\nnot finished")
    with opened(path) as memory:
        create(memory, "second")
        memory.store.compact()
    if path.suffix == ".mcpmem":
        salvage(path, path.with_name("saved.mcpmem"))
        path.write_bytes(b"MCPMEMV1")
        with opened(path) as memory:
            create(memory, "third")
    files = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(files.values()) == {0o600}
    assert len(files) == (3 if path.suffix == ".jsonl" else 5)
    assert {item.stat().st_mode & 0o777 for item in (path.parent, path.parent.parent)} == {0o700}


def test_a_directory_that_is_created_is_forced_to_disk_in_its_parent(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    with opened(path) as memory:
        assert {tmp_path.stat().st_ino, path.parent.parent.stat().st_ino} <= set(synced)
        create(memory, "first")
    assert path.parent.stat().st_ino in synced
    assert names_at(path) == ["first"]


def _content(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def _has_writing_flags(flags: int = 0, *_: object, **__: object) -> bool:
    return bool(flags & _WRITING_FLAGS)


def _has_writing_mode(mode: str = "r", *_: object, **__: object) -> bool:
    return any(letter in mode for letter in "wax+")


def _refuse_writing(
    directory: Path,
    is_writing: Callable[..., bool],
    really: Callable[..., object],
    path: object,
    *arguments: object,
    **options: object,
) -> object:
    if (
        isinstance(path, str | Path)
        and Path(path).is_relative_to(directory)
        and is_writing(*arguments, **options)
    ):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return really(path, *arguments, **options)
