"""Splitting a stream into lines: the same lines in chunks of any size, none beyond the limit."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polymnia.transports.lines import LineSplitter

LIMIT = 8
STREAMS = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r", b"\xff", b"12345678", b"\n\n"])).map(
    b"".join
)


@st.composite
def chunked(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream, whole and in pieces."""
    stream = draw(STREAMS)
    cuts = sorted(draw(st.sets(st.integers(0, len(stream)))) | {0, len(stream)})
    return stream, [stream[start:end] for start, end in pairwise(cuts)]


def cut(chunks: list[bytes]) -> list[bytes | None]:
    """Every line the chunks hold, the unfinished last one included."""
    lines = LineSplitter(LIMIT)
    whole = [line for chunk in chunks for line in lines.feed(chunk)]
    return [*whole, lines.rest()]


@settings(deadline=None)
@given(chunked())
def test_however_a_stream_is_cut_its_lines_are_the_same(
    streamed: tuple[bytes, list[bytes]],
) -> None:
    stream, chunks = streamed
    assert cut(chunks) == [line if len(line) <= LIMIT else None for line in stream.split(b"\n")]


@settings(deadline=None)
@given(STREAMS)
def test_a_line_is_returned_with_the_chunk_that_completes_it(stream: bytes) -> None:
    lines = LineSplitter(LIMIT)
    for byte in stream:
        assert len(lines.feed(bytes([byte]))) == (byte == ord("\n"))


@pytest.mark.parametrize(
    ("length", "given_back"), [(LIMIT, True), (LIMIT + 1, False), (1000 * LIMIT, False)]
)
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_only_a_line_beyond_the_limit_is_discarded(
    length: int, given_back: bool, size: int
) -> None:
    line = b"x" * length
    stream = line + b"\nnext\n"
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert cut(chunks) == [line if given_back else None, b"next", b""]


def test_an_empty_chunk_completes_no_line() -> None:
    lines = LineSplitter(LIMIT)
    assert [lines.feed(b""), lines.feed(b"a"), lines.feed(b""), lines.feed(b"\n")] == [
        [],
        [],
        [],
        [b"a"],
    ]


def test_the_rest_is_returned_once() -> None:
    lines = LineSplitter(LIMIT)
    lines.feed(b"a\nb")
    assert (lines.rest(), lines.rest()) == (b"b", b"")


def test_an_unfinished_line_beyond_the_limit_is_discarded() -> None:
    lines = LineSplitter(LIMIT)
    lines.feed(b"x" * (LIMIT + 1))
    assert lines.rest() is None


def test_a_line_beyond_the_limit_is_not_kept_in_memory() -> None:
    lines = LineSplitter(LIMIT)
    tracemalloc.start()
    for number in range(100):
        lines.feed(b"%d" % number * 10_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000
