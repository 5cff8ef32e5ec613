"""Which texts can be stored: all that UTF-8 and every database can hold."""

from collections.abc import Iterator

from polymnia.errors import BadInput
from polymnia.model.changes import Rows
from polymnia.model.graph import Observation


def require_storable(rows: Rows) -> None:
    """Raise BadInput if a text has a NUL character or half of a surrogate pair."""
    joined = "\n".join(_texts(rows))
    if "\x00" in joined:
        raise BadInput("a text contains a NUL character (U+0000), which cannot be stored; remove it")
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError as exc:
            raise BadInput("a text contains half of a surrogate pair, which is no character; remove it") from exc


def _texts(rows: Rows) -> Iterator[str]:
    for entity in rows.entities:
        yield from (entity.name, entity.type, entity.summary or "", *entity.tags)
        yield from _texts_of(entity.observations)
    for each in rows.observations:
        yield from _texts_of(each.observations)
    for relation in rows.relations:
        yield from relation.key
    for note in rows.notes:
        yield from (note.key, note.content, note.scope.owner, note.scope.session, *note.tags)


def _texts_of(observations: tuple[Observation, ...]) -> Iterator[str]:
    for observation in observations:
        yield observation.text
        if observation.source:
            yield observation.source
