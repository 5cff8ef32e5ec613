"""What a browser sends: the fields of a query or a form."""

from collections.abc import Iterator
from urllib.parse import parse_qsl

from polymnia.errors import BadInput

MAX_FIELDS = 10_000
_URLENCODED = "application/x-www-form-urlencoded"


class Fields:
    """The fields of a query or form by name. A name may have several values. Text has line feeds as line ends."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value.replace("\r\n", "\n"))

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
        """Return a whole number; None if the field is missing or empty. Raise BadInput if it is not a number."""
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
    """Return the fields of a form without files. Raise BadInput."""
    if body and content_type.partition(";")[0].strip().lower() != _URLENCODED:
        raise BadInput(f"a form is expected as {_URLENCODED}")
    return Fields(_parse_pairs(body))


def _parse_pairs(data: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            data.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
            separator="&",
        )
    except ValueError as exc:
        raise BadInput("the form is not valid: expected URL-encoded UTF-8") from exc
