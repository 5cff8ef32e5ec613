"""Facts as rows of a list: observations, cards of entities, and notes, each with its author and why it was found."""

from hashlib import sha256

from msgspec import Struct

from polymnia.engine import notes
from polymnia.engine.browse import SignedHit
from polymnia.engine.entities import open_named
from polymnia.engine.history import authors
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput, EntityNotFound, TextChanged
from polymnia.model import NOTE, Entity, PassageKind
from polymnia.web.forms import Fields

_SEPARATOR = "\t"
_KINDS: tuple[PassageKind, ...] = ("entity", "observation", "note")


class FactKey(Struct, frozen=True):
    """What identifies a fact: an entity's card by its name, an observation by name and ordinal, a note by its key."""

    kind: PassageKind
    name: str
    ordinal: int = 0

    @property
    def value(self) -> str:
        """The key as the value of a checkbox."""
        return _SEPARATOR.join((self.kind, str(self.ordinal), self.name))

    @property
    def fields(self) -> dict[str, object]:
        """The key as fields of an address."""
        return {"kind": self.kind, "name": self.name, "n": self.ordinal or None}


class FactRow(Struct, frozen=True, kw_only=True):
    """A fact as a list shows it. `score` is its share of the best score, 0 if it was not searched for."""

    key: FactKey
    type: str
    text: str
    shown: str
    at: int
    valid_at: int = 0
    actor: str = ""
    tags: tuple[str, ...] = ()
    score: float = 0.0
    reasons: tuple[str, ...] = ()
    alike: int = 0
    is_weak: bool = False

    @property
    def stamp(self) -> str:
        """What identifies the text, so that a form can tell whether somebody changed it meanwhile."""
        return stamp(self.text)


def stamp(text: str) -> str:
    """Return what identifies a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def hit_row(signed: SignedHit, best: float) -> FactRow:
    """Return the row of a hit. `best` is the best score of the result."""
    passage = signed.hit.passage
    return FactRow(
        key=FactKey(passage.kind, passage.entity, max(passage.ordinal, 0)),
        type=passage.type,
        text=passage.text,
        shown=signed.hit.excerpt,
        at=passage.valid_at or passage.created_at,
        actor=signed.actor,
        tags=passage.tags,
        score=max(0.0, min(1.0, signed.hit.score / best)) if best > 0 else 0.0,
        reasons=signed.hit.reasons,
        alike=signed.hit.alike,
        is_weak=signed.hit.is_weak,
    )


def observation_rows(memory: Memory, entity: Entity) -> list[FactRow]:
    """Return the observations of an entity, with their authors."""
    written = authors(memory, [(entity.name, each.ordinal) for each in entity.observations])
    return [
        FactRow(
            key=FactKey("observation", entity.name, each.ordinal),
            type=entity.type,
            text=each.text,
            shown=each.text,
            at=each.created_at,
            valid_at=each.valid_at,
            actor=written[entity.name, each.ordinal].actor
            if (entity.name, each.ordinal) in written
            else "",
            tags=entity.tags,
        )
        for each in entity.observations
    ]


def load_row(memory: Memory, key: FactKey) -> FactRow:
    """Return the row of a fact as it is now. Raise EntityNotFound, or TextChanged if it does not exist any more."""
    if key.kind == "note":
        return _note_row(memory, key)
    found = open_named(memory, [key.name]).entities
    if not found:
        raise EntityNotFound(key.name)
    entity = found[0]
    if key.kind == "entity":
        text = entity.summary or ""
        actor = authors(memory, [(entity.name, 0)]).get((entity.name, 0))
        return FactRow(
            key=key,
            type=entity.type,
            text=text,
            shown=text,
            at=entity.updated_at,
            actor=actor.actor if actor else "",
            tags=entity.tags,
        )
    for row in observation_rows(memory, entity):
        if row.key == key:
            return row
    raise TextChanged(f"observation {key.ordinal} of {key.name}", None)


def parse_key(fields: Fields) -> FactKey:
    """Return the fact that the fields of an address or form name. Raise BadInput."""
    kind = fields["kind"]
    if kind not in _KINDS:
        raise BadInput(f"kind: expected one of {', '.join(_KINDS)}, got {kind!r}")
    return FactKey(_KINDS[_KINDS.index(kind)], fields["name"], fields.number("n") or 0)


def parse_picks(values: list[str]) -> list[FactKey]:
    """Return the facts whose checkboxes were ticked. Raise BadInput."""
    found = []
    for value in values:
        kind, _, rest = value.partition(_SEPARATOR)
        ordinal, _, name = rest.partition(_SEPARATOR)
        if kind not in _KINDS or not ordinal.isdigit():
            raise BadInput("the selection is not valid: reload the page and select again")
        found.append(FactKey(_KINDS[_KINDS.index(kind)], name, int(ordinal)))
    return found


def _note_row(memory: Memory, key: FactKey) -> FactRow:
    note = notes.in_vault(memory, key.name)
    if note is None:
        raise TextChanged(f"the note {key.name}", None)
    actor = authors(memory, [(note.key, NOTE)]).get((note.key, NOTE))
    return FactRow(
        key=key,
        type="note",
        text=note.content,
        shown=note.content,
        at=note.updated_at or note.created_at,
        actor=actor.actor if actor else "",
        tags=note.tags,
    )
