"""Changes as sentences: `codex added 3 observations to Postgres`, with what differs word by word."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup, escape
from msgspec import Struct

from polymnia.engine.history import Difference, differences
from polymnia.engine.whereabouts import merge_target
from polymnia.model import Change, Entity, ObservationSet
from polymnia.search.text import count_noun
from polymnia.web.text import excerpt, visible

# The differences in a row of a list; the change's own page shows more.
MAX_DIFFERENCES = 3
# Longer texts are not compared word by word.
_MAX_COMPARED_CHARS = 4_000
# At least this many changes of one client, each within minutes of the one before it, are folded into one line.
_MIN_BURST = 4
_BURST_GAP_US = 180_000_000
_WORD = re.compile(r"\s+|\w+|[^\w\s]")

Sign = Literal["add", "mod", "del"]


class Piece(Struct, frozen=True):
    """A part of a sentence: plain text, or the name of an entity or note."""

    kind: Literal["text", "quiet", "entity", "note", "relation"]
    text: str
    type: str = ""


class Side(Struct, frozen=True):
    """One text that differs: what it was and what it is, as HTML with the words that differ marked."""

    before: Markup | None
    after: Markup | None
    label: str = ""


class ChangeRow(Struct, frozen=True):
    """A change as a page shows it."""

    id: int
    at: int
    actor: str
    operation: str
    icon: str
    sign: Sign
    pieces: tuple[Piece, ...]
    sides: tuple[Side, ...]
    hidden: int  # the number of differences that are not shown


def change_row(
    change: Change,
    types: dict[str, str],
    *,
    about: Collection[str] | None = None,
    limit: int = MAX_DIFFERENCES,
) -> ChangeRow:
    """Return the row of a change. `types` are the types of entities by name; `about` limits what is shown."""
    known = {
        **types,
        **{each.name: each.type for each in (*change.before.entities, *change.after.entities)},
    }
    icon, sign, pieces = _sentence(change, known)
    found = [each for each in differences(change, about) if each.what not in ("relation", "entity")]
    sides = tuple([side(each) for each in found[:limit]])
    return ChangeRow(
        change.id,
        change.at,
        change.actor,
        change.operation,
        icon,
        sign,
        tuple(pieces),
        sides,
        len(found) - len(sides),
    )


def bursts(rows: Sequence[ChangeRow]) -> list[list[ChangeRow]]:
    """Return the rows in order, in groups: changes of the same kind that one client made in a burst are one group."""
    found: list[list[ChangeRow]] = []
    for row in rows:
        last = found[-1][-1] if found else None
        is_same = last is not None and (last.actor, last.icon, last.operation) == (
            row.actor,
            row.icon,
            row.operation,
        )
        if last is not None and is_same and last.at - row.at <= _BURST_GAP_US:
            found[-1].append(row)
        else:
            found.append([row])
    return [
        part
        for burst in found
        for part in ([burst] if len(burst) >= _MIN_BURST else [[row] for row in burst])
    ]


def names_in(changes: Iterable[Change]) -> set[str]:
    """Return the names of the entities whose types the rows need."""
    names = set()
    for change in changes:
        for rows in (change.before, change.after):
            names |= {each.entity for each in rows.observations[:2]}
            names |= {end for each in rows.relations[:2] for end in (each.source, each.target)}
    return names - {""}


def side(difference: Difference) -> Side:
    """Return both texts of a difference."""
    label = "" if difference.what in ("observation", "note", "entity") else difference.what
    before, after = difference.before, difference.after
    if before and after and max(len(before), len(after)) <= _MAX_COMPARED_CHARS:
        return Side(*compare(before, after), label)
    return Side(_plain(before), _plain(after), label)


def compare(before: str, after: str) -> tuple[Markup, Markup]:
    """Return both texts as HTML, with the words that differ in <del> and <ins>."""
    old, new = _WORD.findall(visible(before)), _WORD.findall(visible(after))
    left, right = [], []
    for kind, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        gone, come = "".join(old[a:b]), "".join(new[c:d])
        left.append(escape(gone) if kind == "equal" else _wrap("del", gone))
        right.append(escape(come) if kind == "equal" else _wrap("ins", come))
    return Markup("").join(left), Markup("").join(right)


def _wrap(tag: str, text: str) -> Markup:
    return Markup(f"<{tag}>{{}}</{tag}>").format(text) if text else Markup("")


def _plain(text: str | None) -> Markup | None:
    return None if text is None else escape(visible(excerpt(text)))


def _sentence(change: Change, types: dict[str, str]) -> tuple[str, Sign, list[Piece]]:
    """Return the icon, the sign and the words for a change."""
    writer = _Writer(change, types)
    if change.operation == "merge_entities" and (found := writer.merge()):
        return "merge", "mod", found
    icon, sign, found = writer.rows()
    prefix = {"undo": "undid a change: ", "restore": "restored from the trash: "}.get(
        change.operation, ""
    )
    if prefix:
        return "undo", "mod", [Piece("text", prefix), *found]
    return icon, sign, found


class _Writer:
    """Finds the words for the rows of a change."""

    def __init__(self, change: Change, types: dict[str, str]) -> None:
        self._change, self._before, self._after = change, change.before, change.after
        self._types = types
        kept = {each.id for each in change.before.entities} & {
            each.id for each in change.after.entities
        } - {""}
        self._revised = [each for each in change.after.entities if each.id in kept]
        self._created = [each for each in change.after.entities if each.id not in kept]
        self._deleted = [each for each in change.before.entities if each.id not in kept]
        links, ended = (
            {each.key for each in change.after.relations},
            {each.key for each in change.before.relations},
        )
        self._linked = [each for each in change.after.relations if each.key not in ended]
        self._unlinked = [each for each in change.before.relations if each.key not in links]

    def merge(self) -> list[Piece]:
        """Return the words for a merge; nothing if its target is unknown."""
        target = merge_target(self._change)
        if not target or not self._deleted:
            return []
        moved = sum(len(each.observations) for each in self._after.observations)
        words = [
            Piece("text", "merged "),
            *self._entities(self._deleted),
            Piece("text", " into "),
            self._entity(target),
        ]
        return (
            [*words, Piece("quiet", f", {count_noun(moved, 'observation')} moved")]
            if moved
            else words
        )

    def rows(self) -> tuple[str, Sign, list[Piece]]:
        """Return icon, sign and words for what was written, the most important first."""
        if self._created:
            return "plus", "add", self._whole("added ", self._created, len(self._linked))
        if self._deleted:
            return "trash", "del", self._whole("deleted ", self._deleted, 0)
        if self._before.observations and self._after.observations:
            return self._changed_observations()
        if self._after.observations:
            return (
                "plus",
                "add",
                self._count_observations("added ", " to ", self._after.observations),
            )
        if self._before.observations:
            return (
                "trash",
                "del",
                self._count_observations("deleted ", " of ", self._before.observations),
            )
        if self._revised:
            return "edit", "mod", self._cards()
        if self._linked or self._unlinked:
            return self._relations()
        return self._notes()

    def _changed_observations(self) -> tuple[str, Sign, list[Piece]]:
        before, after = (
            {each.entity: each for each in rows.observations}
            for rows in (self._before, self._after)
        )
        if len(before) == len(after) == 1 and before.keys() != after.keys():
            count = sum(len(each.observations) for each in before.values())
            words = [
                Piece("text", f"moved {count_noun(count, 'observation')} of "),
                self._entity(next(iter(before))),
            ]
            return "move", "mod", [*words, Piece("text", " to "), self._entity(next(iter(after)))]
        return (
            "edit",
            "mod",
            self._count_observations("changed ", " of ", list((before | after).values())),
        )

    def _whole(self, verb: str, entities: Sequence[Entity], relations: int) -> list[Piece]:
        observations = sum(len(each.observations) for each in entities)
        rest = [count_noun(observations, "observation")] if observations else []
        rest += [count_noun(relations, "relation")] if relations else []
        if len(entities) > 2:
            return [Piece("text", verb + ", ".join([count_noun(len(entities), "entity"), *rest]))]
        words = [Piece("text", verb), *self._entities(entities)]
        return [*words, Piece("quiet", f" with {' and '.join(rest)}")] if rest else words

    def _count_observations(
        self, verb: str, joint: str, sets: Sequence[ObservationSet]
    ) -> list[Piece]:
        count = sum(len(each.observations) for each in sets)
        what = "an observation" if count == 1 else count_noun(count, "observation")
        if len(sets) > 2:
            return [Piece("text", f"{verb}{what}{joint}{count_noun(len(sets), 'entity')}")]
        names = [self._entity(each.entity) for each in sets]
        return [Piece("text", f"{verb}{what}{joint}"), *_join_pieces(names)]

    def _cards(self) -> list[Piece]:
        if len(self._revised) > 1:
            return [Piece("text", "changed "), *self._entities(self._revised)]
        new = self._revised[0]
        old = next(each for each in self._before.entities if each.id == new.id)
        if old.name != new.name:
            return [
                Piece("text", "renamed "),
                self._entity(old.name),
                Piece("text", " to "),
                self._entity(new.name),
            ]
        parts = [
            name for name in ("type", "summary", "tags") if getattr(old, name) != getattr(new, name)
        ]
        return [
            Piece("text", f"changed the {' and '.join(parts) or 'card'} of "),
            self._entity(new.name),
        ]

    def _relations(self) -> tuple[str, Sign, list[Piece]]:
        several = self._linked or self._unlinked
        verb = "related " if self._linked else "no longer relates "
        sign: Sign = "add" if self._linked else "del"
        if len(several) > 1:
            what = "added " if self._linked else "deleted "
            return "link", sign, [Piece("text", what + count_noun(len(several), "relation"))]
        one = several[0]
        words = [
            Piece("text", verb),
            self._entity(one.source),
            Piece("relation", one.type),
            self._entity(one.target),
        ]
        return "link", sign, words

    def _notes(self) -> tuple[str, Sign, list[Piece]]:
        before, after = (
            {each.key for each in self._before.notes},
            {each.key for each in self._after.notes},
        )
        verb = "changed " if before & after else "wrote " if after else "deleted "
        sign: Sign = "mod" if before & after else "add" if after else "del"
        keys = sorted(before | after)
        what = "the note " if len(keys) == 1 else f"{len(keys)} notes: "
        names = _join_pieces([Piece("note", each, "note") for each in keys[:3]])
        return (
            ("file", sign, [Piece("text", verb + what), *names])
            if keys
            else ("edit", "mod", [Piece("text", "wrote")])
        )

    def _entities(self, entities: Sequence[Entity]) -> list[Piece]:
        if len(entities) > 3:
            return [Piece("text", count_noun(len(entities), "entity"))]
        return _join_pieces([Piece("entity", each.name, each.type) for each in entities])

    def _entity(self, name: str) -> Piece:
        return Piece("entity", name or "(purged)", self._types.get(name, ""))


def _join_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for number, each in enumerate(pieces):
        if number:
            found.append(Piece("text", " and " if number == len(pieces) - 1 else ", "))
        found.append(each)
    return found
