"""Forms with files, parsed as they arrive: nothing but a piece of a file is held in memory."""

import re
from email.message import Message
from typing import Protocol

from polymnia.errors import BadInput

MAX_HEAD_BYTES = 16 << 10
MAX_FIELD_BYTES = 1 << 20
_PARAMETER = re.compile(r';\s*([\w-]+)=(?:"([^"]*)"|([^;]*))')


class FormSink(Protocol):
    """Takes the parts of a form in the order in which they come. Its methods may raise BadInput."""

    def field(self, name: str, value: str) -> None:
        """Take a field."""

    def open_file(self, name: str) -> None:
        """Begin a file with the name that the browser gives it."""

    def write(self, data: bytes) -> None:
        """Take the next bytes of the file."""

    def close_file(self) -> None:
        """End the file."""


class MultipartParser:
    """Splits the bytes of a form at its boundary and passes the parts on."""

    def __init__(self, boundary: bytes, sink: FormSink) -> None:
        self._mark = b"\r\n--" + boundary
        self._sink = sink
        self._buffer = bytearray(b"\r\n")  # the first boundary has no line end before it
        self._step = self._skip_preamble
        self._name = ""
        self._field: bytearray | None = None
        self._is_complete = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raise BadInput."""
        self._buffer += data
        while not self._is_complete and self._step():
            pass
        if self._is_complete:
            self._buffer.clear()  # what follows the last boundary means nothing

    def finish(self) -> None:
        """Raise BadInput if the form has not ended."""
        if not self._is_complete:
            raise BadInput("the form is not complete: send it again")

    def _skip_preamble(self) -> bool:
        if not self._cut_at_mark():
            return False
        self._step = self._end_boundary
        return True

    def _end_boundary(self) -> bool:
        """Read what follows a boundary: a line end, or two dashes after the last part."""
        if len(self._buffer) < 2:
            return False
        self._is_complete = self._buffer.startswith(b"--")
        if not self._is_complete and not self._buffer.startswith(b"\r\n"):
            raise BadInput("the form is not valid: a boundary is followed by other text")
        self._step = self._read_head
        return True

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end > MAX_HEAD_BYTES or (end < 0 and len(self._buffer) > MAX_HEAD_BYTES):
            raise BadInput("the form is not valid: the head of a part is too long")
        if end < 0:
            return False
        name, file = _parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        self._name, self._field = name, (bytearray() if file is None else None)
        if file is not None:
            self._sink.open_file(file)
        self._step = self._read_content
        return True

    def _read_content(self) -> bool:
        at = self._buffer.find(self._mark)
        # The end of the buffer may be the beginning of a boundary.
        ready = at if at >= 0 else max(0, len(self._buffer) - len(self._mark))
        if ready:
            self._pass_on(bytes(self._buffer[:ready]))
            del self._buffer[:ready]
        if at < 0:
            return False
        del self._buffer[: len(self._mark)]
        self._end_part()
        self._step = self._end_boundary
        return True

    def _pass_on(self, data: bytes) -> None:
        if self._field is None:
            self._sink.write(data)
            return
        self._field += data
        if len(self._field) > MAX_FIELD_BYTES:
            raise BadInput(f"the field {self._name} is too long")

    def _end_part(self) -> None:
        if self._field is None:
            self._sink.close_file()
        else:
            self._sink.field(self._name, self._field.decode("utf-8", "replace"))

    def _cut_at_mark(self) -> bool:
        at = self._buffer.find(self._mark)
        if at >= 0:
            del self._buffer[: at + len(self._mark)]
        elif len(self._buffer) > MAX_HEAD_BYTES:
            raise BadInput("the form is not valid: it does not begin with its boundary")
        return at >= 0


def parse_boundary(content_type: str) -> bytes | None:
    """Return the boundary of a form with files; None for any other content type."""
    message = Message()
    message["content-type"] = content_type
    boundary = message.get_param("boundary")
    is_form = message.get_content_type() == "multipart/form-data"
    return (
        boundary.encode("latin-1", "replace")
        if is_form and isinstance(boundary, str) and boundary
        else None
    )


def _parse_head(head: bytes) -> tuple[str, str | None]:
    """Return the name of a part, and the name of its file or None. Raise BadInput."""
    lines = head.decode("utf-8", "replace").split("\r\n")
    value = next(
        (
            line.partition(":")[2]
            for line in lines
            if line.lower().startswith("content-disposition:")
        ),
        "",
    )
    parameters = _parse_parameters(value)
    if "name" not in parameters:
        raise BadInput("the form is not valid: a part has no name")
    return parameters["name"], parameters.get("filename")


def _parse_parameters(value: str) -> dict[str, str]:
    """Return the parameters of a header as browsers write them: quoted, with `%22` for a quote."""
    return {
        found[1].lower(): (found[2] or found[3] or "").replace("%22", '"')
        for found in _PARAMETER.finditer(value)
    }
