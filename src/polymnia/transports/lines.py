"""Messages one a line: cutting a stream of bytes into them, with a bound on their length."""


class Lines:
    """Whole lines out of chunks. A line beyond the limit is dropped as it comes and given as None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._length = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """The lines that the chunk completes."""
        if not self._length and -1 < chunk.find(b"\n") == len(chunk) - 1 <= self._limit:
            return [chunk[:-1]]  # one whole line: what nearly every chunk is
        *ends, rest = chunk.split(b"\n")
        lines = [self._ended(end) for end in ends]
        self._hold(rest)
        return lines

    def rest(self) -> bytes | None:
        """The last line when the stream ends without a newline; empty when there is none."""
        return self._ended(b"")

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._limit:
            self._dropping = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _ended(self, end: bytes) -> bytes | None:
        self._hold(end)
        line = None if self._dropping else b"".join(self._parts)
        self._parts, self._length, self._dropping = [], 0, False
        return line
