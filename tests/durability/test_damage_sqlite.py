"""Check that a damaged or foreign SQLite file gives a clear error and is not changed."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

from polymnia.cli.main import main
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.errors import StoreError, StoreTooNew
from polymnia.model import ChangeQuery, Relation
from polymnia.stores import open_store
from tests.durability.graphs import create, names, opened, read
from tests.durability.servers import ServerProcess, creation, text_of, tool_call
from tests.processes import polymnia_command

_PAGE = 4096
_GARBAGE = {"zeros": bytes(_PAGE), "ones": b"\xff" * _PAGE, "noise": Random(1).randbytes(_PAGE)}
_NOT_SQLITE = {
    "text": b"This is a text file, not a database.\n" * 200,
    "short text": b"memory",
    "a memory.jsonl": b'{"type":"entity","name":"alpha","entityType":"thing","observations":[]}\n',
    "zeros": bytes(_PAGE),
}
# Operations that must either work on a damaged store or fail with a clear error.
_VERBS: dict[str, Callable[[Memory], object]] = {
    "check": lambda memory: memory.store.check(),
    "read all": read,
    "open": lambda memory: entities.open_named(memory, ["entity 7", "entity 8"]),
    "search": lambda memory: search.containing(memory, "fact about entity 1"),
    "history": lambda memory: _read_past(memory),
    "create": lambda memory: create(memory, "one more"),
    "delete": lambda memory: entities.delete(memory, ["entity 9"], by="a test"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an intact, closed store of a few dozen pages."""
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        for number in range(40):
            create(
                memory,
                f"entity {number}",
                facts=(f"fact about entity {number}", "caf\u00e9 " * 20),
            )
        pairs = [
            Relation(f"entity {number}", f"entity {number + 1}", "next to") for number in range(30)
        ]
        relations.create(memory, pairs, by="a test")
    return path


@pytest.mark.parametrize("garbage", _GARBAGE.values(), ids=_GARBAGE)
def test_an_overwritten_page_never_causes_a_traceback(path: Path, garbage: bytes) -> None:
    sound = path.read_bytes()
    for page in range(len(sound) // _PAGE):
        path.write_bytes(_with_page(sound, page, garbage))
        _try_every_operation(path)


@pytest.mark.parametrize("garbage", _GARBAGE.values(), ids=_GARBAGE)
def test_check_finds_an_overwritten_page(path: Path, garbage: bytes) -> None:
    path.write_bytes(_with_page(path.read_bytes(), _page_of(path, "observations"), garbage))
    assert _check_fails(path)


@pytest.mark.parametrize("garbage", _GARBAGE.values(), ids=_GARBAGE)
def test_doctor_finds_an_overwritten_page(
    path: Path, capsys: pytest.CaptureFixture[str], garbage: bytes
) -> None:
    path.write_bytes(_with_page(path.read_bytes(), _page_of(path, "entities"), garbage))
    assert main(["doctor", "--store", str(path)]) == 1
    assert "What to do" in capsys.readouterr().out


def test_a_file_truncated_at_any_page_never_causes_a_traceback(path: Path) -> None:
    sound = path.read_bytes()
    for page in range(1, len(sound) // _PAGE):
        path.write_bytes(sound[: page * _PAGE])
        _try_every_operation(path)


def test_check_finds_a_truncated_file(path: Path) -> None:
    sound = path.read_bytes()
    for page in range(1, len(sound) // _PAGE):
        path.write_bytes(sound[: page * _PAGE])
        assert _check_fails(path), f"cut after {page} pages"


def test_a_changed_byte_never_causes_a_traceback(path: Path) -> None:
    sound = path.read_bytes()
    random = Random(2)
    for place in random.sample(range(len(sound)), 300):
        changed = bytes([sound[place] ^ random.choice((0x01, 0x20, 0x80, 0xFF))])
        path.write_bytes(sound[:place] + changed + sound[place + 1 :])
        _try_every_operation(path)


def test_check_finds_facts_without_an_entity(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE cards SET until = 1 WHERE name = 'entity 7'")
    connection.close()
    assert _check_fails(path)


def test_check_finds_text_that_is_not_valid_utf_8(path: Path) -> None:
    _break_a_text(path)
    assert _check_fails(path)


def test_text_that_is_not_valid_utf_8_gives_an_error_that_names_the_file(path: Path) -> None:
    _break_a_text(path)
    with ServerProcess(path) as server:
        result = server.ask(tool_call("read_graph", {}))
    assert "memory.db" in text_of(result)


def test_a_server_keeps_answering_when_its_file_is_damaged(path: Path) -> None:
    path.write_bytes(
        _with_page(path.read_bytes(), _page_of(path, "observations"), _GARBAGE["noise"])
    )
    with ServerProcess(path) as server:
        assert server.ask(tool_call("read_graph", {}))["isError"]
        assert "content" in server.ask(creation("one more"))


@pytest.mark.parametrize("data", _NOT_SQLITE.values(), ids=_NOT_SQLITE)
def test_opening_a_file_that_is_not_a_database_fails_with_its_name(
    tmp_path: Path, data: bytes
) -> None:
    path = _file(tmp_path, data)
    with pytest.raises(StoreError, match=r"other\.db"):
        open_store(str(path))


@pytest.mark.parametrize("data", _NOT_SQLITE.values(), ids=_NOT_SQLITE)
def test_a_file_that_is_not_a_database_is_not_changed(tmp_path: Path, data: bytes) -> None:
    path = _file(tmp_path, data)
    with pytest.raises(StoreError):
        open_store(str(path))
    assert path.read_bytes() == data


def test_serving_a_file_that_is_not_a_database_prints_one_line_and_fails(tmp_path: Path) -> None:
    path = _file(tmp_path, _NOT_SQLITE["text"])
    command = polymnia_command("serve", "--dialect", "reference", "--store", str(path))
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr.count(b"\n") == 1
    assert b"other.db" in ended.stderr


@pytest.mark.parametrize("version", [0, 1, 2, 1000])
def test_a_database_of_another_program_cannot_be_opened(tmp_path: Path, version: int) -> None:
    """The version number does not matter: every program has its own."""
    path = _database_of_another_program(tmp_path, version)
    with pytest.raises(StoreError, match="another program"):
        open_store(str(path))


@pytest.mark.parametrize("version", [0, 1, 2, 1000])
def test_a_database_of_another_program_is_not_changed(tmp_path: Path, version: int) -> None:
    path = _database_of_another_program(tmp_path, version)
    before = path.read_bytes()
    with pytest.raises(StoreError):
        open_store(str(path)).close()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_a_store_of_a_later_version_cannot_be_opened(path: Path) -> None:
    _set_version(path, 1000)
    with pytest.raises(StoreTooNew, match="upgrade"):
        open_store(str(path))


def test_a_store_of_a_later_version_is_not_changed(path: Path) -> None:
    _set_version(path, 1000)
    before = path.read_bytes()
    with pytest.raises(StoreTooNew):
        open_store(str(path))
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = _file(tmp_path, b"")
    with opened(path) as memory:
        create(memory, "first")
        assert names(memory) == ["first"]


def _read_past(memory: Memory) -> None:
    with memory.reading() as read:
        read.history.changes(ChangeQuery(limit=None))[::-1]
        read.history.state_at(2**60)
        read.history.trash()


def _with_page(data: bytes, page: int, garbage: bytes) -> bytes:
    return data[: page * _PAGE] + garbage + data[(page + 1) * _PAGE :]


def _page_of(path: Path, table: str) -> int:
    """Return the number, from 0, of the last page of the table."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    query = "SELECT max(pageno) - 1 FROM dbstat WHERE name = ? AND pagetype = 'leaf'"
    ((page,),) = connection.execute(query, (table,)).fetchall()
    connection.close()
    return int(str(page))


def _break_a_text(path: Path) -> None:
    """Replace the first byte of an observation with one that is not valid UTF-8."""
    data = path.read_bytes()
    place = data.index(b"fact about", _page_of(path, "observations") * _PAGE)
    path.write_bytes(data[:place] + b"\xff" + data[place + 1 :])


def _try_every_operation(path: Path) -> None:
    """Open the store and run every operation; only StoreError may be raised."""
    for leftover in path.parent.glob("memory.db-*"):
        leftover.unlink()
    try:
        store = open_store(str(path))
    except StoreError:
        return
    for verb in _VERBS.values():
        _try(verb, Memory(store))
    store.close()


def _try(verb: Callable[[Memory], object], memory: Memory) -> None:
    try:
        verb(memory)
    except StoreError as exc:
        assert "memory.db" in str(exc)


def _check_fails(path: Path) -> bool:
    try:
        with opened(path) as memory:
            return bool(memory.store.check())
    except StoreError:
        return True


def _file(directory: Path, data: bytes) -> Path:
    path = directory / "other.db"
    path.write_bytes(data)
    return path


def _database_of_another_program(directory: Path, version: int) -> Path:
    path = directory / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.execute("INSERT INTO recipes VALUES ('soup')")
    connection.pragma("user_version", version)
    connection.close()
    return path


def _set_version(path: Path, version: int) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", version)
    connection.close()


@pytest.mark.parametrize("length", [1, 31, 32, 33, 56])
@pytest.mark.parametrize("index", [b"", bytes(32_768)], ids=["empty index", "index of zeros"])
def test_a_log_that_a_power_cut_ended_in_its_header_can_be_looked_at(
    path: Path, length: int, index: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(path) as memory:
        create(memory, "one more")
        log = Path(f"{path}-wal").read_bytes()
    Path(f"{path}-wal").write_bytes(log[:length])
    Path(f"{path}-shm").write_bytes(index)
    for command in (["stats"], ["show", "entity 7"], ["doctor"]):
        assert main([*command, "--store", str(path)]) == 0
    assert "locking protocol" not in capsys.readouterr().err
    with opened(path) as memory:
        create(memory, "another")


@pytest.mark.parametrize("length", [33, 100, 5_000])
def test_a_file_that_is_not_a_log_does_not_keep_commands_from_reading(
    path: Path, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(path) as memory:
        create(memory, "one more")
    Path(f"{path}-wal").write_bytes(Random(length).randbytes(length))
    Path(f"{path}-shm").write_bytes(bytes(32_768))
    for command in (["stats"], ["show", "one more"], ["export"], ["doctor"]):
        assert main([*command, "--store", str(path)]) == 0
    assert "locking protocol" not in capsys.readouterr().err
    with opened(path) as memory:
        create(memory, "another")
