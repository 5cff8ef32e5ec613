"""Replies: items as lines for a model and as JSON, in a budget of tokens."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct, to_builtins
from msgspec.json import encode
from msgspec.structs import replace

from polymnia.dialects.base import Reply
from polymnia.dialects.native.shapes import MAX_TOKENS, Bounded, Items
from polymnia.engine.facts.briefing_text import STORED
from polymnia.engine.facts.remember import OPEN
from polymnia.engine.facts.todos import is_overdue
from polymnia.engine.history.changes import Difference, client_label
from polymnia.errors import BadInput
from polymnia.model import Author, Change, Entity, Fact, Relation
from polymnia.search.hidden import without_hidden
from polymnia.search.terms import one_line
from polymnia.search.times import day_name, iso_time
from polymnia.search.tokens import estimate_tokens, shorten_to

# Reserved for the heading, the note and the count of what was left out.
_FRAME_TOKENS = 40
_MIN_ITEM_TOKENS = 12
# Less room than this is not worth the beginning of a long text.
_MIN_CUT_TOKENS = 60
# The separators between an item and its neighbours.
_SEPARATOR_TOKENS = 2
_MAX_CURSOR_DIGITS = 9
_MAX_DIFFERENCES = 6
_MAX_DIFFERENCE_LETTERS = 120
_MIDNIGHT = "T00:00:00Z"
_STRUCTURED = re.compile(r"\n(?:```|[ \t]|[-*|] |\d+[.)] )")


class Item(Struct, frozen=True):
    """One item of a reply: a line for the model, and the same as JSON.

    Items with the same `row` share a line, which begins with it.
    """

    line: str
    data: dict[str, Any]
    row: str = ""

    @property
    def tokens(self) -> int:
        """The cost of the line or of the JSON, whichever is higher: clients show a model either."""
        line_tokens = estimate_tokens(self.line)
        data_tokens = estimate_tokens(encode(self.data).decode())
        return max(line_tokens, data_tokens) + _SEPARATOR_TOKENS


def offset_of(cursor: str) -> int:
    """Return how many items a cursor skips. Raise BadInput if it is not one of ours."""
    if not cursor:
        return 0
    is_number = cursor.isascii() and cursor.isdigit()
    if not is_number or len(cursor) > _MAX_CURSOR_DIGITS:
        advice = "pass the cursor of the last reply, or omit it"
        raise BadInput(f"cursor: {cursor!r} is not a valid cursor; {advice}")
    return int(cursor)


def page_reply(
    items: Sequence[Item],
    arguments: Bounded,
    *,
    note: str = "",
    note_if_empty: str = "",
    head: str = STORED,
    note_first: bool = False,
) -> Reply:
    """Return the page of the items that the arguments ask for. `note_if_empty` is for a page \
without items."""
    offset = offset_of(arguments.cursor)
    page = items[offset : offset + arguments.limit]
    if not page:
        note = note or note_if_empty
    return bounded_reply(
        page,
        max_tokens=arguments.max_tokens,
        offset=offset,
        total=len(items),
        note=note,
        head=head,
        note_first=note_first,
    )


def bounded_reply(
    items: Sequence[Item],
    *,
    max_tokens: int,
    offset: int = 0,
    total: int | None = None,
    note: str = "",
    next_cursor: str = "",
    head: str = STORED,
    note_first: bool = False,
) -> Reply:
    """Return the items that fit into the budget. They begin at `offset` of `total` items.

    `next_cursor` is where to read on if all of the items fit. The note follows the items, or with
    `note_first` the heading.
    """
    note = _short_note(note, max_tokens)
    shown = fitting_items(items, max_tokens, note, head)
    if total is None:
        total = offset + len(items)
    left_out = max(total - offset - len(shown), 0)
    more = ""
    if left_out:
        next_cursor = str(offset + len(shown))
        more = f"{left_out} more: pass cursor {next_cursor!r}, or raise max_tokens."
    elif next_cursor:
        more = f"There are more: pass cursor {next_cursor!r}."
    lines = item_lines(shown)
    if shown:
        lines.insert(0, head)
        lines.append(_describe_cut(shown, items, max_tokens))
    lines.insert(1 if note_first else len(lines), note)
    lines.append(more)
    text = "\n".join(line for line in lines if line)
    data = [item.data for item in shown]
    return clean_reply(text, Items(items=data, left_out=left_out, cursor=next_cursor, note=note))


def clean_reply(text: str, items: Struct) -> Reply:
    """Return a reply without hidden characters, as text and as JSON."""
    encoded = encode(items)
    plain = encoded.decode()
    # JSON escapes control characters.
    if b"\\u00" in encoded or without_hidden(plain) != plain:
        encoded = encode(_without_hidden(to_builtins(items)))
    return Reply(without_hidden(text), Raw(encoded))


def _without_hidden(value: Any) -> Any:
    if isinstance(value, str):
        return without_hidden(value)
    if isinstance(value, list):
        return [_without_hidden(item) for item in value]
    if isinstance(value, dict):
        return {_without_hidden(field): _without_hidden(item) for field, item in value.items()}
    return value


def item_lines(items: Sequence[Item]) -> list[str]:
    """Return the lines of the items. Those of one row share a line."""
    lines: list[str] = []
    row = ""
    for item in items:
        if item.row and item.row == row:
            lines[-1] += f"; {item.line}"
        else:
            lines.append(item.row + item.line)
        row = item.row
    return lines


def _describe_cut(shown: Sequence[Item], items: Sequence[Item], max_tokens: int) -> str:
    """Return how much is missing of the last text, and what shows it; empty if it is whole."""
    last, whole = shown[-1], items[len(shown) - 1]
    length, total = len(last.data.get("text", "")), len(whole.data.get("text", ""))
    if length >= total:
        return ""
    needed = max_tokens + whole.tokens - last.tokens
    needed = min(MAX_TOKENS, -(-needed // 100) * 100)
    missing = f"{total - length:,} of {total:,} characters are left out"
    if max_tokens >= MAX_TOKENS:
        return f"The last text is cut: {missing}. recall shows passages of it."
    return f"The last text is cut: {missing}. Pass max_tokens {needed}."


def receipt_reply(items: list[dict[str, Any]], note: str = "", lines: Sequence[str] = ()) -> Reply:
    """Return a receipt. Without lines of its own the text is the JSON, one item on each line."""
    if not lines:
        lines = [encode(item).decode() for item in items]
    return clean_reply("\n".join(lines), Items(items=items, note=note))


def fitting_items(
    items: Sequence[Item], max_tokens: int, note: str = "", head: str = STORED
) -> list[Item]:
    """Return the items that fit into the budget beside a note and a heading.

    The first item is shortened rather than dropped: an empty reply would look like an empty memory.
    """
    note = _short_note(note, max_tokens)
    tokens_left = max_tokens - _FRAME_TOKENS - estimate_tokens(note) - estimate_tokens(head)
    fitting: list[Item] = []
    for item in items:
        if item.tokens > tokens_left:
            # No page has room for it: cut it here, or the pages after it could not be read.
            is_too_long = item.tokens > max_tokens - _FRAME_TOKENS and tokens_left > _MIN_CUT_TOKENS
            if is_too_long or not fitting:
                fitting.append(_shorten(item, max(tokens_left, _MIN_ITEM_TOKENS)))
            return fitting
        fitting.append(item)
        tokens_left -= item.tokens
    return fitting


def _short_note(note: str, max_tokens: int) -> str:
    """Return the note in at most half of the budget."""
    if not note:
        return ""
    return shorten_to(note, max(max_tokens // 2, _MIN_ITEM_TOKENS))


def _shorten(item: Item, max_tokens: int) -> Item:
    """Return the item with as much of its text as fits."""
    text = str(item.data.get("text", ""))
    shortest = _with_text(item, text, shorten_to(text, 1))
    best = shortest
    # The line and the JSON spell a text differently, so the room for it is found by bisection.
    low, high = 1, estimate_tokens(text)
    while low <= high:
        middle = (low + high) // 2
        candidate = _with_text(item, text, shorten_to(text, middle))
        if candidate.tokens <= max_tokens:
            best, low = candidate, middle + 1
        else:
            high = middle - 1
    if best.tokens <= max_tokens:
        return best
    return _first_field(best, max_tokens)


def _with_text(item: Item, old: str, new: str) -> Item:
    if not old:
        return replace(item, line=shorten_to(item.line, _MIN_ITEM_TOKENS))
    line = item.line.replace(old, new)
    if "\n" in item.line:  # each line of the text has a mark before it
        line = shorten_to(item.line, estimate_tokens(new) + _MIN_ITEM_TOKENS)
    return replace(item, line=line, data={**item.data, "text": new})


def _first_field(item: Item, max_tokens: int) -> Item:
    """Return what the item is about, shortened: its names are too long for the budget."""
    field, value = next(iter(item.data.items()))
    # JSON spends more tokens than the value has, on quotes, escapes and the field's name.
    room = max(max_tokens // 3, 1)
    line = shorten_to(item.line, max_tokens - _SEPARATOR_TOKENS)
    return Item(line, {field: shorten_to(str(value), room)})


def fact_data(name: str, fact: Fact, author: Author | None, note: str = "") -> dict[str, Any]:
    """Return a fact of an entity as JSON, without what is empty."""
    data: dict[str, Any] = {"name": name, "fact": fact.ordinal, "text": prose(fact.text)}
    data |= {"when": short_time(fact.valid_at), "source": fact.source}
    data |= provenance(author)
    data["note"] = note
    return _without_blanks(data)


def fact_text(ordinal: int, text: str, labels: str) -> str:
    """Return a fact with what is said of it in brackets, so that no line of it can imitate ours."""
    first, *rest = text.splitlines() or [""]
    if first.endswith("]"):
        first = f'"{first}"'  # its brackets are not ours
    number = f"#{ordinal} " if ordinal > 0 else ""
    lines = [f"  {number}{first}"]
    if rest:
        lines += [f"    | {part}" for part in rest]
        if labels:
            lines.append(f"    [{labels}]")
    elif labels:
        lines[0] += f" [{labels}]"
    return "\n".join(lines)


def entity_data(entity: Entity, workspace: str, relation_count: int) -> dict[str, Any]:
    """Return an entity without its facts as JSON, without what is empty."""
    data = {
        "name": entity.name,
        "type": entity.type,
        "text": one_line(entity.summary or ""),
        "tags": list(entity.tags),
        "facts": len(entity.facts),
        "relations": relation_count,
        "updated": short_time(entity.updated_at),
        "workspace": workspace,
    }
    return _without_blanks(data)


def describe_plan(entity: Entity) -> list[str]:
    """Return what is said of a to-do beside its type: its due day, and its status if not open."""
    labels = []
    if entity.due:
        due = day_name(entity.due)
        labels.append(f"OVERDUE since {due}" if is_overdue(entity) else f"due {due}")
    if entity.status and entity.status != OPEN:
        labels.append(entity.status)
    elif entity.status == OPEN and not entity.due:
        labels.append(OPEN)
    return labels


def relation_item(relation: Relation, workspace: str = "") -> Item:
    """Return a relation, with its workspace unless the item above it names that."""
    data = {"from": relation.source, "type": relation.type, "to": relation.target}
    if workspace:
        data["workspace"] = workspace
    return line_item(f"  {relation.source} -{relation.type}-> {relation.target}", data)


def change_item(change: Change, workspace: str, differences: list[Difference]) -> Item:
    """Return a change with the first few things that it altered."""
    shown = [one.describe(_excerpt, empty="none") for one in differences[:_MAX_DIFFERENCES]]
    if len(differences) > len(shown):
        shown.append(f"and {len(differences) - len(shown)} more")
    text = "; ".join(shown)
    data = {
        "change": change.id,
        "at": short_time(change.at),
        "by": change.actor,
        "operation": change.operation,
        "text": text,
        "workspace": workspace,
    }
    at = day_name(change.at)
    by = client_label(change.actor)
    heading = f"- {workspace}:{change.id}, {at}, {by}, {change.operation}"
    return line_item(f"{heading}: {text}", data)


def _excerpt(text: str) -> str:
    text = one_line(text)
    if len(text) <= _MAX_DIFFERENCE_LETTERS:
        return text
    return text[: _MAX_DIFFERENCE_LETTERS - 1] + "…"


def provenance(author: Author | None) -> dict[str, str]:
    """Return when and by which client something was written."""
    if author is None:
        return {}
    return {"written": short_time(author.at), "by": author.actor}


def short_time(at: int) -> str:
    """Return a time to the minute, or only the date if it is midnight; empty if it is unknown."""
    text = iso_time(at)
    if text is None:
        return ""
    if text.endswith(_MIDNIGHT):
        return text.removesuffix(_MIDNIGHT)
    to_the_minute = len("2026-04-27T14:00")
    return text[:to_the_minute] + "Z"


def line_item(line: str, data: dict[str, Any]) -> Item:
    """Return an item with its line. Names and types may contain line breaks; the line may not."""
    return Item(" ".join(line.splitlines()), data)


def prose(text: str) -> str:
    """Return a text as replies show it: line breaks only where they carry meaning.

    A fence, a list, a table or an indented line keeps all breaks.
    """
    text = without_hidden(text)
    if _STRUCTURED.search(text):
        return "\n".join(line.rstrip() for line in text.splitlines())
    return one_line(text)


def _without_blanks(data: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in data.items() if value not in ("", [], None)}


def drop_empty(item: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that say something: a receipt without conflicts has no list of them."""
    return {field: value for field, value in item.items() if value not in ("", [], 0, False, None)}
