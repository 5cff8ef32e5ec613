"""Replies: items as lines for a model, in a budget of tokens."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct, to_builtins
from msgspec.json import encode
from msgspec.structs import replace

from polymnia.dialects.base import Reply
from polymnia.dialects.native.shapes import MAX_TOKENS, Bounded, Found
from polymnia.engine.facts.briefing_text import STORED
from polymnia.engine.facts.remember import OPEN
from polymnia.engine.facts.todos import is_overdue
from polymnia.engine.history.changes import Difference, client_label
from polymnia.errors import BadInput
from polymnia.model import Change, Entity, Relation
from polymnia.model.changes import ChangeSize
from polymnia.search.hidden import without_hidden
from polymnia.search.terms import count_noun, one_line
from polymnia.search.times import day_name, iso_time
from polymnia.search.tokens import estimate_tokens, shorten_to

# Reserved for the heading, the note and the count of what was left out.
_FRAME_TOKENS = 40
_MIN_ITEM_TOKENS = 12
# Less room than this is not worth the beginning of a long text.
_MIN_CUT_TOKENS = 60
# The separators between an item and its neighbours.
_SEPARATOR_TOKENS = 2
_MAX_DIFFERENCES = 6
_MAX_DIFFERENCE_LETTERS = 120
_MIDNIGHT = "T00:00:00Z"
_STRUCTURED = re.compile(r"\n(?:```|[ \t]|[-*|] |\d+[.)] )")


class Item(Struct, frozen=True):
    """One item of a reply. Items with the same `row` share a line, which begins with it.

    `data` is the same for programs that ask for JSON, where a tool has it.
    """

    line: str
    row: str = ""
    data: dict[str, Any] | None = None

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.line) + _SEPARATOR_TOKENS


def offset_of(cursor: str) -> int:
    """Return how many items a cursor skips. Raise BadInput if it is not one of ours."""
    if not cursor:
        return 0
    is_number = cursor.isascii() and cursor.isdigit()
    if not is_number or len(cursor) > 9:
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
    data = [item.data for item in shown if item.data is not None]
    return clean_reply(text, Found(items=data, cursor=next_cursor) if data else None)


def clean_reply(text: str, found: Found | None = None) -> Reply:
    """Return a reply without hidden characters: as text and, for programs, as JSON."""
    if found is None:
        return Reply(without_hidden(text))
    encoded = encode(found)
    plain = encoded.decode()
    # JSON escapes control characters.
    if b"\\u00" in encoded or without_hidden(plain) != plain:
        encoded = encode(_without_hidden(to_builtins(found)))
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
    length, total = len(last.line), len(whole.line)
    if length >= total:
        return ""
    needed = max_tokens + whole.tokens - last.tokens
    needed = min(MAX_TOKENS, -(-needed // 100) * 100)
    missing = f"{total - length:,} of {total:,} characters are left out"
    if max_tokens >= MAX_TOKENS:
        return f"The last text is cut: {missing}. recall shows passages of it."
    return f"The last text is cut: {missing}. Pass max_tokens {needed}."


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
                room = max(tokens_left, _MIN_ITEM_TOKENS) - _SEPARATOR_TOKENS
                fitting.append(replace(item, line=shorten_to(item.line, room)))
            return fitting
        fitting.append(item)
        tokens_left -= item.tokens
    return fitting


def _short_note(note: str, max_tokens: int) -> str:
    """Return the note in at most half of the budget."""
    if not note:
        return ""
    return shorten_to(note, max(max_tokens // 2, _MIN_ITEM_TOKENS))


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


def relation_item(relation: Relation, label: str = "") -> Item:
    """Return a relation. The label follows it."""
    return line_item(f"  {relation.source} -{relation.type}-> {relation.target}{label}")


def change_item(
    change: Change, workspace: str, differences: list[Difference], size: ChangeSize | None
) -> Item:
    """Return a change with the first few things that it altered, or its size if it is large."""
    shown = [one.describe(cut_text, empty="none") for one in differences[:_MAX_DIFFERENCES]]
    if len(differences) > len(shown):
        shown.append(f"and {len(differences) - len(shown)} more")
    if size is not None and not shown:
        sign, part = ("+", size.after) if size.after.total else ("-", size.before)
        nouns = (("entity", part.entities), ("fact", part.facts), ("relation", part.relations))
        counts = [count_noun(count, noun) for noun, count in nouns if count]
        shown.append(f"{sign} {', '.join(counts)}")
    at = day_name(change.at)
    by = client_label(change.actor)
    heading = f"- {workspace}:{change.id}, {at}, {by}, {change.operation}"
    return line_item(f"{heading}: {'; '.join(shown)}")


def cut_text(text: str, size: int = _MAX_DIFFERENCE_LETTERS) -> str:
    """Return a text in one line of at most so many characters, with a sign where it is cut."""
    text = one_line(text)
    return text if len(text) <= size else text[: size - 1].rstrip() + "…"


def short_time(at: int) -> str:
    """Return a time to the minute, or only the date if it is midnight; empty if it is unknown."""
    text = iso_time(at)
    if text is None:
        return ""
    if text.endswith(_MIDNIGHT):
        return text.removesuffix(_MIDNIGHT)
    to_the_minute = len("2026-04-27T14:00")
    return text[:to_the_minute] + "Z"


def line_item(line: str, data: dict[str, Any] | None = None) -> Item:
    """Return an item with its line. Names and types may contain line breaks; the line may not."""
    return Item(" ".join(line.splitlines()), data=data)


def prose(text: str) -> str:
    """Return a text as replies show it: line breaks only where they carry meaning.

    A fence, a list, a table or an indented line keeps all breaks.
    """
    text = without_hidden(text)
    if _STRUCTURED.search(text):
        return "\n".join(line.rstrip() for line in text.splitlines())
    return one_line(text)
