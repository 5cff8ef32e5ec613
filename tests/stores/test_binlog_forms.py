"""Logs of other programs are read, kept and rewritten. The fixtures are encoded byte by byte."""

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.errors import StoreDamaged
from polymnia.model import Entity, EntityDraft
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from polymnia.stores.files.binlog import salvage
from polymnia.stores.files.records import encode_graph
from tests.stores.binlog_reader import Picture, read_log

Encode = Callable[[int, bytes], bytes]
BEGIN, COMMIT = 6, 7


def version_1(kind: int, payload: bytes) -> bytes:
    return (5 + len(payload)).to_bytes(4, "little") + bytes([kind]) + payload


def version_2(kind: int, payload: bytes) -> bytes:
    checksum = zlib.crc32(payload).to_bytes(4, "little")
    return (9 + len(payload)).to_bytes(4, "little") + bytes([kind]) + payload + checksum


def text(value: str) -> bytes:
    raw = value.encode()
    return len(raw).to_bytes(2, "little") + raw


def texts(*values: str) -> bytes:
    return len(values).to_bytes(4, "little") + b"".join(map(text, values))


def records(encode: Encode) -> list[bytes]:
    return [
        encode(0, text("Ada") + text("person") + texts("one", "zwei")),
        encode(0, text("Zoë") + text("person") + texts()),
        encode(0, text("Ada") + text("robot") + texts("never")),
        encode(1, text("Ada") + text("Zoë") + text("knows")),
        encode(1, text("Ada") + text("Bob") + text("knows")),
        encode(99, b"of a later version"),
        encode(2, text("Ada") + texts("three")),
        encode(BEGIN, b""),
        encode(4, text("Ada") + texts("one")),
        encode(5, text("Ada") + text("Bob") + text("knows")),
        encode(COMMIT, b""),
        encode(0, text("Bob") + text("person") + texts()),
        encode(1, text("Bob") + text("Ada") + text("knows")),
        encode(3, text("Bob")),
    ]


HELD = Picture(
    {"Ada": ("person", ["zwei", "three"]), "Zoë": ("person", [])}, [("Ada", "Zoë", "knows")]
)
VERSIONS = pytest.mark.parametrize(
    ("magic", "encode"),
    [(b"MCPMEMV1", version_1), (b"MCPMEMV2", version_2)],
    ids=["version 1", "version 2"],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.bin"


def held(path: Path) -> Picture:
    store = open_store(str(path))
    try:
        return picture(store)
    finally:
        store.close()


def picture(store: Store) -> Picture:
    graph = entities.read_all(Memory(store))
    return Picture(
        {entity.name: (entity.type, list(entity.texts)) for entity in graph.entities},
        [relation.key for relation in graph.relations],
    )


def write_to(path: Path) -> None:
    store = open_store(str(path))
    entities.create(Memory(store), [EntityDraft("late", "x")], by="test")
    store.close()


def with_late(before: Picture) -> Picture:
    return Picture({**before.entities, "late": ("x", [])}, before.relations)


def bak(path: Path, number: str = "") -> Path:
    return Path(f"{path}.bak{number}")


@VERSIONS
def test_reading_an_old_log_changes_nothing(path: Path, magic: bytes, encode: Encode) -> None:
    old = magic + b"".join(records(encode))
    path.write_bytes(old)
    assert held(path) == HELD
    assert [(file.name, file.read_bytes()) for file in path.parent.iterdir()] == [(path.name, old)]


@VERSIONS
def test_the_first_write_keeps_and_rewrites_an_old_log(
    path: Path, magic: bytes, encode: Encode
) -> None:
    old = magic + b"".join(records(encode))
    path.write_bytes(old)
    write_to(path)
    assert bak(path).read_bytes() == old
    assert read_log(path.read_bytes()) == with_late(HELD) == held(path)
    assert not bak(path, "1").exists()


@VERSIONS
def test_an_old_log_that_its_program_appends_to_is_read_again(
    path: Path, magic: bytes, encode: Encode
) -> None:
    first, *rest = records(encode)
    path.write_bytes(magic + first)
    store = open_store(str(path))
    assert picture(store) == Picture({"Ada": ("person", ["one", "zwei"])})
    with path.open("ab") as file:
        file.writelines(rest)
    assert picture(store) == HELD
    store.close()


@VERSIONS
def test_an_existing_copy_is_never_overwritten(path: Path, magic: bytes, encode: Encode) -> None:
    bak(path).write_bytes(b"precious")
    bak(path, "1").write_bytes(b"too")
    path.write_bytes(magic + b"".join(records(encode)))
    write_to(path)
    assert (bak(path).read_bytes(), bak(path, "1").read_bytes()) == (b"precious", b"too")
    assert bak(path, "2").read_bytes().startswith(magic)


@VERSIONS
def test_an_old_log_cut_anywhere_gives_the_whole_records_before_the_cut(
    tmp_path: Path, magic: bytes, encode: Encode
) -> None:
    first, second, *_ = records(encode)
    for cut in range(len(second)):
        path = tmp_path / f"{cut}.bin"
        path.write_bytes(magic + first + second[:cut])
        assert held(path) == Picture({"Ada": ("person", ["one", "zwei"])})
        write_to(path)
        assert bak(path).read_bytes() == magic + first + second[:cut]


@VERSIONS
def test_an_old_log_without_records_is_an_empty_memory(
    path: Path, magic: bytes, encode: Encode
) -> None:
    path.write_bytes(magic)
    assert held(path) == Picture()
    write_to(path)
    assert read_log(path.read_bytes()) == with_late(Picture())
    assert bak(path).read_bytes() == magic


@VERSIONS
def test_a_transaction_that_was_not_committed_is_ignored(
    path: Path, magic: bytes, encode: Encode
) -> None:
    path.write_bytes(
        magic + b"".join(records(encode)) + encode(BEGIN, b"") + encode(3, text("Ada"))
    )
    assert held(path) == HELD


@VERSIONS
@pytest.mark.parametrize("length", [0, 4, 200, 0x00080000, 0x00200000])
def test_a_wrong_length_in_an_old_log_is_damage(
    path: Path, magic: bytes, encode: Encode, length: int
) -> None:
    first, *rest = records(encode)
    old = magic + first + length.to_bytes(4, "little") + b"".join(rest)[4:]
    path.write_bytes(old)
    with pytest.raises(StoreDamaged, match=f"damaged at byte {8 + len(first)}"):
        held(path)
    assert (path.read_bytes(), bak(path).exists()) == (old, False)


def test_a_wrong_byte_in_the_data_of_version_2_is_damage(path: Path) -> None:
    old = bytearray(b"MCPMEMV2" + b"".join(records(version_2)))
    old[20] ^= 1
    path.write_bytes(old)
    with pytest.raises(StoreDamaged, match="damaged at byte 8"):
        held(path)


@VERSIONS
def test_salvaging_an_old_log_skips_stray_bytes(path: Path, magic: bytes, encode: Encode) -> None:
    first, *rest = records(encode)
    path.write_bytes(magic + first + b"\x00\x00\x00" + b"".join(rest))
    with pytest.raises(StoreDamaged):
        held(path)
    new = path.with_name("new.mcpmem")
    assert salvage(path, new).gaps == [(8 + len(first), 8 + len(first) + 3)]
    assert held(new) == HELD


LONG = "o" * 65_535


@VERSIONS
def test_the_longest_strings_of_an_old_log_are_read_and_rewritten(
    path: Path, magic: bytes, encode: Encode
) -> None:
    old = magic + b"".join(long_records(encode))
    path.write_bytes(old)
    assert held(path) == LONGEST
    write_to(path)
    assert read_log(path.read_bytes()) == with_late(LONGEST) == held(path)
    assert bak(path).read_bytes() == old


@VERSIONS
def test_an_old_log_with_the_longest_strings_is_sound_and_can_be_salvaged_and_imported(
    path: Path, magic: bytes, encode: Encode
) -> None:
    path.write_bytes(magic + b"".join(long_records(encode)))
    assert main(["doctor", "--store", str(path)]) == 0
    assert salvage(path, path.with_name("saved.mcpmem")).gaps == []
    assert main(["import", str(path), "--store", str(path.with_name("new.mcpmem"))]) == 0
    assert held(path.with_name("saved.mcpmem")) == held(path.with_name("new.mcpmem")) == LONGEST


def long_records(encode: Encode) -> list[bytes]:
    return [
        encode(0, text("A") + text("x") + texts(LONG, "short")),
        encode(0, text(LONG) + text(LONG) + texts(LONG, LONG[:-1])),
        encode(1, text(LONG) + text("A") + text(LONG)),
        encode(2, text("A") + texts(LONG[:-1])),
        encode(4, text("A") + texts(LONG)),
    ]


LONGEST = Picture(
    {"A": ("x", ["short", LONG[:-1]]), LONG: (LONG, [LONG, LONG[:-1]])}, [(LONG, "A", LONG)]
)


def plain(kind: int, payload: bytes) -> bytes:
    return (
        zlib.crc32(payload).to_bytes(4, "little")
        + bytes([kind])
        + len(payload).to_bytes(4, "little")
        + payload
    )


def long_text(value: str) -> bytes:
    return len(value.encode()).to_bytes(8, "little") + value.encode()


PLAIN = [
    plain(0, long_text("A") + long_text("x") + (1).to_bytes(8, "little") + long_text("one")),
    plain(2, long_text("A") + (1).to_bytes(8, "little") + long_text("two")),
    plain(1, long_text("A") + long_text("B") + long_text("r")),
]


def test_a_log_that_does_not_repeat_the_kind_is_read_kept_and_rewritten(path: Path) -> None:
    path.write_bytes(b"".join(PLAIN))
    expected = Picture({"A": ("x", ["one", "two"])}, [("A", "B", "r")])
    assert held(path) == expected
    write_to(path)
    assert bak(path).read_bytes() == b"".join(PLAIN)
    assert read_log(path.read_bytes()) == with_late(expected)


def test_a_log_that_repeats_the_kind_only_sometimes_is_damaged(path: Path) -> None:
    path.write_bytes(b"".join(PLAIN[:1]))
    write_to(path)
    path.write_bytes(path.read_bytes() + PLAIN[1])
    with pytest.raises(StoreDamaged):
        held(path)


def test_a_plain_log_with_a_damaged_first_record_is_damaged(path: Path) -> None:
    for at in range(len(PLAIN[0])):
        data = bytearray(b"".join(PLAIN))
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(StoreDamaged, match="damaged at byte 0"):
            held(path)


def test_a_whole_last_record_of_another_shape_is_damage(path: Path) -> None:
    ours = b"".join(encode_graph([Entity("A", "x")], []))
    for kind in (1, 2, 9):
        path.write_bytes(ours + plain(kind, long_text("A") + bytes([kind])))
        with pytest.raises(StoreDamaged, match=f"damaged at byte {len(ours)}"):
            held(path)


def test_a_plain_log_cut_anywhere_gives_the_whole_records_before_the_cut(tmp_path: Path) -> None:
    for cut in range(len(PLAIN[1])):
        path = tmp_path / f"{cut}.bin"
        path.write_bytes(PLAIN[0] + PLAIN[1][:cut])
        assert held(path) == Picture({"A": ("x", ["one"])})
