"""What an importer is, and what it may use: the values of foreign JSON, read without trust."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode, encode

from polymnia.engine.intake import Item
from polymnia.engine.secrets import SecretRule, find_secret
from polymnia.importers.source import Source, parse_leniently, replace_unstorable
from polymnia.stores.contract import TableReader

if TYPE_CHECKING:
    from polymnia.folders.sync import SyncReport

# How many examples of one reason a report names.
MAX_EXAMPLES = 5
MAX_NAME_LENGTH = 100
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "[]", "{}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers beyond this are milliseconds: as seconds they would lie after the year 5000.
_MAX_SECONDS = 100_000_000_000


class Places(Struct):
    """How many parts of the input have one thing in common, and the places of the first ones."""

    reason: str
    count: int = 0
    places: list[str] = []

    def add(self, place: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.places) < MAX_EXAMPLES:
            self.places.append(place)

    def sentence(self, what: str = "") -> str:
        """Return the places with their reason."""
        return f"{self.examples}: {what}{self.reason}"

    @property
    def examples(self) -> str:
        """The first places, and how many more there are."""
        more = f" and {self.count - len(self.places)} more" if self.count > len(self.places) else ""
        return f"{', '.join(self.places)}{more}"


class Report:
    """What an importer left out, and what it took that deserves a look, each by reason in the order of the input.

    `secrets` says what to do with a turn of a conversation that seems to contain a key or token.
    """

    def __init__(self, secrets: SecretRule = "warn") -> None:
        self.secrets: SecretRule = secrets
        self._skipped: dict[str, Places] = {}
        self._flagged: dict[str, Places] = {}
        self._left: dict[str, Places] = {}

    def skip(self, place: str, reason: str) -> None:
        """Note that a part of the input was left out."""
        self._skipped.setdefault(reason, Places(reason, places=[])).add(place)

    def flag(self, place: str, reason: str) -> None:
        """Note that a part of the input seems to contain a secret."""
        self._flagged.setdefault(reason, Places(reason, places=[])).add(place)

    def screen(self, place: str, text: str) -> str:
        """Return what somebody said. Note a secret in it; where these are refused, return a sentence instead."""
        kind = find_secret(text) if self.secrets != "off" else ""
        if kind:
            self.flag(place, kind)
        return f"[left out: it may contain {kind}]" if kind and self.secrets == "refuse" else text

    def leave(self, place: str, field: str) -> None:
        """Note that a part was taken without one of its fields, which has no place here."""
        self._left.setdefault(field, Places(field, places=[])).add(place)

    @property
    def skipped(self) -> list[Places]:
        """What was left out."""
        return list(self._skipped.values())

    @property
    def flagged(self) -> list[Places]:
        """What seems to contain a secret."""
        return list(self._flagged.values())

    @property
    def left_fields(self) -> list[Places]:
        """The fields that have no place here."""
        return list(self._left.values())


class Reading(Protocol):
    """Yields what a source holds, and reports what it leaves out. Raises BadInput if the source is damaged."""

    def __call__(self, source: Source, report: Report, /) -> Iterator[Item]: ...


class Importer(Struct, frozen=True):
    """One format: its name for `--from`, what it is called, how it is recognized, and how it is read.

    `read_history` returns all rows of a store, if the format can hold them and the source does. `apply` brings the
    edits of a source into the memory that it was made from, and returns None if it was made from another.
    """

    kind: str
    title: str
    recognizes: Callable[[Source], bool]
    read: Reading
    read_history: Callable[[Source, Report], TableReader | None] | None = None
    apply: "Callable[..., SyncReport | None] | None" = None


def objects(parts: list[Raw], report: Report, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON objects among the parts, decoded one by one, with their places. Skip everything else."""
    for number, part in enumerate(parts):
        value = decode_part(part)
        if isinstance(value, dict):
            yield f"{place}[{number}]", value
        else:
            report.skip(f"{place}[{number}]", "not a JSON object")


def leave_fields(
    value: Mapping[str, Any], known: Collection[str], report: Report, place: str, prefix: str = ""
) -> None:
    """Report the fields that are neither known nor empty."""
    for name, each in value.items():
        if name not in known and each not in _EMPTY:
            report.leave(place, f"{prefix}{name}")


def attribute_texts(attributes: Any, report: Report, place: str, prefix: str) -> Iterator[str]:
    """Yield the attributes of an object as sentences. Report those that are nested."""
    for name, value in attributes.items() if isinstance(attributes, dict) else ():
        if text := _attribute_text(name, value):
            yield text
        elif value not in _EMPTY:
            report.leave(place, f"{prefix}{name}")


def _attribute_text(name: str, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        value = ", ".join(map(str, value))
    if isinstance(value, int | float):
        value = encode(value).decode()
    return (
        replace_unstorable(f"{name}: {value}") if isinstance(value, str) and value.strip() else ""
    )


def decode_part(part: Raw) -> Any:
    """Return the value of a part; None if it is not valid or nested too deeply."""
    try:
        return decode(part)
    except RecursionError:
        return None
    except (DecodeError, UnicodeDecodeError):
        return parse_leniently(bytes(part))


def first_keys(parts: list[Raw]) -> set[str]:
    """Return the keys of the first JSON object among the parts."""
    return next(
        (set(value) for part in parts[:10] if isinstance(value := decode_part(part), dict)), set()
    )


def text_of(value: dict[str, Any], *names: str) -> str:
    """Return the first of these fields that is a text with content, or a number as text; empty if there is none."""
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and not (found.isspace() or not found):
            return replace_unstorable(found)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return str(found)
    return ""


def texts_of(value: Any) -> list[str]:
    """Return the texts of an array, or of a text that is one; skip empty ones and values of other types."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [
        replace_unstorable(each)
        for each in values
        if isinstance(each, str) and each and not each.isspace()
    ]


def tags_of(value: Any) -> tuple[str, ...]:
    """Return tags from an array, or from a text with commas between them, each once."""
    texts = value.split(",") if isinstance(value, str) else value
    return tuple(dict.fromkeys([each.strip() for each in texts_of(texts) if each.strip()]))


def time_of(value: Any) -> int:
    """Return a model time for ISO 8601 text or for seconds or milliseconds since 1970; 0 for anything else.

    Only a text can be a time before 1970, which is negative. A negative number means that there is no time.
    """
    try:
        if isinstance(value, str) and value:
            moment = datetime.fromisoformat(value.strip())
            return (
                moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC) - _EPOCH
            ) // timedelta(microseconds=1)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _MAX_SECONDS else value
            return max(
                (_EPOCH + timedelta(seconds=seconds) - _EPOCH) // timedelta(microseconds=1), 0
            )
    except (ValueError, OverflowError):
        pass
    return 0


def title_of(text: str) -> str:
    """Return the first line of a text, cut at a word, as the name of what it says."""
    line = " ".join(text.strip().split("\n", 1)[0][: 4 * MAX_NAME_LENGTH].split())
    if len(line) <= MAX_NAME_LENGTH:
        return line
    return f"{line[:MAX_NAME_LENGTH].rsplit(' ', 1)[0]}…"
