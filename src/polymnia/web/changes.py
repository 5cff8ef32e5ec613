"""Changes as rows of a list: a sentence, and the texts that differ, word by word."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape
from msgspec import Struct

from polymnia.engine.graph.entities import outlines
from polymnia.engine.history.changes import ChangePage, Difference, differences
from polymnia.engine.memory import Memory
from polymnia.model import Change, ChangeSize
from polymnia.web.sentences import Piece, Sign, describe_change, describe_size
from polymnia.web.text import excerpt, visible

# The differences in a row of a list; the change's own page shows more.
MAX_DIFFERENCES = 3
# Longer texts are not compared word by word.
MAX_COMPARED_CHARS = 4_000
# At least this many changes of one client, within minutes of one another, are folded into one line.
_MIN_BURST = 4
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


class DiffSide(Struct, frozen=True):
    """One text that differs: what it was and what it is, as HTML with the differences marked."""

    before: Markup | None
    after: Markup | None
    label: str = ""


class ChangeView(Struct, frozen=True):
    """A change as a page shows it. `hidden` is the number of differences that are left out.

    Of a large change the page shows only counts, or what concerns one entity.
    """

    id: int
    at: int
    actor: str
    operation: str
    icon: str
    sign: Sign
    pieces: tuple[Piece, ...]
    sides: tuple[DiffSide, ...]
    hidden: int
    is_large: bool = False


def change_rows(
    memory: Memory,
    page: ChangePage,
    *,
    about: Collection[str] | None = None,
    limit: int = MAX_DIFFERENCES,
) -> list[ChangeView]:
    """Return rows for changes, with the types of the entities in them.

    `about` are the names whose differences are shown, at most `limit` in a row.
    """
    entities = outlines(memory, names_in(page.changes))
    types = {name: entity.type for name, entity in entities.items()}
    rows = []
    for change in page.changes:
        size = page.sizes.get(change.id)
        rows.append(change_row(change, types, size=size, about=about, limit=limit))
    return rows


def change_row(
    change: Change,
    types: dict[str, str],
    *,
    size: ChangeSize | None = None,
    about: Collection[str] | None = None,
    limit: int = MAX_DIFFERENCES,
) -> ChangeView:
    """Return the row of a change. `types` are the types of entities by name.

    A change with a `size` is too large to be read as a whole.
    """
    if size is not None and not (change.before or change.after):
        sentence = describe_size(change.operation, size)
    else:
        sentence = describe_change(change, types)
    texts = []
    for difference in differences(change, about):
        # The sentence says already which entities and relations came or went.
        if difference.what not in ("relation", "entity"):
            texts.append(difference)
    return ChangeView(
        id=change.id,
        at=change.at,
        actor=change.actor,
        operation=change.operation,
        icon=sentence.icon,
        sign=sentence.sign,
        pieces=sentence.pieces,
        sides=tuple(side(difference) for difference in texts[:limit]),
        hidden=max(0, len(texts) - limit),
        is_large=size is not None,
    )


def bursts(rows: Sequence[ChangeView]) -> list[list[ChangeView]]:
    """Return the rows in order, in groups: similar changes of a client in a burst are one group."""
    runs: list[list[ChangeView]] = []
    for row in rows:
        if runs and _continues(runs[-1][-1], row):
            runs[-1].append(row)
        else:
            runs.append([row])
    groups: list[list[ChangeView]] = []
    for run in runs:
        if len(run) >= _MIN_BURST:
            groups.append(run)
        else:
            groups += [[row] for row in run]
    return groups


def burst_names(burst: Sequence[ChangeView]) -> list[str]:
    """Return the names in a burst that its first row does not have."""
    names: dict[str, None] = {}
    for row in burst:
        names |= {piece.text: None for piece in row.pieces if piece.kind in ("entity", "note")}
    first = {piece.text for piece in burst[0].pieces}
    return [name for name in names if name not in first]


def _continues(later: ChangeView, row: ChangeView) -> bool:
    """Return True if a row is of the same burst as the one after it."""
    is_alike = (later.actor, later.icon, later.operation) == (row.actor, row.icon, row.operation)
    return is_alike and later.at - row.at <= 180_000_000  # three minutes


def names_in(changes: Iterable[Change]) -> set[str]:
    """Return the names of the entities whose types the rows need."""
    names = set()
    for change in changes:
        for rows in (change.before, change.after):
            # A sentence with more than two names counts them instead.
            for group in rows.facts[:2]:
                names.add(group.entity)
            for relation in rows.relations[:2]:
                names |= {relation.source, relation.target}
    return names - {""}


def side(difference: Difference) -> DiffSide:
    """Return both texts of a difference."""
    label = "" if difference.what in ("fact", "note", "entity") else difference.what
    before, after = difference.before, difference.after
    if before and after and max(len(before), len(after)) <= MAX_COMPARED_CHARS:
        return DiffSide(*compare(before, after), label)
    return DiffSide(_plain(before), _plain(after), label)


def compare(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts as HTML, with the words that differ in <del> and <ins>."""
    old, new = _WORD.findall(visible(before)), _WORD.findall(visible(after))
    left, right = [], []
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        gone, come = "".join(old[old_start:old_end]), "".join(new[new_start:new_end])
        left.append(escape(gone) if kind == "equal" else _wrap("del", gone))
        right.append(escape(come) if kind == "equal" else _wrap("ins", come))
    return Markup("").join(left), Markup("").join(right)


def _wrap(tag: str, text: str) -> Markup:
    return Markup(f"<{tag}>{{}}</{tag}>").format(text) if text else Markup("")


def _plain(text: str | None) -> Markup | None:
    if text is None:
        return None
    return escape(visible(excerpt(text)))
