"""Every valid line of a damaged `memory.jsonl` is loaded, and no line is thrown away."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.json import decode

from polymnia.cli.main import main
from tests.durability.graphs import create, names, opened, read

_LINES = [
    b'{"type":"entity","name":"alpha","entityType":"thing","observations":["first fact","second \xc3\xa9\\n\\u00e9"]}',
    b'{"type":"entity","name":"beta","entityType":"thing","observations":[]}',
    b'{"type":"entity","name":"gamma","entityType":"thing","observations":["a \\"quoted\\" one","\xf0\x9f\x90\x8d"]}',
    b'{"type":"entity","name":"omega","entityType":"thing","observations":["one","two","three"]}',
    b'{"type":"relation","from":"alpha","to":"beta","relationType":"knows"}',
    b'{"type":"relation","from":"gamma","to":"nobody yet","relationType":"waits for"}',
]
_WHOLE = b"\n".join(_LINES)
# Flipped bits, and bytes that have a meaning in JSON or separate lines.
_FLIPS = [0x01, 0x80]
_SPECIAL_BYTES = [b"\n", b'"', b"\x00"]
_BAD_LINES = {
    "text": b"this is not JSON",
    "half a line": b'{"type":"entity","name":"half","entityTy',
    "an unknown type": b'{"type":"note","name":"later","text":"kept"}',
    "no type": b'{"name":"untyped","entityType":"thing","observations":[]}',
    "a missing name": b'{"type":"entity","entityType":"thing","observations":[]}',
    "a number for a name": b'{"type":"entity","name":7,"entityType":"thing","observations":[]}',
    "another JSON value": b"[1,2,3]",
    "invalid UTF-8": b'{"type":"entity","name":"caf\xe9","entityType":"thing","observations":[]}',
    "nested too deeply": b"[" * 5000,
    "only a NUL": b"\x00",
}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Path:
    """The path of thousands of damaged files.

    Do not wait for the disk and do not log each warning.
    """
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    caplog.set_level(logging.ERROR, logger="polymnia")
    return tmp_path / "memory.jsonl"


def test_a_file_cut_anywhere_holds_every_line_before_the_cut_and_reports_it(path: Path) -> None:
    for length, whole in _cuts():
        path.write_bytes(_WHOLE[:length])
        assert _holds(path, whole), f"cut at {length}"
        assert bool(_problems(path)) == (not _ends_between_lines(length, whole)), f"cut at {length}"


def test_the_next_write_to_a_cut_file_loses_nothing(path: Path) -> None:
    for length, whole in _cuts():
        _start_over(path, _WHOLE[:length])
        _write(path)
        half = b"" if _ends_between_lines(length, whole) else _WHOLE[:length].split(b"\n")[-1]
        assert _holds(path, whole), f"cut at {length}"
        assert _rejected(path) == ([half] if half else []), f"cut at {length}"


def test_a_changed_byte_is_reported_or_leaves_lines_that_say_as_much(path: Path) -> None:
    for data, others, label in _flips():
        path.write_bytes(data)
        assert _holds(path, others), label
        with opened(path) as memory:
            graph = read(memory)
            loaded = len(graph.entities) + len(graph.relations)
            facts = sum(len(entity.facts) for entity in graph.entities)
            assert (loaded == len(_LINES) and facts == 7) or memory.store.check(), label


def test_a_line_split_in_two_is_reported(path: Path) -> None:
    for place, byte in enumerate(_WHOLE):
        if byte != ord("\n"):
            path.write_bytes(_WHOLE[:place] + b"\n" + _WHOLE[place + 1 :])
            assert _problems(path), f"byte {place} is a newline"


def test_the_next_write_after_a_changed_byte_loses_nothing(path: Path) -> None:
    for data, others, label in _flips():
        _start_over(path, data)
        reported = len(_problems(path))
        _write(path)
        assert _holds(path, others), label
        assert len(_rejected(path)) == reported, label
        assert all(line in data.split(b"\n") for line in _rejected(path)), label


@pytest.mark.parametrize("line", _BAD_LINES.values(), ids=_BAD_LINES)
def test_a_bad_line_is_reported_and_kept_beside_the_file_at_the_next_write(
    path: Path, line: bytes
) -> None:
    _put_in_the_middle(path, line)
    before = path.read_bytes()
    assert _holds(path, _LINES)
    (problem,) = _problems(path)
    assert "line 4" in problem
    assert path.read_bytes() == before
    _write(path)
    assert _rejected(path) == [line]
    assert _problems(path) == []


def test_bad_lines_of_several_writes_are_all_kept(path: Path) -> None:
    for line in (b"first", b"second", b"third"):
        _put_in_the_middle(path, line)
        _write(path)
    assert _rejected(path) == [b"first", b"second", b"third"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + _WHOLE,
        _WHOLE.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + _WHOLE.replace(b"\n", b"\r\n") + b"\r\n",
        b"\n\n" + _WHOLE.replace(b"\n", b"\n\n  \t\n") + b"\n\n",
        _WHOLE,
        _WHOLE + b"\n",
        b"\n".join(reversed(_LINES)),
        b"\n".join(b"  " + line + b" \t" for line in _LINES),
    ],
    ids=[
        "BOM",
        "CRLF",
        "BOM and CRLF",
        "blank lines",
        "no newline at the end",
        "a newline",
        "any order",
        "spaces",
    ],
)
def test_changes_that_editors_make_are_not_damage(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert _holds(path, _LINES)
    assert _problems(path) == []


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"\r\n\r\n"])
def test_a_file_with_nothing_in_it_is_an_empty_memory(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with opened(path) as memory:
        assert names(memory) == []
        assert memory.store.check() == []


def test_a_name_on_two_lines_is_one_entity_with_the_facts_of_both(path: Path) -> None:
    other = b'{"type":"entity","name":"alpha","entityType":"thing","observations":["first fact","third fact"]}'
    _put_in_the_middle(path, other)
    with opened(path) as memory:
        (alpha,) = [entity for entity in read(memory).entities if entity.name == "alpha"]
    assert alpha.texts == ("first fact", "second é\né", "third fact")


def test_a_relation_on_two_lines_is_one(path: Path) -> None:
    _put_in_the_middle(path, _LINES[4])
    with opened(path) as memory:
        assert len(read(memory).relations) == 2


def test_the_doctor_names_the_line_and_what_to_do(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_in_the_middle(path, b"this is not JSON")
    assert main(["doctor", "--store", str(path)]) == 1
    report = capsys.readouterr().out
    assert "line 4" in report
    assert "What to do" in report


def _cuts() -> Iterator[tuple[int, list[bytes]]]:
    """Yield every length to cut the file to, and the lines that are whole at that length."""
    ends = [len(b"\n".join(_LINES[: count + 1])) for count in range(len(_LINES))]
    for length in range(len(_WHOLE)):
        yield length, [line for line, end in zip(_LINES, ends, strict=True) if end <= length]


def _ends_between_lines(length: int, whole: list[bytes]) -> bool:
    return _WHOLE[:length].rstrip(b"\n") == b"\n".join(whole)


def _flips() -> Iterator[tuple[bytes, list[bytes], str]]:
    """Yield the file with each byte changed in turn, the other lines, and a description of the
    change.
    """
    for place, byte in enumerate(_WHOLE):
        changed = [bytes([byte ^ flip]) for flip in _FLIPS] + _SPECIAL_BYTES
        others = _untouched(place)
        for other in changed:
            if other != bytes([byte]):
                yield (
                    _WHOLE[:place] + other + _WHOLE[place + 1 :],
                    others,
                    f"byte {place} is {other!r}",
                )


def _untouched(place: int) -> list[bytes]:
    """Return the lines that a changed byte is not part of.

    A newline is part of the lines on both sides.
    """
    number = _WHOLE[:place].count(b"\n")
    touched = {number, number + 1} if _WHOLE[place : place + 1] == b"\n" else {number}
    return [line for index, line in enumerate(_LINES) if index not in touched]


def _put_in_the_middle(path: Path, line: bytes) -> None:
    path.write_bytes(b"\n".join([*_LINES[:3], line, *_LINES[3:]]))


def _start_over(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    Path(f"{path}.rejected").unlink(missing_ok=True)


def _write(path: Path) -> None:
    with opened(path) as memory:
        create(memory, "one more")


def _problems(path: Path) -> list[str]:
    with opened(path) as memory:
        return memory.store.check()


def _rejected(path: Path) -> list[bytes]:
    aside = Path(f"{path}.rejected")
    return aside.read_bytes().split(b"\n")[:-1] if aside.exists() else []


def _holds(path: Path, lines: list[bytes]) -> bool:
    """Return True if the store holds the content of each line.

    Damage may have given another entity the same name.
    """
    with opened(path) as memory:
        graph = read(memory)
    texts = {entity.name: set(entity.texts) for entity in graph.entities}
    relations = {relation.key for relation in graph.relations}
    return all(_is_in(decode(line), texts, relations) for line in lines)


def _is_in(
    line: dict[str, object], texts: dict[str, set[str]], relations: set[tuple[str, str, str]]
) -> bool:
    if line["type"] == "relation":
        return (line["from"], line["to"], line["relationType"]) in relations
    facts = line["observations"]
    assert isinstance(facts, list)
    return set(facts) <= texts.get(str(line["name"]), set()) and line["name"] in texts
