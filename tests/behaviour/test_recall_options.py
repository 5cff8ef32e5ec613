"""Options of recall on every store: other phrasings, neighbours of a hit, and filters by tag."""

import pytest

from polymnia.engine.graph import facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import MAX_ALSO, recall
from polymnia.model import EntityDraft, FactAddition, Within
from tests.behaviour.graphs import ME, create

HOUR = 3_600_000_000


def tell(memory: Memory, *texts: str, source: str = "") -> None:
    drafts = [FactAddition("Ann", (text,), 5 * HOUR, source) for text in texts]
    facts.add(memory, drafts, by=ME, skip_repeats=False)


def texts(memory: Memory, question: str, *also: str, limit: int = 10) -> list[str]:
    return [hit.passage.text for hit in recall(memory, question, also=also, limit=limit).hits]


def test_another_phrasing_finds_what_the_question_does_not(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("moved to Lisbon", "keeps goats")))
    assert texts(memory, "where is home") == []
    assert texts(memory, "where is home", "Lisbon") == ["moved to Lisbon"]


def test_the_question_counts_more_than_the_guesses(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Ann", "person", ("keeps goats on a farm", "moved to a bakery in Lisbon")),
    )
    assert texts(memory, "who keeps goats", "bakery in Lisbon")[0] == "keeps goats on a farm"


def test_a_phrasing_without_new_words_changes_nothing(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Ann", "person", ("keeps goats on a farm", "has a farm", "goats are loud")),
    )
    alone = recall(memory, "Does Ann keep goats?").hits
    assert (
        recall(memory, "Does Ann keep goats?", also=["goats", "keep goats", "", "  "]).hits == alone
    )


@pytest.mark.parametrize(
    "phrasing", ["tell me everything you know about goats", "Please remember: Ann keeps goats"]
)
def test_words_that_only_ask_are_not_new(memory: Memory, phrasing: str) -> None:
    facts = ("keeps goats on a farm", "I know everything, tell me", "please remember the milk")
    create(memory, EntityDraft("Ann", "person", facts))
    alone = recall(memory, "Does Ann keep goats?").hits
    assert recall(memory, "Does Ann keep goats?", also=[phrasing]).hits == alone


def test_wrong_guesses_do_not_weaken_the_right_one(memory: Memory) -> None:
    at_home = (
        "went home by bus",
        "stayed home all day",
        "called home from work",
        "came home late again",
    )
    create(
        memory,
        EntityDraft(
            "Ann", "person", ("bought some ochre paint", *at_home, "the colour of her home")
        ),
    )
    for guesses in (["ochre"], ["ochre", "green", "white", "black"]):
        found = texts(memory, "Which colour has the home?", *guesses)
        assert found[:2] == ["the colour of her home", "bought some ochre paint"]


def test_a_guess_is_about_the_entities_that_the_question_names(memory: Memory) -> None:
    people = ("Bob", "Ann", "Eve")
    create(
        memory,
        *[
            EntityDraft(name, "person", ("bought a house in Lisbon", "has a dog"))
            for name in people
        ],
    )
    found = recall(memory, "Where does Ann live?", also=["Lisbon"]).hits[0]
    assert found.passage.key == ("Ann", 1)
    assert found.reasons == ("word: lisbon", "about: Ann")


def test_the_evidence_is_that_of_the_phrasing_that_matches_best(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("moved to Lisbon",)))
    (hit,) = recall(memory, "where is home", also=["moved to Lisbon"]).hits
    assert hit.match_kind == "phrase"
    assert hit.signals.words > 0


def test_only_the_question_itself_can_be_an_exact_match(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Lisbon", "city"),
        EntityDraft("Ann", "person", ("her home is by the sea",)),
    )
    assert texts(memory, "where is her home", "Lisbon")[0] == "her home is by the sea"


def test_the_first_phrasings_count(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("moved to Lisbon",)))
    others = [f"nothing{number}" for number in range(MAX_ALSO)]
    assert texts(memory, "where", *others[1:], "Lisbon") == ["moved to Lisbon"]
    assert texts(memory, "where", *others, "Lisbon") == []


def test_a_hit_comes_with_its_neighbours(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    tell(memory, "first", "second", "the teal boat", "fourth", "fifth")
    (hit,) = recall(memory, "teal", limit=1, context=2).hits
    assert [item.text for item in hit.before] == ["first", "second"]
    assert [item.text for item in hit.after] == ["fourth", "fifth"]
    (hit,) = recall(memory, "teal", limit=1, context=1).hits
    assert ([item.text for item in hit.before], [item.text for item in hit.after]) == (
        ["second"],
        ["fourth"],
    )
    (hit,) = recall(memory, "teal", limit=1).hits
    assert (hit.before, hit.after) == ((), ())


def test_neighbours_end_where_the_conversation_ends(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    tell(memory, "elsewhere", source="a letter")
    tell(memory, "second", "the teal boat", source="a chat")
    tell(memory, "later", source="a letter")
    (hit,) = recall(memory, "teal", limit=1, context=5).hits
    assert ([item.text for item in hit.before], hit.after) == (["second"], ())
    assert hit.passage.source == "a chat"


def test_entities_and_notes_have_no_neighbours(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("sails",)), EntityDraft("Ben", "person"))
    assert [(hit.before, hit.after) for hit in recall(memory, "Ben", limit=1, context=3).hits] == [
        ((), ())
    ]


def test_a_search_can_be_limited_to_tags(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("sails at dawn",), tags=("crew", "club")))
    create(memory, EntityDraft("Ben", "person", ("sails at noon",), tags=("crew",)))

    def found(*tags: str) -> set[str]:
        return {
            hit.passage.entity for hit in recall(memory, "who sails", within=Within(tags=tags)).hits
        }

    assert found("crew") == {"Ann", "Ben"}
    assert found("crew", "club") == {"Ann"}
    assert found("guest") == set()
