"""Processes and threads that share a store lose nothing and see the writes of the others."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from polymnia.disk import lock
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound, StoreBusy, StoreError
from polymnia.model import Entity, FactAddition, Rows
from polymnia.stores.files.binlog import salvage
from polymnia.stores.sqlite import connection
from tests.durability.graphs import create, names, names_at, opened, read
from tests.durability.servers import ServerProcess, creation, is_error, names_in, tool_call

_READ = tool_call("read_graph", {})


def test_processes_that_write_at_once_keep_every_write(path: Path) -> None:
    plans = [[f"entity {process}.{number}" for number in range(25)] for process in range(4)]
    _served([path] * 4, [[creation(name) for name in plan] for plan in plans])
    assert sorted(names_at(path)) == sorted(name for plan in plans for name in plan)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege here")
def test_two_paths_to_one_store_keep_every_write(path: Path, tmp_path: Path) -> None:
    """The second path is a symbolic link. A lock beside the link would be another lock."""
    link = tmp_path / f"link{path.suffix}"
    _create_at(path, "first")
    link.symlink_to(path)
    plans = [[f"entity {process}.{number}" for number in range(40)] for process in range(2)]
    _served([path, link], [[creation(name) for name in plan] for plan in plans])
    assert sorted(names_at(path)) == sorted(["first", *plans[0], *plans[1]])


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege here")
@pytest.mark.parametrize("path", ["memory.jsonl", "memory.mcpmem"])
def test_a_link_and_the_file_it_points_to_have_one_lock(
    path: str, tmp_path: Path, impatience: None
) -> None:
    real = tmp_path / "elsewhere" / path
    _create_at(real, "first")
    link = tmp_path / path
    link.symlink_to(real)
    with opened(link) as memory, _held(real), pytest.raises(StoreBusy):
        create(memory, "second")
    with opened(real) as memory, _held(link), pytest.raises(StoreBusy):
        create(memory, "second")
    assert not Path(f"{link}.lock").exists()


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege here")
def test_salvaging_a_log_through_a_link_waits_for_its_writer(
    tmp_path: Path, impatience: None
) -> None:
    real = tmp_path / "elsewhere" / "memory.mcpmem"
    _create_at(real, "first")
    link = tmp_path / "memory.mcpmem"
    link.symlink_to(real)
    with _held(real), pytest.raises(StoreBusy):
        salvage(link, tmp_path / "new.mcpmem")


def test_pipelined_calls_are_all_kept_and_answered_in_order(path: Path) -> None:
    calls = [creation(f"entity {number}", identifier=number) for number in range(50)]
    (replies,) = _served([path], [calls])
    assert [reply["id"] for reply in replies] == list(range(50))
    assert names_at(path) == [f"entity {number}" for number in range(50)]


def test_a_process_sees_what_another_changed_on_its_next_call(path: Path) -> None:
    with ServerProcess(path) as reader, ServerProcess(path) as writer:
        for count in range(1, 6):
            writer.ask(creation(f"entity {count}"))
            assert len(names_in(reader.ask(_READ))) == count
        writer.ask(tool_call("delete_entities", {"entityNames": ["entity 1", "entity 3"]}))
        assert names_in(reader.ask(_READ)) == ["entity 2", "entity 4", "entity 5"]


def test_a_process_that_reads_one_name_again_and_again_sees_what_another_adds(path: Path) -> None:
    _create_at(path, "one", facts=())
    look = tool_call("open_nodes", {"names": ["one"]})
    with ServerProcess(path) as reader, ServerProcess(path) as writer:
        for count in range(1, 6):
            for _ in range(50):
                reader.ask(look)
            add = {"entityName": "one", "contents": [f"fact {count}"]}
            writer.ask(tool_call("add_observations", {"observations": [add]}))
            (one,) = reader.ask(look)["structuredContent"]["entities"]
            assert len(one["observations"]) == count


def test_a_change_is_seen_even_when_the_file_keeps_its_size_and_time(tmp_path: Path) -> None:
    """File times have a resolution of milliseconds, and inodes of deleted files are reused."""
    path = tmp_path / "memory.jsonl"
    with opened(path) as reader, opened(path) as writer:
        for _ in range(20):
            create(writer, "old")
            assert names(reader) == ["old"]
            state = path.stat()
            entities.delete(writer, ["old"], by="a test")
            create(writer, "new")
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
            assert names(reader) == ["new"]
            entities.delete(writer, ["new"], by="a test")


def test_facts_added_at_once_by_processes_are_all_kept(path: Path) -> None:
    _create_at(path, "one", facts=())
    texts = _add_from_processes(path)
    with opened(path) as memory:
        (one,) = read(memory).entities
    assert sorted(one.texts) == sorted(texts)


def test_facts_added_at_once_by_processes_have_ordinals_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    _create_at(path, "one", facts=())
    texts = _add_from_processes(path)
    with opened(path) as memory:
        (one,) = read(memory).entities
    assert [fact.ordinal for fact in one.facts] == list(range(1, len(texts) + 1))


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be taken away here")
@pytest.mark.parametrize("put_there", [(), ("other",)], ids=["nothing", "another store"])
def test_a_write_acknowledged_after_the_file_was_removed_is_in_the_new_file(
    path: Path, tmp_path: Path, put_there: tuple[str, ...]
) -> None:
    with opened(path) as memory:
        create(memory, "before")
        _remove_files(path)
        if put_there:
            _create_at(tmp_path / "elsewhere" / path.name, *put_there)
            (tmp_path / "elsewhere" / path.name).rename(path)
        acknowledged = ["after"] if _is_acknowledged(memory, "after") else []
    assert names_at(path) == [*put_there, *acknowledged]


def test_threads_that_write_at_once_lose_nothing(path: Path) -> None:
    plans = [[f"entity {thread}.{number}" for number in range(25)] for thread in range(8)]
    with opened(path) as memory:
        _at_once([partial(_create_each, memory, plan) for plan in plans])
        assert sorted(names(memory)) == sorted(name for plan in plans for name in plan)


def test_a_thread_that_has_written_can_read_what_it_wrote(path: Path) -> None:
    missing: list[str] = []

    def write_and_look(thread: int) -> None:
        for number in range(10):
            name = f"entity {thread}.{number}"
            create(memory, name)
            missing.extend({name}.difference(names(memory)))

    with opened(path) as memory:
        _at_once([partial(write_and_look, thread) for thread in range(8)])
    assert missing == []


def test_a_verb_that_fails_undoes_its_own_work_and_no_other(path: Path) -> None:
    with opened(path) as memory:
        _write_and_fail_at_once(memory)
        written = {f"entity {thread}.{number}" for thread in range(8) for number in range(20)}
        assert written <= set(names(memory))
        assert not [name for name in names(memory) if name.startswith("doomed")]


def test_a_refused_verb_is_refused_to_its_own_caller_only(path: Path) -> None:
    outcomes: list[str] = []

    def refused() -> None:
        for _ in range(20):
            with pytest.raises(EntityNotFound):
                facts.add(
                    memory,
                    [FactAddition("nobody", ("a fact",))],
                    by="a test",
                    skip_repeats=True,
                )
            outcomes.append("refused")

    def accepted(thread: int) -> None:
        for number in range(20):
            create(memory, f"entity {thread}.{number}")
            outcomes.append("accepted")

    with opened(path) as memory:
        _at_once([refused, refused, *[partial(accepted, thread) for thread in range(6)]])
    assert sorted(outcomes) == ["accepted"] * 120 + ["refused"] * 40


def test_a_store_that_is_held_can_be_read_and_says_so_to_writers(
    path: Path, impatience: None
) -> None:
    with opened(path) as memory:
        create(memory, "first")
        with _held(path):
            assert names(memory) == ["first"]
            with pytest.raises(StoreBusy, match="try again"):
                create(memory, "second")
        create(memory, "third")
        assert names(memory) == ["first", "third"]


@pytest.mark.parametrize("statement", [1, 2, 3])
def test_a_store_that_another_process_makes_meanwhile_is_not_a_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: int
) -> None:
    """Whichever of the first statements on the new file it comes before."""
    path = tmp_path / "memory.db"
    made = partial(_create_at, path, "first")
    monkeypatch.setattr(apsw, "connection_hooks", [partial(_interrupt_once, statement, made)])
    assert names_at(path) == ["first"]


@pytest.fixture
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every wait for another process short."""
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 1)
    monkeypatch.setattr(lock, "LOCK_TIMEOUT_S", 0.001)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the write lock of a store during the block, as a slow writer does."""
    if path.suffix != ".db":
        # The former holder may be slow to give it back.
        with lock.file_lock(path, timeout=60):
            yield
        return
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    yield
    holder.close()


def _interrupt_once(
    statement: int, interruption: Callable[[], None], connection: apsw.Connection
) -> None:
    """Let something happen before the connection runs its nth statement.

    Later connections are left alone.
    """
    apsw.connection_hooks.clear()
    seen = 0

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        nonlocal seen
        seen += 1
        if seen == statement:
            interruption()
        return True

    connection.exec_trace = trace


def _create_at(path: Path, *created: str, facts: Sequence[str] = ("a fact",)) -> None:
    """Create entities in the store at that path and close it."""
    with opened(path) as memory:
        create(memory, *created, facts=facts)


def _remove_files(path: Path) -> None:
    """Remove the files of a store, as before restoring a backup."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _is_acknowledged(memory: Memory, name: str) -> bool:
    try:
        create(memory, name)
    except StoreError:
        return False
    return True


def _create_each(memory: Memory, plan: Sequence[str]) -> None:
    """Create each entity of the plan in a change of its own."""
    for name in plan:
        create(memory, name)


def _served(paths: list[Path], calls: list[list[bytes]]) -> list[list[dict[str, Any]]]:
    """Run one server per path at the same time and return their replies; none is an error."""
    with ExitStack() as stack:
        servers = [stack.enter_context(ServerProcess(path)) for path in paths]
        for server, its_calls in zip(servers, calls, strict=True):
            server.send(its_calls)
        replies = [
            server.replies(len(its_calls)) for server, its_calls in zip(servers, calls, strict=True)
        ]
    assert [len(reply) for reply in replies] == [len(call) for call in calls]
    assert not [reply for own in replies for reply in own if is_error(reply)]
    return replies


def _add_from_processes(path: Path) -> list[str]:
    """Let four processes add observations to the entity "one", one per call; return the texts."""
    plans = [[f"fact {process}.{number}" for number in range(20)] for process in range(4)]
    _served([path] * 4, [[_addition(text) for text in plan] for plan in plans])
    return [text for plan in plans for text in plan]


def _addition(text: str) -> bytes:
    return tool_call(
        "add_observations", {"observations": [{"entityName": "one", "contents": [text]}]}
    )


def _write_and_fail_at_once(memory: Memory) -> None:
    """Run eight threads in which every second verb fails after it has written."""

    def work(thread: int) -> None:
        for number in range(20):
            create(memory, f"entity {thread}.{number}")
            with pytest.raises(_Doomed), memory.writing("create_entities", "a test") as transaction:
                transaction.apply(
                    after=Rows(entities=(Entity(f"doomed {thread}.{number}", "thing"),))
                )
                raise _Doomed

    _at_once([partial(work, thread) for thread in range(8)])


class _Doomed(Exception):
    """The failure of a verb in these tests."""


def _at_once(works: Sequence[Callable[[], object]]) -> None:
    """Run each function in a thread, all started together.

    Raise the first exception of a thread.
    """
    start = threading.Barrier(len(works))
    failures: list[BaseException] = []

    def body(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as exc:  # noqa: BLE001  # handed to the test's own thread
            failures.append(exc)

    threads = [threading.Thread(target=body, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
