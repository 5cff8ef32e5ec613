"""Random verbs on every store and on the in-memory oracle.

Same answers and same memory, also after reopening.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from polymnia.engine.curation.clusters import clusters
from polymnia.engine.curation.findings import orphans, pending, relation_gaps
from polymnia.engine.curation.similar import duplicate_names
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.merge import merge
from polymnia.engine.facts.remember import EntityFacts, FactDraft, RememberReceipt, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities, facts, relations, traverse
from polymnia.engine.graph.facts import AddedFacts, RemovedFacts
from polymnia.engine.history.changes import count_events
from polymnia.engine.memory import Memory
from polymnia.engine.recall import search
from polymnia.engine.transfer.intake import Item, take_in
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import (
    ChangeQuery,
    Entity,
    EntityDraft,
    FactAddition,
    Graph,
    Passage,
    Relation,
    RelationKey,
    Rows,
    SupersededFact,
    Within,
)
from polymnia.search.terms import terms_of
from polymnia.stores import open_store
from polymnia.stores.files.graph import MemoryGraph
from tests.conftest import ON_DISK, STORES
from tests.groups import mostly_matrix
from tests.oracle import MemoryStore
from tests.postgres import new_database, new_workspace, shared_server

ME = "model"
# Few and similar, so that names collide; unusual, so that quoting, folding and short texts are
# covered.
ODD = [
    "a",
    "A",
    "ab",
    "abc",
    "abcd",
    "É",
    "e\u0301",
    "北京",
    "北京大学",
    '"x"',
    "a\nb",
    "",
    "straße",
    "%_",
]
WORDS = st.sampled_from(ODD)
STORABLE = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
NAMES = st.lists(WORDS, max_size=4)
TEXTS = st.lists(WORDS | STORABLE, max_size=4).map(tuple)
DRAFTS = st.lists(st.builds(EntityDraft, WORDS, WORDS, TEXTS), max_size=4)
RELATIONS = st.lists(st.builds(Relation, WORDS, WORDS, st.sampled_from(["r", "s"])), max_size=4)
ADDITIONS = st.lists(st.builds(FactAddition, WORDS, TEXTS), max_size=3)


class StoreMachine(RuleBasedStateMachine):
    """Runs the same verbs on a store and on the oracle."""

    kind: str
    new_url: ClassVar[Callable[[Path], str]]

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.url = type(self).new_url(Path(self.directory.name))
        self.memory = Memory(open_store(self.url))
        self.oracle = Memory(MemoryStore())
        self.states: dict[int, object] = {}  # what was remembered, by the time of the last change

    def teardown(self) -> None:
        if self.memory.store.capabilities.history:
            self.check_history()
        assert self.memory.store.check() == []
        self.memory.store.close()
        self.directory.cleanup()

    @rule(drafts=DRAFTS)
    def create_entities(self, drafts: list[EntityDraft]) -> None:
        created = [entities.create(item, drafts, by=ME) for item in (self.memory, self.oracle)]
        assert _plain(created[0]) == _plain(created[1])

    @rule(additions=ADDITIONS, skip_repeats=st.booleans())
    def add_observations(self, additions: list[FactAddition], skip_repeats: bool) -> None:
        assert _added(self.memory, additions, skip_repeats) == _added(
            self.oracle, additions, skip_repeats
        )

    @rule(removals=ADDITIONS)
    def remove_facts(self, removals: list[FactAddition]) -> None:
        removed = [
            facts.remove(item, [(one.entity, one.texts) for one in removals], by=ME)
            for item in (self.memory, self.oracle)
        ]
        assert _set_texts(removed[0]) == _set_texts(removed[1])

    @rule(additions=ADDITIONS)
    def append(self, additions: list[FactAddition]) -> None:
        mine, theirs = [
            facts.add(item, additions, by=ME, skip_unknown=True)
            for item in (self.memory, self.oracle)
        ]
        assert _set_texts(mine) == _set_texts(theirs)
        assert [item.before is None for item in mine] == [their.before is None for their in theirs]

    @rule(wanted=RELATIONS)
    def create_known_relations(self, wanted: list[Relation]) -> None:
        mine, theirs = [
            relations.create(item, wanted, by=ME, unknown_ends="skip")
            for item in (self.memory, self.oracle)
        ]
        assert _keys(mine.new) == _keys(theirs.new)
        assert _keys(mine.existing) == _keys(theirs.existing)
        assert mine.unknown_ends == theirs.unknown_ends

    @rule(
        relation=st.builds(Relation, WORDS, WORDS, st.sampled_from(["r", "s"])),
        kind=st.sampled_from(["r", "s"]),
    )
    def rename_relation(self, relation: Relation, kind: str) -> None:
        def verb(memory: Memory) -> RelationKey:
            return relations.rename(memory, relation, kind, by=ME).key

        assert _either(verb, self.memory) == _either(verb, self.oracle)

    @rule(wanted=RELATIONS)
    def create_relations(self, wanted: list[Relation]) -> None:
        created = [relations.create(item, wanted, by=ME) for item in (self.memory, self.oracle)]
        assert _keys(created[0].new) == _keys(created[1].new)

    @rule(unwanted=RELATIONS)
    def delete_relations(self, unwanted: list[Relation]) -> None:
        deleted = [relations.delete(item, unwanted, by=ME) for item in (self.memory, self.oracle)]
        assert sorted(_keys(deleted[0])) == sorted(_keys(deleted[1]))

    @rule(names=NAMES)
    def delete_entities(self, names: list[str]) -> None:
        deleted = [entities.delete(item, set(names), by=ME) for item in (self.memory, self.oracle)]
        assert _graph(deleted[0]) == _graph(deleted[1])

    @rule(drafts=DRAFTS, wanted=RELATIONS)
    def absorb(self, drafts: list[EntityDraft], wanted: list[Relation]) -> None:
        scratch = Memory(MemoryStore())
        entities.create(scratch, drafts, by=ME)
        relations.create(scratch, wanted, by=ME)
        graph = entities.read_all(scratch)
        items: list[Item] = [*graph.entities, *graph.relations]
        mine, theirs = [take_in(item, items, by=ME) for item in (self.memory, self.oracle)]
        assert (mine.entities, mine.relations) == (theirs.entities, theirs.relations)

    @rule(names=NAMES)
    def open_named(self, names: list[str]) -> None:
        assert _graph(entities.open_named(self.memory, set(names))) == _graph(
            entities.open_named(self.oracle, set(names))
        )

    @rule(query=WORDS | st.text(max_size=4))
    def search(self, query: str) -> None:
        assert _graph(search.containing(self.memory, query)) == _graph(
            search.containing(self.oracle, query)
        )

    @rule(query=WORDS, names=NAMES)
    def words(self, query: str, names: list[str]) -> None:
        terms = terms_of(query)
        with self.memory.reading() as read, self.oracle.reading() as expected:
            for within in (None, Within(names=tuple(names)), Within(types=tuple(names))):
                mine, theirs = (
                    read.candidates(terms, 1000, within),
                    expected.candidates(terms, 1000, within),
                )
                assert _texts(mine) == _texts(theirs)
            assert set(read.names_with(terms, 100)) == set(expected.names_with(terms, 100))

    @rule(drafts=DRAFTS)
    def upsert(self, drafts: list[EntityDraft]) -> None:
        assert entities.upsert(self.memory, drafts, by=ME) == entities.upsert(
            self.oracle, drafts, by=ME
        )

    @rule(drafts=DRAFTS, wanted=RELATIONS)
    def remember(self, drafts: list[EntityDraft], wanted: list[Relation]) -> None:
        facts = [
            EntityFacts(
                name=draft.name,
                type=draft.type,
                facts=tuple([FactDraft(text) for text in draft.facts]),
            )
            for draft in drafts
        ]
        verb = partial(remember, entities=facts, relations=wanted, by=ME)
        assert _outcomes(_either(verb, self.memory)) == _outcomes(_either(verb, self.oracle))

    @rule(
        name=WORDS,
        new=st.none() | WORDS,
        kind=st.none() | WORDS,
        text=WORDS,
        supersede=st.booleans(),
    )
    def revise(
        self, name: str, new: str | None, kind: str | None, text: str, supersede: bool
    ) -> None:
        found = entities.open_named(self.oracle, [name]).entities
        edit = (Edit(found[0].texts[0], text),) if found and found[0].texts else ()
        corrected, superseded = ((), edit) if supersede else (edit, ())
        revision = Revision(name=new, type=kind, replace=corrected, supersede=superseded)
        verb = partial(revise, name=name, revision=revision, by=ME)
        results = [_either(verb, item) for item in (self.memory, self.oracle)]
        assert (
            results[0] == results[1]
            if isinstance(results[1], str)
            else not isinstance(results[0], str)
        )

    @rule(names=NAMES, unwanted=RELATIONS)
    def forget(self, names: list[str], unwanted: list[Relation]) -> None:
        chosen = Unwanted(entities=tuple(names), relations=tuple(unwanted))
        found = [forget(item, chosen, by=ME) for item in (self.memory, self.oracle)]
        assert _plain(list(found[0].entities)) == _plain(list(found[1].entities))
        assert sorted(_keys(list(found[0].relations))) == sorted(_keys(list(found[1].relations)))
        assert found[0].unknown == found[1].unknown

    @rule(start=WORDS, end=WORDS)
    def merge(self, start: str, end: str) -> None:
        def verb(memory: Memory) -> tuple[int, int, int]:
            receipt = merge(memory, [start], end, by=ME)
            return receipt.facts, receipt.relations, receipt.known

        assert _either(verb, self.memory) == _either(verb, self.oracle)

    @rule(start=WORDS, end=WORDS, depth=st.integers(0, 4))
    def paths(self, start: str, end: str, depth: int) -> None:
        for verb in (
            lambda *ends: traverse.shortest_path(*ends).names,
            partial(traverse.all_paths, max_depth=depth, max_paths=20),
        ):
            assert _either(verb, self.memory, start, end) == _either(verb, self.oracle, start, end)

    @rule(names=NAMES, depth=st.integers(0, 3), direction=st.sampled_from(["in", "out", "both"]))
    def surroundings(self, names: list[str], depth: int, direction: traverse.Direction) -> None:
        assert _graph(traverse.subgraph(self.memory, names, depth)) == _graph(
            traverse.subgraph(self.oracle, names, depth)
        )
        for name in names:
            around = partial(
                traverse.neighbours, name=name, depth=depth, kind=None, direction=direction
            )
            assert _either(around, self.memory) == _either(around, self.oracle)

    @rule(
        query=WORDS,
        kind=st.none() | WORDS,
        offset=st.integers(0, 3),
        limit=st.none() | st.integers(0, 3),
    )
    def slices(self, query: str, kind: str | None, offset: int, limit: int | None) -> None:
        words = f"{query} abc"
        for verb in (
            entities.page,
            partial(search.best_matches, query=query),
            partial(search.best_matches, query=words),
        ):
            mine = verb(self.memory, kind=kind, offset=offset, limit=limit)
            assert _graph(mine) == _graph(verb(self.oracle, kind=kind, offset=offset, limit=limit))

    @rule(start=st.none() | WORDS, end=st.none() | WORDS, kind=st.sampled_from([None, "r", "s"]))
    def relations_like(self, start: str | None, end: str | None, kind: str | None) -> None:
        like = partial(relations.find, source=start, target=end, kind=kind)
        assert _keys(like(self.memory)) == _keys(like(self.oracle))

    @rule()
    def curation(self) -> None:
        for verb in (relation_gaps, duplicate_names, clusters):
            assert verb(self.memory) == verb(self.oracle)
        for listed in (orphans, pending):
            assert {item.name for item in listed(self.memory)} == {
                item.name for item in listed(self.oracle)
            }

    @rule(since=st.integers(0, 10))
    def events(self, since: int) -> None:
        if self.memory.store.capabilities.history:
            with self.memory.reading() as read, self.oracle.reading() as expected:
                assert count_events(read.history, since) == count_events(expected.history, since)

    @rule()
    def compact(self) -> None:
        self.memory.store.compact()

    @precondition(lambda self: self.kind in ON_DISK)
    @rule()
    def reopen(self) -> None:
        self.memory.store.close()
        self.memory = Memory(open_store(self.url))

    def check_history(self) -> None:
        """Check that each past state can be read, and that the changes lead to the next."""
        replayed = MemoryGraph()
        with self.memory.reading() as read:
            for time, state in self.states.items():
                assert _rows(read.history.state_at(time)) == state
            changes = read.history.changes(ChangeQuery(limit=None))[::-1]
        assert [change.id for change in changes] == list(range(1, len(changes) + 1))
        for change in changes:
            replayed.apply(change)
            state = _graph(Graph(replayed.entities(), replayed.relations()))
            assert self.states.get(change.at, state) == state

    @invariant()
    def the_state_is_recorded(self) -> None:
        if self.memory.store.capabilities.history:
            with self.memory.reading() as read:
                changes = read.history.changes(ChangeQuery(limit=None))[::-1]
            self.states[changes[-1].at if changes else 0] = _graph(entities.read_all(self.memory))

    @rule(names=NAMES)
    def past_of_some(self, names: list[str]) -> None:
        if not self.memory.store.capabilities.history or not self.states:
            return
        time = max(self.states)
        with self.memory.reading() as read, self.oracle.reading() as expected:
            mine = read.history.state_at(time, names)
            assert _plain(list(mine.entities)) == _plain(expected.entities(names))
            living = {entity.name for entity in mine.entities}
            assert _keys(list(mine.relations)) == _keys(expected.relations(living))
            for name in names:
                ended = sorted(map(_plain_past, read.history.ended_facts(name)))
                assert ended == sorted(map(_plain_past, expected.history.ended_facts(name)))

    @invariant()
    def the_same_is_remembered(self) -> None:
        assert _graph(entities.read_all(self.memory)) == _graph(entities.read_all(self.oracle))
        with self.memory.reading() as read, self.oracle.reading() as expected:
            assert read.counts() == expected.counts()
            assert read.type_counts("entities") == expected.type_counts("entities")
            assert read.type_counts("relations") == expected.type_counts("relations")


@pytest.mark.parametrize("kind", mostly_matrix(STORES, (*ON_DISK, "postgres")))
def test_every_store_remembers_what_the_oracle_does(kind: str) -> None:
    profile = settings(
        # PostgreSQL takes four times as long, and shares most of its code with SQLite.
        max_examples=10 if kind == "postgres" else 25,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    with _new_urls(kind) as new_url:
        machine = type("Machine", (StoreMachine,), {"kind": kind, "new_url": staticmethod(new_url)})
        run_state_machine_as_test(machine, settings=profile)


@contextmanager
def _new_urls(kind: str) -> Iterator[Callable[[Path], str]]:
    """Yield what returns the URL of a new store.

    Compacting concerns a whole database, so here it is a small one.
    """
    if kind != "postgres":
        yield STORES[kind]
        return
    with new_database(shared_server()) as database:
        yield lambda _: new_workspace(database)


def _either(verb: Callable[..., object], *arguments: object, **options: object) -> object:
    """Return the result of the verb without what files do not hold, or the error it raises."""
    try:
        found = verb(*arguments, **options)
    except BadInput as exc:
        return str(exc)
    return _graph(found) if isinstance(found, Graph) else found


def _outcomes(receipt: object) -> object:
    """Return what became of each item.

    Names that look alike are found by words, which stores index differently.
    """
    if not isinstance(receipt, RememberReceipt):
        return receipt
    entities = [
        (entity.name, entity.outcome, [fact.outcome for fact in entity.facts])
        for entity in receipt.entities
    ]
    return entities, [
        (relation.relation.key, relation.outcome, relation.reason) for relation in receipt.relations
    ]


def _added(memory: Memory, additions: list[FactAddition], skip_repeats: bool) -> object:
    try:
        return _set_texts(facts.add(memory, additions, by=ME, skip_repeats=skip_repeats))
    except EntityNotFound as exc:
        return str(exc)


def _plain_past(past: SupersededFact) -> tuple[int, str, int, int, str]:
    """Return a past fact without its times."""
    return (past.change, past.old.text, past.old.ordinal, past.successor, past.operation)


def _plain(found: list[Entity]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return what every store holds: files have no ids, times or ordinals."""
    return [(entity.name, entity.type, entity.texts) for entity in found]


def _texts(found: list[Passage]) -> list[tuple[str, bool, str]]:
    """Return what was found, without texts that contain unassigned characters.

    Tokenizers differ about these.
    """
    return sorted((item.entity, item.ordinal == 0, item.text) for item in found if item.text in ODD)


def _keys(found: list[Relation]) -> list[tuple[str, str, str]]:
    return [relation.key for relation in found]


def _graph(graph: Graph) -> object:
    return _plain(graph.entities), _keys(graph.relations)


def _rows(rows: Rows) -> object:
    return _plain(list(rows.entities)), _keys(list(rows.relations))


def _set_texts(sets: list[AddedFacts] | list[RemovedFacts]) -> object:
    return [(item.entity, [fact.text for fact in item.facts]) for item in sets]
