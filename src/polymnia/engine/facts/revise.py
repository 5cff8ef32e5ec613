"""Revise entities: name, type, summary, tags and facts.

Their identity and relations stay.
"""

from collections.abc import Collection, Sequence
from functools import cached_property

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from polymnia.engine.facts.secrets import mask_secret
from polymnia.engine.graph.relations import redirect, require_known
from polymnia.engine.memory import Memory, Transaction, find_by_name
from polymnia.errors import BadInput, EntityNotFound, FactNotFound, TextChanged
from polymnia.model import Entity, Fact, FactSet, Relation, Rows
from polymnia.search.similarity import normalize_text, similar_facts

# How many of an entity's facts an error lists.
_MAX_LISTED = 5


class Edit(Struct, frozen=True):
    """A new text for a fact, which is named by its ordinal or its text.

    An integer as `text` is the ordinal of a fact that replaces it, or if there is none and
    `literal` is given, that text does. `valid_at` as in Fact. `expected` is the text that
    the fact must have, if that matters.
    """

    old: int | str
    text: int | str
    valid_at: int = 0
    expected: str | None = None
    literal: str = ""


class Revision(Struct, frozen=True, kw_only=True):
    """What to change about an entity.

    `replace` corrects a fact, which was never true; `supersede` ends it and adds a newer
    fact. If that becomes true in the future, the older one stays until then. If the entity has
    the new text already, the old fact ends and that one remains. `tags` replaces all tags. A
    summary and `tags` count as written now, even if they stay. A summary of None, and a due time
    or time of expiry of 0, removes it.
    """

    name: str | None = None
    type: str | None = None
    summary: str | UnsetType | None = UNSET
    tags: tuple[str, ...] | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    due: int | None = None
    status: str | None = None
    expires: int | None = None
    replace: tuple[Edit, ...] = ()
    supersede: tuple[Edit, ...] = ()


class Replacement(Struct, frozen=True):
    """A fact before and after it was revised."""

    old: Fact
    new: Fact


class RevisionReceipt(Struct, frozen=True):
    """The entity before and after a revision, and what changed. The change is 0 if nothing did."""

    change: int
    at: int
    before: Entity
    after: Entity
    replaced: tuple[Replacement, ...] = ()
    superseded: tuple[Replacement, ...] = ()
    # Facts that were never true, and those that the entity had instead.
    retracted: tuple[Replacement, ...] = ()
    relations: int = 0  # how many follow the new name


class TagReceipt(Struct, frozen=True):
    """Which entities got other tags.

    The change is 0 if none did, and in a store without history.
    """

    change: int
    names: tuple[str, ...]


def revise(memory: Memory, name: str, revision: Revision, *, by: str) -> RevisionReceipt:
    """Apply a revision to the named entity as one change.

    Raise EntityNotFound, TextChanged, or BadInput if the new name is taken or a fact
    cannot be found.
    """
    with memory.writing("revise", by) as transaction:
        entities = transaction.read.entities([name])
        if not entities:
            raise EntityNotFound(name)
        (entity,) = entities
        edits = _Edits(entity, revision, transaction.time())
        after = _revise_card(edits.entity, revision, transaction.time())
        old_card: tuple[Entity, ...] = ()
        new_card: tuple[Entity, ...] = ()
        if after != edits.entity:
            old_card, new_card = (entity,), (after,)
        moved, redirected = _follow_name(transaction, entity.name, after.name)
        transaction.apply(
            before=Rows(old_card, edits.old_sets(), tuple(moved)),
            after=Rows(new_card, edits.new_sets(), tuple(redirected)),
            operation="correct" if edits.retracted else "revise",
            successors={
                (entity.name, edit.old.ordinal): edit.new.ordinal for edit in edits.superseded
            },
        )
    return RevisionReceipt(
        transaction.change_id,
        transaction.time(),
        entity,
        after,
        tuple(edits.replaced),
        tuple(edits.superseded),
        tuple(edits.retracted),
        len(redirected),
    )


def tag_entities(
    memory: Memory,
    names: Collection[str],
    *,
    add: Collection[str] = (),
    remove: Collection[str] = (),
    by: str,
) -> TagReceipt:
    """Add and remove tags of several entities as one change.

    Raise EntityNotFound, or BadInput for a blank tag.
    """
    if not all(label.strip() for label in (*add, *remove)):
        raise BadInput("a tag is blank; give each tag at least one visible character")
    revision = Revision(add_tags=tuple(add), remove_tags=tuple(remove))
    before, after = [], []
    with memory.writing("tag_entities", by) as transaction:
        entities = find_by_name(transaction.read, names)
        require_known(names, entities)
        for entity in entities.values():
            tagged = _revise_card(entity, revision, transaction.time())
            if tagged != entity:
                before.append(entity)
                after.append(tagged)
        transaction.apply(before=Rows(tuple(before)), after=Rows(tuple(after)))
    return TagReceipt(transaction.change_id, tuple(entity.name for entity in after))


class FactIndex:
    """The facts of an entity by ordinal and by text, regardless of case and spaces.

    The beginning of a text is enough if no other text begins so.
    """

    def __init__(self, entity: Entity) -> None:
        self._entity = entity
        self._by_ordinal = {fact.ordinal: fact for fact in entity.facts}

    def find(self, key: int | str) -> Fact:
        """Return the fact with that ordinal, text or beginning of a text.

        An ordinal that none has may be a text. Raise FactNotFound that lists those that may be
        meant, or BadInput if several fit.
        """
        if isinstance(key, int):
            fact = self._by_ordinal.get(key) or self.with_text(str(key))
        else:
            fact = self.with_text(key) or self._beginning_with(key)
        if fact is None:
            missing = f"{self._entity.name} has no fact {name_fact(key)}"
            message = f"{missing}; {self._list_near(key)}"
            raise FactNotFound(self._entity.name, key, message)
        return fact

    def has_ordinal(self, ordinal: int) -> bool:
        """Return True if a fact has that ordinal."""
        return ordinal in self._by_ordinal

    def with_text(self, text: str) -> Fact | None:
        """Return the fact with that text, regardless of case and spaces."""
        return self._by_text.get(normalize_text(text))

    def _beginning_with(self, text: str) -> Fact | None:
        """Return the only fact that begins so. Raise BadInput if there are several."""
        beginning = normalize_text(text)
        if not beginning:
            return None
        matches = []
        for normalized, fact in self._by_text.items():
            if normalized.startswith(beginning):
                matches.append(fact)
        if len({match.ordinal for match in matches}) > 1:
            numbers = " and ".join(f"#{match.ordinal}" for match in matches[:_MAX_LISTED])
            given = mask_secret(text)
            raise BadInput(f'"{given}" fits {numbers} of {self._entity.name}: pass the number')
        return matches[0] if matches else None

    @cached_property
    def _by_text(self) -> dict[str, Fact]:
        by_text: dict[str, Fact] = {}
        for fact in self._entity.facts:
            by_text.setdefault(normalize_text(fact.text), fact)
        return by_text

    def _list_near(self, key: int | str) -> str:
        near: tuple[Fact, ...] = ()
        if isinstance(key, str):
            near = similar_facts(key, self._entity)
        listed = []
        for fact in near or self._entity.facts[-_MAX_LISTED:]:
            excerpt = " ".join(mask_secret(fact.text).split())[:80]
            listed.append(f"{fact.ordinal}: {excerpt}")
        return f"it has {' | '.join(listed) or 'none'}"


def name_fact(key: int | str) -> str:
    """Return how an error names a fact that was given by its number or its text."""
    return f"#{key}" if isinstance(key, int) else repr(mask_secret(key))


def moved_ends(entity: Entity, ended: Sequence[tuple[Fact, int]], at: int) -> list[Replacement]:
    """Return the facts that stay until another one becomes true, before and after a change.

    `ended` are the facts that end with the change, each with the time from which another one
    replaces it; 0 if none does. A fact stays until it is replaced. If the one that was to replace
    it ends itself before that, it stays for as long as there is none, or until the next one.
    """
    ordinals = {fact.ordinal for fact, _ in ended}
    moved = []
    for old, replaced_at in ended:
        if old.valid_at > at:
            for fact in entity.facts:
                if fact.expires == old.valid_at != replaced_at and fact.ordinal not in ordinals:
                    moved.append(Replacement(fact, replace(fact, expires=replaced_at)))
        elif replaced_at > at:
            moved.append(Replacement(old, replace(old, expires=replaced_at)))
    return moved


class _Edits:
    """The facts that a revision ends and creates, and the entity with the outcome."""

    def __init__(self, entity: Entity, revision: Revision, at: int) -> None:
        self._entity = entity
        self._index = FactIndex(entity)
        self._at = at
        self._next_ordinal = entity.next_ordinal
        # Facts that end in favour of one that the entity has already.
        self._linked: list[Replacement] = []
        self.replaced: list[Replacement] = []
        self.superseded: list[Replacement] = []
        for edit in revision.replace:
            self._correct(edit)
        self.retracted = list(self._linked)
        for edit in revision.supersede:
            self._supersede(edit)
        self._written = [*self.replaced, *self.superseded]
        self.superseded += self._linked[len(self.retracted) :]
        ended = [(edit.old, edit.new.valid_at or at) for edit in self.superseded]
        for corrected in (*self.replaced, *self.retracted):
            if corrected.old.valid_at > at:
                ended.append((corrected.old, corrected.new.valid_at or at))
        self._moved = moved_ends(entity, ended, at)
        self.entity = replace(entity, facts=self._outcome(), next_ordinal=self._next_ordinal)

    def _correct(self, edit: Edit) -> None:
        old = _find_expected(self._entity, self._index, edit)
        # A caller that expects a text is editing this one fact.
        if edit.expected is None and self._link(old, edit):
            return
        text = _require_text(edit)
        if text == old.text and not edit.valid_at:
            return
        new = replace(
            old,
            text=text,
            valid_at=edit.valid_at or old.valid_at,
        )
        self.replaced.append(Replacement(old, new))

    def _supersede(self, edit: Edit) -> None:
        old = _find_expected(self._entity, self._index, edit)
        if self._link(old, edit):
            return
        new = Fact(self._next_ordinal, _require_text(edit), self._at, edit.valid_at)
        self.superseded.append(Replacement(old, new))
        self._next_ordinal += 1

    def _link(self, old: Fact, edit: Edit) -> bool:
        """End the fact if the entity has what replaces it. Return False if not."""
        successor: Fact | None
        is_text = isinstance(edit.text, str)
        if isinstance(edit.text, str):
            successor = self._index.with_text(edit.text)
        elif edit.literal and not self._index.has_ordinal(edit.text):
            is_text = True
            successor = self._index.with_text(edit.literal)
        else:
            successor = self._index.find(edit.text)
        if successor is None or (successor is old and is_text):
            return False
        if successor is old:
            raise BadInput(f"#{old.ordinal} of {self._entity.name} cannot replace itself")
        self._linked.append(Replacement(old, successor))
        return True

    def old_sets(self) -> tuple[FactSet, ...]:
        edits = (*self._written, *self._linked, *self._moved)
        return self._set({edit.old.ordinal: edit.old for edit in edits}.values())

    def new_sets(self) -> tuple[FactSet, ...]:
        return self._set([edit.new for edit in (*self._moved, *self._written)])

    def _set(self, facts: Collection[Fact]) -> tuple[FactSet, ...]:
        return (FactSet(self._entity.name, tuple(facts)),) if facts else ()

    def _outcome(self) -> tuple[Fact, ...]:
        """Return the facts after all edits. Raise BadInput if one is edited twice."""
        facts = {fact.ordinal: fact for fact in self._entity.facts}
        for edit in (*self._written, *self._linked):
            if facts.pop(edit.old.ordinal, None) is None:
                raise BadInput(
                    f"a fact of {self._entity.name} is revised twice in one call; "
                    "give it one new text"
                )
        for edit in self._linked:
            if edit.new.ordinal not in facts:
                raise BadInput(
                    f"#{edit.new.ordinal} of {self._entity.name} cannot replace "
                    f"#{edit.old.ordinal}: it is revised in the same call"
                )
        facts |= {edit.new.ordinal: edit.new for edit in (*self._moved, *self._written)}
        return tuple(facts[ordinal] for ordinal in sorted(facts))


def _find_expected(entity: Entity, index: FactIndex, edit: Edit) -> Fact:
    """Return the fact to edit.

    Raise TextChanged if it is not the one that the edit expects, else BadInput.
    """
    if edit.expected is None:
        return index.find(edit.old)
    for fact in entity.facts:
        if edit.old in (fact.ordinal, fact.text):
            if fact.text == edit.expected:
                return fact
            raise TextChanged(f"fact {edit.old} of {entity.name}", fact.text)
    raise TextChanged(f"fact {edit.old} of {entity.name}", None)


def _require_text(edit: Edit) -> str:
    text = edit.literal or str(edit.text)
    if not text.strip():
        raise BadInput(
            f"the new text of fact {name_fact(edit.old)} is blank; forget removes a fact"
        )
    return text


def _revise_card(entity: Entity, revision: Revision, at: int) -> Entity:
    """Return the entity with its new attributes; the same one if nothing changes."""
    tags = entity.tags if revision.tags is None else revision.tags
    kept = [tag for tag in tags if tag not in revision.remove_tags]
    changed = replace(
        entity,
        name=entity.name if revision.name is None else revision.name,
        type=entity.type if revision.type is None else revision.type,
        tags=tuple(dict.fromkeys((*kept, *revision.add_tags))),
        due=entity.due if revision.due is None else revision.due,
        status=entity.status if revision.status is None else revision.status,
        expires=entity.expires if revision.expires is None else revision.expires,
    )
    if not changed.name.strip():
        raise BadInput(f"the new name of {entity.name} is blank")
    if changed.name != entity.name:
        changed = replace(changed, aliases=join_aliases(changed, [entity.name]))
    if revision.summary is None:
        changed = replace(changed, summary=None, summary_at=0)
    elif revision.summary is not UNSET:
        # A summary that is given again is up to date: it is no longer older than the facts.
        changed = replace(changed, summary=revision.summary, summary_at=at)
    if changed == entity and revision.tags is None:
        return entity
    return replace(changed, updated_at=at)


def join_aliases(entity: Entity, names: Collection[str]) -> tuple[str, ...]:
    """Return the entity's aliases and these names, without its own name."""
    aliases = dict.fromkeys((*entity.aliases, *names))
    aliases.pop(entity.name, None)
    return tuple(aliases)


def _follow_name(
    transaction: Transaction, old: str, new: str
) -> tuple[list[Relation], list[Relation]]:
    """Return the relations that touch the old name, and what they become.

    Raise BadInput if the new name is taken.
    """
    if old == new:
        return [], []
    if transaction.read.existing_names([new]):
        raise BadInput(f"there is an entity {new} already; merge the two instead of renaming")
    moved = transaction.read.relations([old])
    redirected = {}
    for relation in moved:
        following = redirect(relation, [old], new)
        redirected[following.key] = following
    present = transaction.read.find_relations(redirected)
    return moved, [relation for key, relation in redirected.items() if key not in present]
