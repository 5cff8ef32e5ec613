"""What a browser sends: the fields of a query or a form, and uploaded files."""

from collections.abc import Iterator, Mapping
from email.message import Message
from urllib.parse import parse_qsl

from msgspec import Struct

from polymnia.errors import BadInput

MAX_FIELDS = 10_000
_URLENCODED = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"


class Upload(Struct, frozen=True):
    """A file that was uploaded: the name that the browser gave it, and its bytes."""

    name: str
    data: bytes


class Fields:
    """The fields of a query or form by name. A name may have several values. Text has line feeds as line ends."""

    def __init__(self, pairs: list[tuple[str, str]], files: Mapping[str, list[Upload]] | None = None) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value.replace("\r\n", "\n"))
        self.files = files or {}

    def __getitem__(self, name: str) -> str:
        """Return the first value. Raise BadInput if there is none."""
        if name not in self._values:
            raise BadInput(f"the field {name} is missing")
        return self._values[name][0]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str, default: str = "") -> str:
        """Return the first value, or the default."""
        return self._values.get(name, [default])[0]

    def all(self, name: str) -> list[str]:
        """Return every value."""
        return list(self._values.get(name, []))

    def number(self, name: str) -> int | None:
        """Return a whole number; None if the field is missing or empty. Raise BadInput if it is none."""
        text = self.get(name).strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise BadInput(f"{name}: expected a number, got {text[:40]!r}")
        return int(text)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every name and value, several values of a name one after another."""
        for name, values in self._values.items():
            for value in values:
                yield name, value


def parse_query(query: bytes) -> Fields:
    """Return the fields of a URL's query. Raise BadInput."""
    return Fields(_parse_pairs(query))


def parse_form(content_type: str, body: bytes) -> Fields:
    """Return the fields and files of a form. Raise BadInput."""
    kind, boundary = _parse_content_type(content_type)
    if kind == _MULTIPART and boundary:
        return _parse_multipart(boundary.encode("latin-1"), body)
    if kind == _URLENCODED or not body:
        return Fields(_parse_pairs(body))
    raise BadInput(f"a form is expected as {_URLENCODED} or {_MULTIPART}")


def _parse_pairs(data: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS, separator="&"
        )
    except ValueError as exc:
        raise BadInput("the form is not valid: expected URL-encoded UTF-8") from exc


def _parse_multipart(boundary: bytes, body: bytes) -> Fields:
    pairs: list[tuple[str, str]] = []
    files: dict[str, list[Upload]] = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:]:
        if part.startswith(b"--"):
            break
        head, blank, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name, file = _parse_disposition(head)
        if not blank or name is None:
            raise BadInput("the form is not valid: a part has no name")
        if file is None:
            pairs.append((name, content.decode("utf-8", "replace")))
        elif file or content:  # a browser sends an empty file if none was chosen
            files.setdefault(name, []).append(Upload(file, content))
    return Fields(pairs, files)


def _parse_disposition(head: bytes) -> tuple[str | None, str | None]:
    """Return the name of a part, and the name of its file; None where there is none."""
    lines = head.decode("utf-8", "replace").split("\r\n")
    value = next((line.partition(":")[2] for line in lines if line.lower().startswith("content-disposition:")), "")
    message = Message()
    message["content-disposition"] = value.strip()
    name = message.get_param("name", header="content-disposition")
    return (name if isinstance(name, str) else None), message.get_filename()


def _parse_content_type(value: str) -> tuple[str, str | None]:
    message = Message()
    message["content-type"] = value
    boundary = message.get_param("boundary")
    return message.get_content_type(), boundary if isinstance(boundary, str) else None
