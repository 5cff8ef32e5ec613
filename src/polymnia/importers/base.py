"""What an importer is, and what it may use: the values of foreign JSON, read without trust."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from polymnia.engine.facts.secrets import SecretRule, find_secret
from polymnia.engine.transfer.intake import Item
from polymnia.importers.source import Source, parse_leniently, replace_unstorable
from polymnia.model import Entity, Fact, Note, Relation
from polymnia.model.changes import MAX_FACT_BYTES

T = TypeVar("T")

# How many examples of one reason a report names.
MAX_EXAMPLES = 5
MAX_NAME_LENGTH = 100
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "[]", "{}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ReasonPlaces(Struct):
    """How many parts of the input share a reason, and the places of the first ones."""

    reason: str
    count: int = 0
    places: list[str] = []

    def add(self, place: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.places) < MAX_EXAMPLES:
            self.places.append(place)

    def sentence(self) -> str:
        """Return the places with their reason."""
        return f"{self.examples}: {self.reason}"

    @property
    def examples(self) -> str:
        """The first places, and how many more there are."""
        places = ", ".join(self.places)
        hidden = self.count - len(self.places)
        return f"{places} and {hidden} more" if hidden else places


class Report:
    """What an importer dropped, and what seems to be secret, by reason in the order of the input.

    `secrets` says what to do with a text that seems to contain a key or token.
    """

    def __init__(self, secrets: SecretRule = "warn") -> None:
        self.secrets: SecretRule = secrets
        # How many parts of the input were read, and of how many; 0 if that is unknown.
        self.parts_read = 0
        self.parts_in_all = 0
        self._parts: dict[str, ReasonPlaces] = {}
        self._fields: dict[str, ReasonPlaces] = {}
        self._secrets: dict[str, ReasonPlaces] = {}

    def count_parts(self, parts: Collection[T]) -> Iterator[T]:
        """Yield the parts of the input, and count them for the display of progress."""
        return self.count_known(len(parts), parts)

    def count_known(self, total: int, parts: Iterable[T]) -> Iterator[T]:
        """Do the same for parts whose number is known before they are read."""
        self.parts_in_all += total
        for part in parts:
            yield part
            self.parts_read += 1

    def drop_part(self, place: str, reason: str) -> None:
        """Report a part of the input that is not imported."""
        self._parts.setdefault(reason, ReasonPlaces(reason, places=[])).add(place)

    def drop_field(self, place: str, field: str) -> None:
        """Report a field that we cannot store. The rest of its part is imported."""
        self._fields.setdefault(field, ReasonPlaces(field, places=[])).add(place)

    def screen(self, place: str, text: str) -> str:
        """Return the text, or a sentence in its place if it seems to contain a secret.

        Importers of conversations call this for all their texts: users do not read years of them.
        """
        kind = find_secret(text) if self.secrets != "off" else ""
        if not kind:
            return text
        self._secrets.setdefault(kind, ReasonPlaces(kind, places=[])).add(place)
        return f"[left out: it may contain {kind}]"

    def screen_items(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items without facts that are too long, or secrets if these are refused."""
        for item in items:
            if isinstance(item, Entity) and any(map(_is_too_long, item.facts)):
                self.drop_part(item.name, "a text of more than 1 MB: no fact can be so long")
                item = replace(
                    item, facts=tuple(fact for fact in item.facts if not _is_too_long(fact))
                )
            yield self._screen_item(item) if self.secrets == "refuse" else item

    def _screen_item(self, item: Item) -> Item:
        if isinstance(item, Relation):
            source, target, kind = (self.screen("a relation", text) for text in item.key)
            return replace(item, source=source, target=target, type=kind)
        if isinstance(item, Note):
            key = self.screen("the key of a note", item.key)
            content = self.screen(f"the note {key}", item.content)
            tags = tuple(self.screen(f"the note {key}", tag) for tag in item.tags)
            return replace(item, key=key, content=content, tags=tags)
        return self.screen_entity(item)

    def screen_entity(self, item: Entity) -> Entity:
        """Return the entity with a sentence in the place of each text that may be a secret."""
        name = self.screen("the name of an entity", item.name)
        facts = []
        for fact in item.facts:
            text, source = self.screen(name, fact.text), self.screen(name, fact.source)
            facts.append(replace(fact, text=text, source=source))
        return replace(
            item,
            name=name,
            type=self.screen(name, item.type),
            summary=item.summary and self.screen(name, item.summary),
            tags=tuple(self.screen(name, tag) for tag in item.tags),
            facts=tuple(facts),
        )

    @property
    def dropped_parts(self) -> list[ReasonPlaces]:
        """The parts that were not imported."""
        return list(self._parts.values())

    @property
    def dropped_fields(self) -> list[ReasonPlaces]:
        """The fields that we cannot store."""
        return list(self._fields.values())

    @property
    def secret_places(self) -> list[ReasonPlaces]:
        """The texts that seem to contain a secret."""
        return list(self._secrets.values())


def _is_too_long(fact: Fact) -> bool:
    size = len(fact.text)
    return size * 4 > MAX_FACT_BYTES and len(fact.text.encode()) > MAX_FACT_BYTES


class Importer(Struct, frozen=True):
    """One format: its name for `--from`, its title, how it is recognized, and how it is read.

    `read` yields the items, or raises BadInput for a damaged source.
    """

    kind: str
    title: str
    recognizes: Callable[[Source], bool]
    read: Callable[[Source, Report], Iterator[Item]]


def objects(parts: list[Raw], report: Report, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON objects among the parts with their places. Report everything else."""
    for number, part in enumerate(report.count_parts(parts)):
        value = decode_part(part)
        if isinstance(value, dict):
            yield f"{place}[{number}]", value
        else:
            report.drop_part(f"{place}[{number}]", "not a JSON object")


def drop_fields(
    fields: Mapping[str, Any], known: Collection[str], report: Report, place: str, prefix: str = ""
) -> None:
    """Report the fields that are neither known nor empty."""
    for name, value in fields.items():
        if name not in known and value not in _EMPTY:
            report.drop_field(place, f"{prefix}{name}")


def attribute_texts(attributes: Any, report: Report, place: str, prefix: str) -> Iterator[str]:
    """Yield the attributes of an object as sentences. Report those that are nested."""
    if not isinstance(attributes, dict):
        return
    for name, value in attributes.items():
        text = value
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            text = ", ".join(map(str, value))
        elif isinstance(value, int | float):
            text = encode(value).decode()
        if isinstance(text, str) and text.strip():
            yield replace_unstorable(f"{name}: {text}")
        elif value not in _EMPTY:
            report.drop_field(place, f"{prefix}{name}")


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
    for part in parts[:10]:
        value = decode_part(part)
        if isinstance(value, dict):
            return set(value)
    return set()


def dicts_in(values: Any) -> list[dict[str, Any]]:
    """Return the JSON objects in an array; none if it is not an array."""
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, dict)]


def text_of(value: dict[str, Any], *names: str) -> str:
    """Return the first of these fields that is a text or a number, as text; empty if none is."""
    for name in names:
        field = value.get(name)
        if isinstance(field, str) and field and not field.isspace():
            return replace_unstorable(field)
        if isinstance(field, int | float) and not isinstance(field, bool):
            return str(field)
    return ""


def texts_of(value: Any) -> list[str]:
    """Return the texts of an array, or a single text. Drop blank texts and other types."""
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    return [replace_unstorable(text) for text in texts if text and not text.isspace()]


def tags_of(value: Any) -> tuple[str, ...]:
    """Return tags from an array, or from a text with commas between them, without repetition."""
    texts = value.split(",") if isinstance(value, str) else value
    tags = [text.strip() for text in texts_of(texts)]
    return tuple(dict.fromkeys(tags))


def time_of(value: Any) -> int:
    """Return a model time for ISO 8601, or for seconds or milliseconds since 1970; else 0.

    Only a text can be a time before 1970, which is negative. A negative number means no time.
    """
    # Numbers beyond this are milliseconds: as seconds they would lie after the year 5000.
    max_seconds = 100_000_000_000
    try:
        if isinstance(value, str) and value:
            moment = datetime.fromisoformat(value.strip())
            # Converted to UTC, a time beyond the years 1 to 9999 raises OverflowError.
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
            return (moment - _EPOCH) // _MICROSECOND
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > max_seconds else value
            moment = _EPOCH + timedelta(seconds=seconds)
            return max((moment - _EPOCH) // _MICROSECOND, 0)
    except (ValueError, OverflowError):
        pass
    return 0


def make_entity(name: str, kind: str, facts: Sequence[Fact], **fields: Any) -> Entity:
    """Return an entity with these facts and other fields of `Entity`."""
    return Entity(name, kind, tuple(facts), next_ordinal=len(facts) + 1, **fields)


def make_observations(
    texts: Iterable[str], source: str, created_at: int = 0, valid_at: int = 0
) -> list[Fact]:
    """Return the texts as numbered facts."""
    return [
        Fact(ordinal, text, created_at, valid_at, source) for ordinal, text in enumerate(texts, 1)
    ]


def title_of(text: str) -> str:
    """Return the first line of a text, cut at a word, as the name of what it says."""
    line = " ".join(text.strip().split("\n", 1)[0][: 4 * MAX_NAME_LENGTH].split())
    if len(line) <= MAX_NAME_LENGTH:
        return line
    return f"{line[:MAX_NAME_LENGTH].rsplit(' ', 1)[0]}…"
