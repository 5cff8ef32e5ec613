"""Sentences about changes: `codex added 3 facts to Postgres`."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from polymnia.engine.history.changes import merge_target
from polymnia.model import Change, ChangeSize, Entity, FactSet, RowCounts
from polymnia.search.terms import count_noun

# Names that a sentence lists before it counts them.
_MAX_NAMES = 3
# How the sentence of a large change begins, by operation.
_LARGE_OPERATIONS = {
    "import": "imported: ",
    "merge_entities": "merged entities: ",
    "undo": "undid a change: ",
    "restore": "restored from the trash: ",
}

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


def describe_change(change: Change, types: dict[str, str]) -> Sentence:
    """Return the sentence about a change. `types` are the types of entities by name."""
    own_types = {}
    for entity in (*change.before.entities, *change.after.entities):
        own_types[entity.name] = entity.type
    return _SentenceWriter(change, types | own_types).write()


def describe_size(operation: str, size: ChangeSize) -> Sentence:
    """Return the sentence about a change whose rows are only counted."""
    parts = []
    for verb, counts in (
        ("added", _subtract(size.after, size.before)),
        ("changed", _overlap(size.after, size.before)),
        ("deleted", _subtract(size.before, size.after)),
    ):
        if counts.total:
            parts.append(f"{verb} {_list_counts(counts)}")
    text = _LARGE_OPERATIONS.get(operation, "") + ", ".join(parts)
    if operation in ("merge_entities", "undo", "restore"):
        icon = "merge" if operation == "merge_entities" else "undo"
        return Sentence(icon, "mod", (Piece("text", text),))
    if not size.before.total:
        return Sentence("plus", "add", (Piece("text", text),))
    if not size.after.total:
        return Sentence("trash", "del", (Piece("text", text),))
    return Sentence("edit", "mod", (Piece("text", text),))


def _subtract(counts: RowCounts, others: RowCounts) -> RowCounts:
    """Return how many rows of each kind are more than on the other side: they are not replaced."""
    return RowCounts(
        max(0, counts.entities - others.entities),
        max(0, counts.facts - others.facts),
        max(0, counts.relations - others.relations),
        max(0, counts.notes - others.notes),
    )


def _overlap(counts: RowCounts, others: RowCounts) -> RowCounts:
    """Return how many rows of each kind are on both sides."""
    return RowCounts(
        min(counts.entities, others.entities),
        min(counts.facts, others.facts),
        min(counts.relations, others.relations),
        min(counts.notes, others.notes),
    )


def _list_counts(counts: RowCounts) -> str:
    nouns = (
        (counts.entities, "entity"),
        (counts.facts, "fact"),
        (counts.relations, "relation"),
        (counts.notes, "note"),
    )
    words = [count_noun(count, noun) for count, noun in nouns if count]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


class _SentenceWriter:
    """Finds the words for a change: what it did to entities, facts, relations or notes."""

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
        moved = sum(len(several.facts) for several in self._after.facts)
        words = [Piece("text", "merged "), *self._entities(self._deleted)]
        words += [Piece("text", " into "), self._entity(target)]
        if moved:
            words.append(Piece("quiet", f", {count_noun(moved, 'fact')} moved"))
        return Sentence("merge", "mod", tuple(words))

    def _rows(self) -> Sentence:
        """Return a sentence about the most important rows."""
        before, after = self._before.facts, self._after.facts
        if self._created:
            return self._whole("plus", "add", "added ", self._created, len(self._linked))
        if self._deleted:
            return self._whole("trash", "del", "deleted ", self._deleted, 0)
        if before and after:
            return self._changed_facts()
        if after:
            return self._facts("plus", "add", ("added ", " to "), after)
        if before:
            return self._facts("trash", "del", ("deleted ", " of "), before)
        if self._revised:
            return Sentence("edit", "mod", tuple(self._cards()))
        if self._linked or self._unlinked:
            return self._relations()
        return self._notes()

    def _changed_facts(self) -> Sentence:
        old = {several.entity: several for several in self._before.facts}
        new = {several.entity: several for several in self._after.facts}
        if len(old) == len(new) == 1 and old.keys() != new.keys():
            source, target = next(iter(old)), next(iter(new))
            count = len(old[source].facts)
            words = [Piece("text", f"moved {count_noun(count, 'fact')} of ")]
            words += [self._entity(source), Piece("text", " to "), self._entity(target)]
            return Sentence("move", "mod", tuple(words))
        return self._facts("edit", "mod", ("changed ", " of "), list((old | new).values()))

    def _whole(
        self, icon: str, sign: Sign, verb: str, entities: Sequence[Entity], relations: int
    ) -> Sentence:
        facts = sum(len(entity.facts) for entity in entities)
        rest = []
        if facts:
            rest.append(count_noun(facts, "fact"))
        if relations:
            rest.append(count_noun(relations, "relation"))
        if len(entities) > 2:
            counts = ", ".join([count_noun(len(entities), "entity"), *rest])
            return Sentence(icon, sign, (Piece("text", verb + counts),))
        words = [Piece("text", verb), *self._entities(entities)]
        if rest:
            words.append(Piece("quiet", f" with {' and '.join(rest)}"))
        return Sentence(icon, sign, tuple(words))

    def _facts(
        self, icon: str, sign: Sign, verbs: tuple[str, str], sets: Sequence[FactSet]
    ) -> Sentence:
        """Return a sentence such as `added 3 facts to Redis`; `verbs` are fixed parts."""
        count = sum(len(several.facts) for several in sets)
        what = "a fact" if count == 1 else count_noun(count, "fact")
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
