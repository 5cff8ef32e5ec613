"""The words index on every store.

Passages by term, neighbours in a conversation, observations by time.
"""

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, FactAddition, PassageKey, Within
from polymnia.search.terms import terms_of
from polymnia.stores import open_store
from polymnia.stores.contract import MAX_CONVERSATION_GAP, MAX_CONVERSATION_STEPS
from tests.behaviour.graphs import ME, create

LIBRARY = (
    EntityDraft("Caroline", "person", ("likes running", "has a dog")),
    EntityDraft("getUserName", "function", ("returns the user_name", "位于北京市海淀区")),
)


def having(memory: Memory, *terms: str, within: Within | None = None) -> set[PassageKey]:
    with memory.reading() as read:
        return {passage.key for passage in read.candidates(terms, 100, within)}


def talk(
    memory: Memory, valid_at: int, *turns: tuple[str, str], source: str = "", by: str = ME
) -> None:
    said = [FactAddition(name, (text,), valid_at, source) for name, text in turns]
    facts.add(memory, said, by=by, skip_repeats=False)


def test_passages_are_found_by_stem_part_and_pair(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert having(memory, "run") == {("Caroline", 1)}
    assert having(memory, "user") == {("getUserName", 0), ("getUserName", 1)}
    assert having(memory, "海淀") == {("getUserName", 2)}
    assert having(memory, "person", "dog") == {("Caroline", 0), ("Caroline", 2)}
    assert having(memory, "nothing") == set()


def test_passages_can_be_restricted_to_some_entities(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert having(memory, "user", "dog", within=Within(names=("Caroline", "Nobody"))) == {
        ("Caroline", 2)
    }
    assert having(memory, "user", "dog", within=Within(types=("person",))) == {("Caroline", 2)}
    assert (
        having(memory, "user", "dog", within=Within(names=("Caroline",), types=("function",)))
        == set()
    )


def test_candidates_are_filtered_by_tags(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("sails",), tags=("crew", "club")))
    create(
        memory,
        EntityDraft("Ben", "person", ("sails",), tags=("crew",)),
        EntityDraft("Cy", "person", ("sails",)),
    )
    assert having(memory, "sail", within=Within(tags=("crew",))) == {("Ann", 1), ("Ben", 1)}
    assert having(memory, "sail", within=Within(tags=("crew", "club"))) == {("Ann", 1)}
    assert having(memory, "sail", within=Within(tags=())) == {("Ann", 1), ("Ben", 1), ("Cy", 1)}


def test_passages_can_be_restricted_to_a_period(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("hello now",)))
    talk(memory, 1_000, ("Ann", "hello then"))
    assert having(memory, "hello", within=Within(until=1_001)) == {("Ann", 2)}
    assert having(memory, "hello", within=Within(since=1_001)) == {("Ann", 1)}
    assert having(memory, "hello", "ann", within=Within(since=1_001)) == {("Ann", 0), ("Ann", 1)}


def test_deleted_passages_are_not_found_by_their_words(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert having(memory, "dog", "user")
    facts.remove(memory, [("Caroline", ("has a dog",))], by=ME)
    entities.delete(memory, ["getUserName"], by=ME)
    assert having(memory, "dog", "user") == set()
    assert having(memory, "run", "carolin") == {("Caroline", 0), ("Caroline", 1)}


def test_passages_added_later_are_found(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert having(memory, "hike") == set()
    facts.add(memory, [FactAddition("Caroline", ("went hiking",))], by=ME, skip_repeats=True)
    assert having(memory, "hike") == {("Caroline", 3)}


def test_terms_and_passages_are_counted(memory: Memory) -> None:
    create(memory, *LIBRARY)
    with memory.reading() as read:
        counts = read.word_counts(["user", "dog", "nothing"])
    assert (counts.passages, counts.having) == (6, {"user": 2, "dog": 1})
    assert counts.words == 2 + 2 + 3 + 2 + 3 + 4 + 1 + 7


def test_an_empty_memory_has_no_words(memory: Memory) -> None:
    with memory.reading() as read:
        counts = read.word_counts(["user"])
        assert (counts.passages, counts.words, counts.having) == (0, 0, {})
        assert read.vocabulary("a", "z", 10) == []


def test_the_vocabulary_can_be_read_in_ranges(memory: Memory) -> None:
    create(memory, *LIBRARY)
    with memory.reading() as read:
        assert read.vocabulary("r", "t", 10) == ["return", "run"]
        assert read.vocabulary("a", "z", 2) == ["a", "carolin"]


def test_names_are_found_by_their_words(memory: Memory) -> None:
    create(memory, *LIBRARY, EntityDraft("Caroline Smith", "person", ("user",)))
    with memory.reading() as read:
        assert read.names_with(["smith", "carolin"], 10) == ["Caroline Smith", "Caroline"]
        assert read.names_with(["user"], 10) == ["getUserName"]
        assert read.names_with(["person"], 10) == []


def around(memory: Memory, word: str) -> list[str | None]:
    """Return the texts before, earlier and after the one observation with that word."""
    with memory.reading() as read:
        (passage,) = [
            candidate for candidate in read.candidates([word], 10) if candidate.ordinal > 0
        ]
        near = read.neighbours([passage])[passage.key]
    return [item.text if item else None for item in (near.before, near.earlier, near.after)]


def test_neighbours_belong_to_the_same_conversation_across_entities(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    talk(memory, 7, ("Ann", "hello"), ("Ben", "hi"))
    talk(memory, 7 + MAX_CONVERSATION_GAP, ("Ann", "bye"))
    talk(memory, 9 + 2 * MAX_CONVERSATION_GAP, ("Ben", "tomorrow"))
    assert around(memory, "hello") == [None, None, "hi"]
    assert around(memory, "hi") == ["hello", None, "bye"]
    assert around(memory, "bye") == ["hi", "hello", None]
    assert around(memory, "tomorrow") == [None, None, None]


def test_facts_without_a_valid_time_are_neighbours_in_order_of_writing(
    memory: Memory,
) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    talk(memory, 0, ("Ann", "one"))
    talk(memory, 7, ("Ann", "aside"))
    talk(memory, 0, ("Ben", "two"), ("Ann", "three"))
    assert around(memory, "two") == ["one", None, "three"]
    assert around(memory, "three") == ["two", "one", None]


def test_facts_of_one_source_are_neighbours_whoever_wrote_them_and_whenever(
    memory: Memory,
) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    talk(memory, 7, ("Ann", "hello"), source="chat 1")
    for number in range(MAX_CONVERSATION_STEPS):
        talk(memory, 7, ("Ben", f"aside {number}"))
    talk(memory, 7, ("Ben", "apart"), source="chat 2")
    talk(memory, 9 + MAX_CONVERSATION_GAP, ("Ben", "hi"), source="chat 1", by="another client")
    assert around(memory, "hi") == ["hello", None, None]
    assert around(memory, "hello") == [None, None, "hi"]
    assert around(memory, "apart") == [None, None, None]


def test_a_conversation_without_a_source_does_not_reach_far(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    talk(memory, 7, ("Ann", "hello"))
    for number in range(MAX_CONVERSATION_STEPS):
        talk(memory, 0, ("Ann", f"aside {number}"))
    talk(memory, 7, ("Ann", "bye"))
    assert around(memory, "hello") == around(memory, "bye") == [None, None, None]


def test_clients_that_write_at_the_same_time_have_separate_conversations(
    versioned_url: str,
) -> None:
    store = open_store(versioned_url)
    memory = Memory(store)
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    talk(memory, 0, ("Ann", "hello"), by="first")
    talk(memory, 0, ("Ben", "apart"), by="second")
    talk(memory, 0, ("Ann", "bye"), by="first")
    assert around(memory, "bye") == ["hello", None, None]
    assert around(memory, "hello") == [None, None, "bye"]
    assert around(memory, "apart") == [None, None, None]
    store.close()


def test_a_deleted_fact_is_not_a_neighbour(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    talk(memory, 7, ("Ann", "one"), ("Ann", "two"), ("Ann", "three"))
    facts.remove(memory, [("Ann", ("two",))], by=ME)
    assert around(memory, "three") == ["one", None, None]


def test_facts_are_found_by_their_time(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("just now",)))
    talk(memory, 1_000, ("Ann", "first"))
    talk(memory, 2_000, ("Ann", "second"))
    with memory.reading() as read:
        assert [item.text for item in read.facts_between(1_000, 2_000, 10)] == ["first"]
        assert [item.text for item in read.facts_between(1, 2**60, 2)] == [
            "just now",
            "second",
        ]


def test_a_term_that_would_be_stemmed_again_is_found(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("a generalization", "universities", "she dies")))
    for word in ("generalization", "universities", "dies"):
        (term,) = terms_of(word)
        assert len(having(memory, term)) == 1, term
        with memory.reading() as read:
            assert read.word_counts([term]).having == {term: 1}
