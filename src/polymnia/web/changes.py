"""Changes as rows of a list: a sentence, and the texts that differ, word by word."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup, escape
from msgspec import Struct

from polymnia.engine.graph.entities import outlines
from polymnia.engine.history.changes import ChangePage, Difference, differences, merge_target
from polymnia.engine.memory import Memory
from polymnia.model import Change, ChangeSize, Entity, FactSet, Note, Relation
from polymnia.search.terms import count_noun
from polymnia.web.text import excerpt, visible

# The differences in a row of a list; the change's own page shows more.
MAX_DIFFERENCES = 3
# Longer texts are not compared word by word.
MAX_COMPARED_CHARS = 4_000
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


# How the sentences about some operations begin.
_BEGINS = {
    "import": "imported: ",
    "merge_entities": "merged entities: ",
    "undo": "undid a change: ",
    "restore": "restored from the trash: ",
}
# Names that a sentence lists before it counts them.
_MAX_NAMES = 3

Sign = Literal["add", "mod", "del"]


class Piece(Struct, frozen=True):
    """A part of a sentence: plain text, or the name of an entity or note."""

    kind: Literal["text", "quiet", "entity", "note", "relation"]
    text: str
    type: str = ""


class Sentence(Struct, frozen=True):
    """The icon, the sign and the words for a change."""

    icon: str
    sign: Sign
    pieces: tuple[Piece, ...]


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
    """Return the rows in order, in groups: four or more similar changes in a burst are one group.

    They are of one client, within minutes of one another.
    """
    runs: list[list[ChangeView]] = []
    for row in rows:
        later = runs[-1][-1] if runs else row
        is_alike = _kind_of(later) == _kind_of(row)
        if runs and is_alike and later.at - row.at <= 180_000_000:  # three minutes
            runs[-1].append(row)
        else:
            runs.append([row])
    groups: list[list[ChangeView]] = []
    for run in runs:
        if len(run) >= 4:
            groups.append(run)
        else:
            groups += [[row] for row in run]
    return groups


def _kind_of(row: ChangeView) -> tuple[str, str, str]:
    return row.actor, row.icon, row.operation


def burst_names(burst: Sequence[ChangeView]) -> list[str]:
    """Return the names in a burst that its first row does not have."""
    names: dict[str, None] = {}
    for row in burst:
        names |= {piece.text: None for piece in row.pieces if piece.kind in ("entity", "note")}
    first = {piece.text for piece in burst[0].pieces}
    return [name for name in names if name not in first]


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


def join_words(words: Sequence[str]) -> str:
    """Return words with commas and an `and` between them."""
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def describe_size(operation: str, size: ChangeSize) -> Sentence:
    """Return the sentence about a change whose rows are only counted."""
    before, after = size.before, size.after
    counts: dict[str, list[str]] = {"added": [], "changed": [], "deleted": []}
    for noun, old, new in (
        ("entity", before.entities, after.entities),
        ("fact", before.facts, after.facts),
        ("relation", before.relations, after.relations),
        ("note", before.notes, after.notes),
    ):
        replaced = min(old, new)
        for verb, count in zip(counts, (new - replaced, replaced, old - replaced), strict=True):
            if count:
                counts[verb].append(count_noun(count, noun))
    parts = []
    for verb, nouns in counts.items():
        if nouns:
            parts.append(f"{verb} {join_words(nouns)}")
    pieces = (Piece("text", _BEGINS.get(operation, "") + ", ".join(parts)),)
    if operation in ("undo", "restore"):
        return Sentence("undo", "mod", pieces)
    if operation == "merge_entities":
        return Sentence("merge", "mod", pieces)
    if not before.total:
        return Sentence("plus", "add", pieces)
    if not after.total:
        return Sentence("trash", "del", pieces)
    return Sentence("edit", "mod", pieces)


def describe_change(change: Change, types: Mapping[str, str]) -> Sentence:
    """Return the sentence about a change. `types` are the types of entities by name."""
    known_types = dict(types)
    for entity in (*change.before.entities, *change.after.entities):
        known_types[entity.name] = entity.type
    sentence = _describe_rows(change, known_types)
    if change.operation not in ("undo", "restore"):
        return sentence
    return Sentence("undo", "mod", (Piece("text", _BEGINS[change.operation]), *sentence.pieces))


def _describe_rows(change: Change, types: Mapping[str, str]) -> Sentence:
    """Return a sentence about the most important rows."""
    before, after = change.before, change.after
    old = {entity.id: entity for entity in before.entities if entity.id}
    kept = old.keys() & {entity.id for entity in after.entities}
    created = [entity for entity in after.entities if entity.id not in kept]
    deleted = [entity for entity in before.entities if entity.id not in kept]
    revised = [entity for entity in after.entities if entity.id in kept]
    old_keys = {relation.key for relation in before.relations}
    new_keys = {relation.key for relation in after.relations}
    linked = [relation for relation in after.relations if relation.key not in old_keys]
    unlinked = [relation for relation in before.relations if relation.key not in new_keys]
    target = merge_target(change) if change.operation == "merge_entities" else ""
    if target and deleted:
        words = [Piece("text", "merged "), *_entities(deleted)]
        words += [Piece("text", " into "), _entity(target, types)]
        moved = sum(len(several.facts) for several in after.facts)
        if moved:
            words.append(Piece("quiet", f", {count_noun(moved, 'fact')} moved"))
        return Sentence("merge", "mod", tuple(words))
    if created:
        return Sentence("plus", "add", _whole("added ", created, len(linked)))
    if deleted:
        return Sentence("trash", "del", _whole("deleted ", deleted, 0))
    if before.facts and after.facts:
        return _changed_facts(before.facts, after.facts, types)
    if after.facts:
        return Sentence("plus", "add", _facts("added", "to", after.facts, types))
    if before.facts:
        return Sentence("trash", "del", _facts("deleted", "of", before.facts, types))
    if revised:
        return Sentence("edit", "mod", _cards(revised, old))
    if linked:
        ends = _relations("added", "related ", linked, types)
        return Sentence("link", "add", ends)
    if unlinked:
        ends = _relations("deleted", "no longer relates ", unlinked, types)
        return Sentence("link", "del", ends)
    return _notes(before.notes, after.notes)


def _whole(verb: str, entities: Sequence[Entity], relations: int) -> tuple[Piece, ...]:
    """Return words about entities with their facts and relations."""
    counts = ((sum(len(entity.facts) for entity in entities), "fact"), (relations, "relation"))
    rest = [count_noun(count, noun) for count, noun in counts if count]
    if len(entities) > 2:
        return (Piece("text", verb + ", ".join([count_noun(len(entities), "entity"), *rest])),)
    words = [Piece("text", verb), *_entities(entities)]
    if rest:
        words.append(Piece("quiet", f" with {' and '.join(rest)}"))
    return tuple(words)


def _changed_facts(
    before: Sequence[FactSet], after: Sequence[FactSet], types: Mapping[str, str]
) -> Sentence:
    old = {several.entity: several for several in before}
    new = {several.entity: several for several in after}
    if len(old) == len(new) == 1 and old.keys() != new.keys():
        source, target = next(iter(old)), next(iter(new))
        count = count_noun(len(old[source].facts), "fact")
        words = (Piece("text", f"moved {count} of "), _entity(source, types))
        return Sentence("move", "mod", (*words, Piece("text", " to "), _entity(target, types)))
    return Sentence("edit", "mod", _facts("changed", "of", list((old | new).values()), types))


def _facts(
    verb: str, preposition: str, sets: Sequence[FactSet], types: Mapping[str, str]
) -> tuple[Piece, ...]:
    """Return words such as `added 3 facts to Redis`."""
    count = sum(len(several.facts) for several in sets)
    what = "a fact" if count == 1 else count_noun(count, "fact")
    start = f"{verb} {what} {preposition} "
    if len(sets) > 2:
        return (Piece("text", start + count_noun(len(sets), "entity")),)
    names = [_entity(several.entity, types) for several in sets]
    return Piece("text", start), *_join(names)


def _cards(revised: Sequence[Entity], old: Mapping[str, Entity]) -> tuple[Piece, ...]:
    if len(revised) > 1:
        return Piece("text", "changed "), *_entities(revised)
    (new,) = revised
    former = old[new.id]
    if former.name != new.name:
        before, after = _entities([former]), _entities([new])
        return Piece("text", "renamed "), *before, Piece("text", " to "), *after
    fields = ("type", "summary", "tags")
    changed = [field for field in fields if getattr(former, field) != getattr(new, field)]
    what = " and ".join(changed) or "card"
    return Piece("text", f"changed the {what} of "), *_entities([new])


def _relations(
    counted: str, verb: str, relations: Sequence[Relation], types: Mapping[str, str]
) -> tuple[Piece, ...]:
    if len(relations) > 1:
        return (Piece("text", f"{counted} {count_noun(len(relations), 'relation')}"),)
    (link,) = relations
    ends = _entity(link.source, types), Piece("relation", link.type), _entity(link.target, types)
    return Piece("text", verb), *ends


def _notes(before: Sequence[Note], after: Sequence[Note]) -> Sentence:
    old, new = {note.key for note in before}, {note.key for note in after}
    keys = sorted(old | new)
    if not keys:
        return Sentence("edit", "mod", (Piece("text", "wrote"),))
    verb, sign = "changed", "mod"  # type: str, Sign
    if not old & new:
        verb, sign = ("wrote", "add") if new else ("deleted", "del")
    what = "the note " if len(keys) == 1 else f"{len(keys)} notes: "
    names = _join([Piece("note", key, "note") for key in keys[:_MAX_NAMES]])
    return Sentence("file", sign, (Piece("text", f"{verb} {what}"), *names))


def _entities(entities: Sequence[Entity]) -> list[Piece]:
    if len(entities) > _MAX_NAMES:
        return [Piece("text", count_noun(len(entities), "entity"))]
    return _join([Piece("entity", entity.name, entity.type) for entity in entities])


def _entity(name: str, types: Mapping[str, str]) -> Piece:
    return Piece("entity", name or "(purged)", types.get(name, ""))


def _join(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with commas and an `and` between them."""
    joined: list[Piece] = []
    for number, piece in enumerate(pieces):
        if number:
            joined.append(Piece("text", " and " if number == len(pieces) - 1 else ", "))
        joined.append(piece)
    return joined
