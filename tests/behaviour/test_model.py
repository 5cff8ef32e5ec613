"""Random verbs on every store beside the in-memory oracle: the same answers, the same memory, also after reopening."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from polymnia.engine import entities, observations, relations, search, transfer
from polymnia.engine.memory import Memory
from polymnia.errors import EntityNotFound
from polymnia.model import Draft, Entity, Graph, Noted, Relation, Texts
from polymnia.stores import open_store
from polymnia.stores.memory import MemoryStore
from tests.conftest import ON_DISK, STORES

ME = "model"
# Few and alike, so that names meet; odd, so that quoting, folding and short texts are met too.
WORDS = st.sampled_from(
    ["a", "A", "ab", "abc", "abcd", "É", "e\u0301", "北京", "北京大学", '"x"', "a\x00b", "", "straße", "%_"]
)
NAMES = st.lists(WORDS, max_size=4)
TEXTS = st.lists(WORDS | st.text(max_size=6), max_size=4).map(tuple)
DRAFTS = st.lists(st.builds(Draft, WORDS, WORDS, TEXTS), max_size=4)
RELATIONS = st.lists(st.builds(Relation, WORDS, WORDS, st.sampled_from(["r", "s"])), max_size=4)
ADDITIONS = st.lists(st.builds(Texts, WORDS, TEXTS), max_size=3)


class StoreMachine(RuleBasedStateMachine):
    """A store and the oracle are told the same things."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.url = STORES[self.kind](Path(self.directory.name))
        self.memory = Memory(open_store(self.url))
        self.oracle = Memory(MemoryStore())

    def teardown(self) -> None:
        assert self.memory.store.check() == []
        self.memory.store.close()
        self.directory.cleanup()

    @rule(drafts=DRAFTS)
    def create_entities(self, drafts: list[Draft]) -> None:
        created = [entities.create(each, drafts, by=ME) for each in (self.memory, self.oracle)]
        assert _plain(created[0]) == _plain(created[1])

    @rule(additions=ADDITIONS, skip_repeats=st.booleans())
    def add_observations(self, additions: list[Texts], skip_repeats: bool) -> None:
        assert _added(self.memory, additions, skip_repeats) == _added(self.oracle, additions, skip_repeats)

    @rule(removals=ADDITIONS)
    def remove_observations(self, removals: list[Texts]) -> None:
        removed = [observations.remove(each, removals, by=ME) for each in (self.memory, self.oracle)]
        assert _noted(removed[0]) == _noted(removed[1])

    @rule(wanted=RELATIONS)
    def create_relations(self, wanted: list[Relation]) -> None:
        created = [relations.create(each, wanted, by=ME) for each in (self.memory, self.oracle)]
        assert _keys(created[0]) == _keys(created[1])

    @rule(doomed=RELATIONS)
    def delete_relations(self, doomed: list[Relation]) -> None:
        deleted = [relations.delete(each, doomed, by=ME) for each in (self.memory, self.oracle)]
        assert sorted(_keys(deleted[0])) == sorted(_keys(deleted[1]))

    @rule(names=NAMES)
    def delete_entities(self, names: list[str]) -> None:
        deleted = [entities.delete(each, set(names), by=ME) for each in (self.memory, self.oracle)]
        assert _graph(deleted[0]) == _graph(deleted[1])

    @rule(drafts=DRAFTS, wanted=RELATIONS)
    def absorb(self, drafts: list[Draft], wanted: list[Relation]) -> None:
        scratch = Memory(MemoryStore())
        entities.create(scratch, drafts, by=ME)
        relations.create(scratch, wanted, by=ME)
        graph = entities.read_all(scratch)
        assert transfer.absorb(self.memory, graph, by=ME) == transfer.absorb(self.oracle, graph, by=ME)

    @rule(names=NAMES)
    def open_named(self, names: list[str]) -> None:
        assert _graph(entities.open_named(self.memory, set(names))) == _graph(
            entities.open_named(self.oracle, set(names))
        )

    @rule(query=WORDS | st.text(max_size=4))
    def search(self, query: str) -> None:
        assert _graph(search.containing(self.memory, query)) == _graph(search.containing(self.oracle, query))

    @precondition(lambda self: self.kind in ON_DISK)
    @rule()
    def reopen(self) -> None:
        self.memory.store.close()
        self.memory = Memory(open_store(self.url))

    @rule()
    def compact(self) -> None:
        self.memory.store.compact()

    @invariant()
    def the_same_is_remembered(self) -> None:
        assert _graph(entities.read_all(self.memory)) == _graph(entities.read_all(self.oracle))
        with self.memory.reading() as read, self.oracle.reading() as expected:
            assert read.counts() == expected.counts()


@pytest.mark.parametrize("kind", STORES)
def test_every_store_remembers_what_the_oracle_does(kind: str) -> None:
    machine = type("Machine", (StoreMachine,), {"kind": kind})
    profile = settings(max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=profile)


def _added(memory: Memory, additions: list[Texts], skip_repeats: bool) -> object:
    try:
        return _noted(observations.add(memory, additions, by=ME, skip_repeats=skip_repeats))
    except EntityNotFound as exc:
        return str(exc)


def _plain(found: list[Entity]) -> list[tuple[str, str, tuple[str, ...]]]:
    """What every store holds: a file keeps no ids, times or ordinals."""
    return [(entity.name, entity.type, entity.texts) for entity in found]


def _keys(found: list[Relation]) -> list[tuple[str, str, str]]:
    return [relation.key for relation in found]


def _graph(graph: Graph) -> object:
    return _plain(graph.entities), _keys(graph.relations)


def _noted(noted: list[Noted]) -> object:
    return [(each.entity, [observation.text for observation in each.observations]) for each in noted]
