"""Changes as sentences: `codex added 3 observations to Postgres`, with the words that differ."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup, escape
from msgspec import Struct

from polymnia.engine.graph.entities import outlines
from polymnia.engine.history.changes import Difference, differences, merge_target
from polymnia.engine.memory import Memory
from polymnia.model import Change, Entity, ObservationSet
from polymnia.search.terms import count_noun
from polymnia.web.text import excerpt, visible

# The differences in a row of a list; the change's own page shows more.
MAX_DIFFERENCES = 3
# A page of changes ends early after this many rows of the store.
MAX_ROWS_READ = 2_000
# Longer texts are not compared word by word.
MAX_COMPARED_CHARS = 4_000
# At least this many changes of one client, within minutes of one another, are folded into one line.
_MIN_BURST = 4
_BURST_GAP_US = 180_000_000
# Names that a sentence lists before it counts them.
_MAX_NAMES = 3
_WORD = re.compile(r"\s+|\w+|[^\w\s]")

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


class Side(Struct, frozen=True):
    """One text that differs: what it was and what it is, as HTML with the differences marked."""

    before: Markup | None
    after: Markup | None
    label: str = ""


class ChangeRow(Struct, frozen=True):
    """A change as a page shows it. `hidden` is the number of differences that are left out."""

    id: int
    at: int
    actor: str
    operation: str
    icon: str
    sign: Sign
    pieces: tuple[Piece, ...]
    sides: tuple[Side, ...]
    hidden: int


def change_rows(
    memory: Memory,
    changes: Sequence[Change],
    *,
    about: Collection[str] | None = None,
    limit: int = MAX_DIFFERENCES,
) -> list[ChangeRow]:
    """Return rows for changes, with the types of the entities in them.

    `about` are the names whose differences are shown, at most `limit` in a row.
    """
    entities = outlines(memory, names_in(changes))
    types = {name: entity.type for name, entity in entities.items()}
    return [change_row(change, types, about=about, limit=limit) for change in changes]


def change_row(
    change: Change,
    types: dict[str, str],
    *,
    about: Collection[str] | None = None,
    limit: int = MAX_DIFFERENCES,
) -> ChangeRow:
    """Return the row of a change. `types` are the types of entities by name."""
    own_types = {
        entity.name: entity.type for entity in (*change.before.entities, *change.after.entities)
    }
    sentence = _SentenceWriter(change, types | own_types).write()
    # The sentence says already which entities and relations came or went.
    texts = [item for item in differences(change, about) if item.what not in ("relation", "entity")]
    return ChangeRow(
        id=change.id,
        at=change.at,
        actor=change.actor,
        operation=change.operation,
        icon=sentence.icon,
        sign=sentence.sign,
        pieces=sentence.pieces,
        sides=tuple(side(difference) for difference in texts[:limit]),
        hidden=max(0, len(texts) - limit),
    )


def bursts(rows: Sequence[ChangeRow]) -> list[list[ChangeRow]]:
    """Return the rows in order, in groups: similar changes of a client in a burst are one group."""
    runs: list[list[ChangeRow]] = []
    for row in rows:
        if runs and _continues(runs[-1][-1], row):
            runs[-1].append(row)
        else:
            runs.append([row])
    groups: list[list[ChangeRow]] = []
    for run in runs:
        if len(run) >= _MIN_BURST:
            groups.append(run)
        else:
            groups += [[row] for row in run]
    return groups


def burst_names(burst: Sequence[ChangeRow]) -> list[str]:
    """Return the names in a burst that its first row does not have."""
    names: dict[str, None] = {}
    for row in burst:
        names |= {piece.text: None for piece in row.pieces if piece.kind in ("entity", "note")}
    first = {piece.text for piece in burst[0].pieces}
    return [name for name in names if name not in first]


def _continues(later: ChangeRow, row: ChangeRow) -> bool:
    """Return True if a row is of the same burst as the one after it."""
    is_alike = (later.actor, later.icon, later.operation) == (row.actor, row.icon, row.operation)
    return is_alike and later.at - row.at <= _BURST_GAP_US


def names_in(changes: Iterable[Change]) -> set[str]:
    """Return the names of the entities whose types the rows need."""
    names = set()
    for change in changes:
        for rows in (change.before, change.after):
            names |= {several.entity for several in rows.observations[:2]}
            for relation in rows.relations[:2]:
                names |= {relation.source, relation.target}
    return names - {""}


def side(difference: Difference) -> Side:
    """Return both texts of a difference."""
    label = "" if difference.what in ("observation", "note", "entity") else difference.what
    before, after = difference.before, difference.after
    if before and after and max(len(before), len(after)) <= MAX_COMPARED_CHARS:
        return Side(*compare(before, after), label)
    return Side(_plain(before), _plain(after), label)


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
    return None if text is None else escape(visible(excerpt(text)))


class _SentenceWriter:
    """Finds the words for a change: what it did to entities, observations, relations or notes."""

    def __init__(self, change: Change, types: dict[str, str]) -> None:
        self._change, self._before, self._after = change, change.before, change.after
        self._types = types
        old_ids = {entity.id for entity in self._before.entities}
        new_ids = {entity.id for entity in self._after.entities}
        kept = (old_ids & new_ids) - {""}
        self._revised = [entity for entity in self._after.entities if entity.id in kept]
        self._created = [entity for entity in self._after.entities if entity.id not in kept]
        self._deleted = [entity for entity in self._before.entities if entity.id not in kept]
        old_keys = {relation.key for relation in self._before.relations}
        new_keys = {relation.key for relation in self._after.relations}
        self._linked = [link for link in self._after.relations if link.key not in old_keys]
        self._unlinked = [link for link in self._before.relations if link.key not in new_keys]

    def write(self) -> Sentence:
        """Return the sentence."""
        operation = self._change.operation
        target = merge_target(self._change) if operation == "merge_entities" else ""
        if target and self._deleted:
            return self._merge(target)
        sentence = self._rows()
        if operation == "undo":
            return self._prefix("undid a change: ", sentence)
        if operation == "restore":
            return self._prefix("restored from the trash: ", sentence)
        return sentence

    def _prefix(self, text: str, sentence: Sentence) -> Sentence:
        return Sentence("undo", "mod", (Piece("text", text), *sentence.pieces))

    def _merge(self, target: str) -> Sentence:
        moved = sum(len(several.observations) for several in self._after.observations)
        words = [Piece("text", "merged "), *self._entities(self._deleted)]
        words += [Piece("text", " into "), self._entity(target)]
        if moved:
            words.append(Piece("quiet", f", {count_noun(moved, 'observation')} moved"))
        return Sentence("merge", "mod", tuple(words))

    def _rows(self) -> Sentence:
        """Return a sentence about the most important rows."""
        before, after = self._before.observations, self._after.observations
        if self._created:
            return self._whole("plus", "add", "added ", self._created, len(self._linked))
        if self._deleted:
            return self._whole("trash", "del", "deleted ", self._deleted, 0)
        if before and after:
            return self._changed_observations()
        if after:
            return self._observations("plus", "add", ("added ", " to "), after)
        if before:
            return self._observations("trash", "del", ("deleted ", " of "), before)
        if self._revised:
            return Sentence("edit", "mod", tuple(self._cards()))
        if self._linked or self._unlinked:
            return self._relations()
        return self._notes()

    def _changed_observations(self) -> Sentence:
        old = {several.entity: several for several in self._before.observations}
        new = {several.entity: several for several in self._after.observations}
        if len(old) == len(new) == 1 and old.keys() != new.keys():
            source, target = next(iter(old)), next(iter(new))
            count = len(old[source].observations)
            words = [Piece("text", f"moved {count_noun(count, 'observation')} of ")]
            words += [self._entity(source), Piece("text", " to "), self._entity(target)]
            return Sentence("move", "mod", tuple(words))
        return self._observations("edit", "mod", ("changed ", " of "), list((old | new).values()))

    def _whole(
        self, icon: str, sign: Sign, verb: str, entities: Sequence[Entity], relations: int
    ) -> Sentence:
        observations = sum(len(entity.observations) for entity in entities)
        rest = []
        if observations:
            rest.append(count_noun(observations, "observation"))
        if relations:
            rest.append(count_noun(relations, "relation"))
        if len(entities) > 2:
            counts = ", ".join([count_noun(len(entities), "entity"), *rest])
            return Sentence(icon, sign, (Piece("text", verb + counts),))
        words = [Piece("text", verb), *self._entities(entities)]
        if rest:
            words.append(Piece("quiet", f" with {' and '.join(rest)}"))
        return Sentence(icon, sign, tuple(words))

    def _observations(
        self, icon: str, sign: Sign, verbs: tuple[str, str], sets: Sequence[ObservationSet]
    ) -> Sentence:
        """Return a sentence such as `added 3 observations to Redis`; `verbs` are fixed parts."""
        count = sum(len(several.observations) for several in sets)
        what = "an observation" if count == 1 else count_noun(count, "observation")
        start = f"{verbs[0]}{what}{verbs[1]}"
        if len(sets) > 2:
            return Sentence(icon, sign, (Piece("text", start + count_noun(len(sets), "entity")),))
        names = [self._entity(several.entity) for several in sets]
        return Sentence(icon, sign, (Piece("text", start), *_join_pieces(names)))

    def _cards(self) -> list[Piece]:
        if len(self._revised) > 1:
            return [Piece("text", "changed "), *self._entities(self._revised)]
        new = self._revised[0]
        old = next(entity for entity in self._before.entities if entity.id == new.id)
        if old.name != new.name:
            names = [self._entity(old.name), Piece("text", " to "), self._entity(new.name)]
            return [Piece("text", "renamed "), *names]
        fields = ("type", "summary", "tags")
        changed = [field for field in fields if getattr(old, field) != getattr(new, field)]
        what = " and ".join(changed) or "card"
        return [Piece("text", f"changed the {what} of "), self._entity(new.name)]

    def _relations(self) -> Sentence:
        links = self._linked or self._unlinked
        sign: Sign = "add" if self._linked else "del"
        if len(links) > 1:
            verb = "added" if self._linked else "deleted"
            text = f"{verb} {count_noun(len(links), 'relation')}"
            return Sentence("link", sign, (Piece("text", text),))
        link = links[0]
        verb = "related " if self._linked else "no longer relates "
        ends = self._entity(link.source), Piece("relation", link.type), self._entity(link.target)
        return Sentence("link", sign, (Piece("text", verb), *ends))

    def _notes(self) -> Sentence:
        old = {note.key for note in self._before.notes}
        new = {note.key for note in self._after.notes}
        keys = sorted(old | new)
        if not keys:
            return Sentence("edit", "mod", (Piece("text", "wrote"),))
        verb, sign = self._note_verb(old, new)
        what = "the note " if len(keys) == 1 else f"{len(keys)} notes: "
        names = _join_pieces([Piece("note", key, "note") for key in keys[:_MAX_NAMES]])
        return Sentence("file", sign, (Piece("text", verb + what), *names))

    def _note_verb(self, old: set[str], new: set[str]) -> tuple[str, Sign]:
        if old & new:
            return "changed ", "mod"
        return ("wrote ", "add") if new else ("deleted ", "del")

    def _entities(self, entities: Sequence[Entity]) -> list[Piece]:
        if len(entities) > _MAX_NAMES:
            return [Piece("text", count_noun(len(entities), "entity"))]
        return _join_pieces([Piece("entity", entity.name, entity.type) for entity in entities])

    def _entity(self, name: str) -> Piece:
        return Piece("entity", name or "(purged)", self._types.get(name, ""))


def _join_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with commas and an `and` between them."""
    joined: list[Piece] = []
    for number, piece in enumerate(pieces):
        if number:
            joined.append(Piece("text", " and " if number == len(pieces) - 1 else ", "))
        joined.append(piece)
    return joined
