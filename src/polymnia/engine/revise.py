"""Revise what is known of an entity: name, type, summary, tags and observations. Its identity and relations stay."""

from collections.abc import Collection, Sequence

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from polymnia.engine import entities
from polymnia.engine.memory import Memory, Transaction
from polymnia.errors import BadInput, EntityNotFound, TextChanged
from polymnia.model import Entity, Observation, ObservationSet, Relation, Rows
from polymnia.search.similarity import normalize_text, similar_observations

# How many of an entity's observations an error lists.
_MAX_LISTED = 5


class Edit(Struct, frozen=True):
    """A new text for an observation, which is named by its ordinal or its text. `valid_at` as in Observation.

    `expected` is the text that the observation must have, if that matters.
    """

    old: int | str
    text: str
    valid_at: int = 0
    expected: str | None = None


class Revision(Struct, frozen=True, kw_only=True):
    """What to change about an entity. `replace` corrects an observation; `supersede` ends it and adds a newer fact.

    A summary of None removes the summary.
    """

    name: str | None = None
    type: str | None = None
    summary: str | UnsetType | None = UNSET
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    replace: tuple[Edit, ...] = ()
    supersede: tuple[Edit, ...] = ()


class Replacement(Struct, frozen=True):
    """An observation before and after it was revised."""

    old: Observation
    new: Observation


class RevisionReceipt(Struct, frozen=True):
    """The entity before and after a revision, and what changed. The change is 0 if nothing did."""

    change: int
    at: int
    before: Entity
    after: Entity
    replaced: tuple[Replacement, ...] = ()
    superseded: tuple[Replacement, ...] = ()
    relations: int = 0  # how many follow the new name


class MergeReceipt(Struct, frozen=True):
    """What a merge did: the entity that remains, how much it gained, and how many observations it had already.

    The change is 0 in a dry run and in a store without history.
    """

    change: int
    at: int
    target: str
    observations: int
    relations: int
    known: int = 0


def revise(memory: Memory, name: str, revision: Revision, *, by: str) -> RevisionReceipt:
    """Apply a revision to the named entity as one change.

    Raise EntityNotFound, TextChanged, or BadInput if the new name is taken or an observation cannot be found.
    """
    with memory.writing("revise", by) as transaction:
        found = transaction.read.find([name])
        if not found:
            raise EntityNotFound(name)
        (entity,) = found
        edits = _Edits(entity, revision, transaction.at)
        after = _new_card(edits.entity, revision, transaction.at)
        card = (entity,) if after != edits.entity else ()
        moved, redirected = _follow_name(transaction, entity.name, after.name)
        transaction.apply(
            before=Rows(card, edits.ended_sets(), tuple(moved)),
            after=Rows((after,) if card else (), edits.created_sets(), tuple(redirected)),
        )
    change = transaction.change.id if transaction.change else 0
    replaced, superseded = tuple(edits.replaced), tuple(edits.superseded)
    return RevisionReceipt(
        change, transaction.at, entity, after, replaced, superseded, len(redirected)
    )


def merge(
    memory: Memory, sources: Sequence[str], target: str, *, by: str, dry_run: bool = False
) -> MergeReceipt:
    """Move everything the sources have to the target, then delete them, as one change; or only count with `dry_run`.

    Raise EntityNotFound, or BadInput if a source is the target.
    """
    with memory.writing("merge_entities", by) as transaction:
        counts = entities.merge_into(
            transaction, list(dict.fromkeys(sources)), target, dry_run=dry_run
        )
    change = transaction.change.id if transaction.change else 0
    known = counts.moved - counts.added
    return MergeReceipt(change, transaction.at, target, counts.added, counts.redirected, known)


def find_observation(entity: Entity, wanted: int | str) -> Observation:
    """Return the observation with that ordinal or text. Raise BadInput that lists those that may be meant."""
    for each in entity.observations:
        if each.ordinal == wanted or (
            isinstance(wanted, str) and normalize_text(each.text) == normalize_text(wanted)
        ):
            return each
    near = similar_observations(wanted, entity) if isinstance(wanted, str) else ()
    shown = near or entity.observations[-_MAX_LISTED:]
    listed = [f"{each.ordinal}: {' '.join(each.text.split())[:80]}" for each in shown]
    known = "; it has " + " | ".join(listed) if listed else "; it has none"
    raise BadInput(f"{entity.name} has no observation {wanted!r}{known}")


class _Edits:
    """The observations that a revision ends and creates, and the entity with the outcome."""

    def __init__(self, entity: Entity, revision: Revision, at: int) -> None:
        self._name = entity.name
        self.replaced: list[Replacement] = []
        self.superseded: list[Replacement] = []
        next_ordinal = entity.next_ordinal
        for edit in revision.replace:
            old = _find_expected(entity, edit)
            if edit.text != old.text or edit.valid_at:
                new = replace(old, text=_text(edit), valid_at=edit.valid_at or old.valid_at)
                self.replaced.append(Replacement(old, new))
        for edit in revision.supersede:
            new = Observation(next_ordinal, _text(edit), at, edit.valid_at)
            self.superseded.append(Replacement(_find_expected(entity, edit), new))
            next_ordinal += 1
        self._require_distinct()
        self.entity = replace(entity, observations=self._outcome(entity), next_ordinal=next_ordinal)

    def ended_sets(self) -> tuple[ObservationSet, ...]:
        return self._set([each.old for each in (*self.replaced, *self.superseded)])

    def created_sets(self) -> tuple[ObservationSet, ...]:
        return self._set([each.new for each in (*self.replaced, *self.superseded)])

    def _set(self, observations: Collection[Observation]) -> tuple[ObservationSet, ...]:
        return (ObservationSet(self._name, tuple(observations)),) if observations else ()

    def _require_distinct(self) -> None:
        ordinals = [each.old.ordinal for each in (*self.replaced, *self.superseded)]
        if len(ordinals) != len(set(ordinals)):
            raise BadInput(
                f"an observation of {self._name} is revised twice in one call; give it one new text"
            )

    def _outcome(self, entity: Entity) -> tuple[Observation, ...]:
        ended = {each.old.ordinal for each in (*self.replaced, *self.superseded)}
        kept = [each for each in entity.observations if each.ordinal not in ended]
        new = [each.new for each in (*self.replaced, *self.superseded)]
        return tuple(sorted([*kept, *new], key=lambda each: each.ordinal))


def _find_expected(entity: Entity, edit: Edit) -> Observation:
    """Return the observation to edit. Raise TextChanged if it is not the one that the edit expects, else BadInput."""
    if edit.expected is None:
        return find_observation(entity, edit.old)
    found = next(
        (each for each in entity.observations if edit.old in (each.ordinal, each.text)), None
    )
    if found is None or found.text != edit.expected:
        raise TextChanged(f"observation {edit.old} of {entity.name}", found.text if found else None)
    return found


def _text(edit: Edit) -> str:
    if not edit.text.strip():
        raise BadInput(
            f"the new text of observation {edit.old!r} is blank; forget removes an observation"
        )
    return edit.text


def _new_card(entity: Entity, revision: Revision, at: int) -> Entity:
    """Return the entity with its new attributes; the same one if nothing changes."""
    kept = [tag for tag in entity.tags if tag not in revision.remove_tags]
    changed = replace(
        entity,
        name=entity.name if revision.name is None else revision.name,
        type=entity.type if revision.type is None else revision.type,
        tags=tuple(dict.fromkeys((*kept, *revision.add_tags))),
    )
    if not changed.name.strip():
        raise BadInput(f"the new name of {entity.name} is blank")
    if revision.summary is not UNSET and revision.summary != entity.summary:
        changed = replace(
            changed, summary=revision.summary, summary_at=at if revision.summary is not None else 0
        )
    return changed if changed == entity else replace(changed, updated_at=at)


def _follow_name(
    transaction: Transaction, old: str, new: str
) -> tuple[list[Relation], list[Relation]]:
    """Return the relations that touch the old name, and what they become. Raise BadInput if the new name is taken."""
    if old == new:
        return [], []
    if transaction.read.known([new]):
        raise BadInput(f"there is an entity {new} already; merge the two instead of renaming")
    moved = transaction.read.touching([old])
    redirected = {each.key: each for each in (entities.redirect(one, old, new) for one in moved)}
    present = transaction.read.linked(redirected)
    return moved, [each for key, each in redirected.items() if key not in present]
