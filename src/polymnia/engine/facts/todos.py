"""To-dos: entities that are open, done, cancelled or overdue."""

from functools import partial

from polymnia.engine.facts.remember import OPEN, TODO_TYPES
from polymnia.errors import BadInput
from polymnia.model import Entity, Within
from polymnia.model.passages import US_PER_DAY
from polymnia.search.terms import fold, terms_of
from polymnia.stores.clock import now_us
from polymnia.stores.contract import Reader

DAY = US_PER_DAY
EVENT_TYPES = ("appointment", "event", "meeting", "trip", "visit")
OVERDUE = "overdue"
STATUSES = (OPEN, "done", "cancelled")
# Other words for a status.
_STATUS_WORDS = {
    "completed": "done",
    "complete": "done",
    "closed": "done",
    "finished": "done",
    "resolved": "done",
    "pending": OPEN,
    "todo": OPEN,
    "to do": OPEN,
    "active": OPEN,
    "in progress": OPEN,
    "canceled": "cancelled",
}
# To-dos without a status that are considered.
MAX_CONSIDERED = 500


def parse_status(text: str, *, with_overdue: bool = False) -> str:
    """Return the status that a word means, such as done for completed; empty for no word.

    A filter may also say overdue. Raise BadInput for other words.
    """
    words = " ".join(fold(text).replace("_", " ").replace("-", " ").split())
    status = _STATUS_WORDS.get(words, words)
    choices = (*STATUSES, OVERDUE) if with_overdue else STATUSES
    if status and status not in choices:
        raise BadInput(f"status: {text!r} is unknown; use {', '.join(choices)}")
    return status


def entities_with_status(reader: Reader, status: str) -> list[Entity]:
    """Return outlines of the entities with a status: open, done, cancelled or overdue.

    Raise BadInput for another one.
    """
    status = parse_status(status, with_overdue=True)
    if status == OVERDUE:
        return [entity for entity in _open_entities(reader) if is_overdue(entity)]
    if status == OPEN:
        return _open_entities(reader)
    return reader.with_status(status)


def is_overdue(entity: Entity) -> bool:
    """Return True from the day after an open entity was due. An appointment is then over."""
    is_open = entity.status in ("", OPEN) and fold(entity.type) not in EVENT_TYPES
    return is_open and bool(entity.due) and entity.due // DAY < now_us() // DAY


def _open_entities(reader: Reader) -> list[Entity]:
    """Return the open entities, and to-dos of other clients that have no status."""

    def without_status(kind: str) -> list[Entity]:
        cards = reader.candidates(terms_of(kind), MAX_CONSIDERED, Within(types=(kind,)))
        names = {passage.entity for passage in cards}
        outlines = reader.outlines(names) if names else []
        return [entity for entity in outlines if not entity.status]

    entities, *others = reader.together(
        partial(reader.with_status, OPEN),
        *[partial(without_status, kind) for kind in TODO_TYPES],
    )
    for todos in others:
        entities += todos
    today = now_us() // DAY
    opened = {}
    for entity in entities:
        is_event = fold(entity.type) in EVENT_TYPES
        if not is_event or not entity.due or entity.due // DAY >= today:
            opened[entity.id] = entity
    return list(opened.values())
