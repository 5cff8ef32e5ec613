"""Whether anything about a question is stored, by the hits in one or several memories."""

from msgspec.structs import replace

from polymnia.model import Hit, Passage, Signals, WordCounts
from polymnia.search import stored
from polymnia.search.hits import best_hits
from polymnia.search.scoring import Query, ScoredPassage
from polymnia.search.stored import support_of, unknown_words
from polymnia.search.terms import terms_of
from tests.search.queries import ask, scored

SUPPLIES = frozenset(terms_of("supplier supplies"))


def match_quality(hits: list[Hit], query: Query) -> str:
    return stored.match_quality([support_of(hits, query)])


def hit_with(query: Query, text: str, cosine: float) -> list[Hit]:
    """Return hits for a memory in which one fact may answer, and twenty have nothing to do with it.

    The best one comes first.
    """
    fact = scored(query, text, Signals(meaning=cosine))
    return best_hits(query.folded, [replace(fact, score=2.0), *unrelated(query)], 21)


def unrelated(query: Query) -> list[ScoredPassage]:
    texts = [f"number {number} hums" for number in range(20)]
    return [scored(query, text, Signals(meaning=0.1)) for text in texts]


def test_a_topic_that_no_hit_is_near_is_not_stored() -> None:
    query = ask("Which insurance covers the vans?")
    assert match_quality(hit_with(query, "likes tea", 0.2), query) == "none"
    assert match_quality(hit_with(query, "likes tea", 0.3), query) == "perhaps"
    assert match_quality(hit_with(query, "likes tea", 0.6), query) == "clear"
    assert match_quality(hit_with(query, "insurance for vans", 0.33), query) == "clear"


def test_the_name_of_an_entity_is_not_the_topic() -> None:
    query = ask("How tall is Ada?", named="Ada")
    assert match_quality(hit_with(query, "Ada likes tea", 0.2), query) == "none"


def test_a_known_word_with_a_capital_letter_is_not_the_topic() -> None:
    facts = WordCounts(passages=100, words=1000, having={"paloma": 3, "gym": 0})
    query = ask("Which gym does Paloma go to?", counts=facts)
    assert match_quality(hit_with(query, "is Paloma, director in Lima", 0.25), query) == "none"
    query = ask("Who is Paloma?", counts=facts)
    assert match_quality(hit_with(query, "is Paloma, director in Lima", 0.3), query) == "clear"


def test_a_common_word_in_common_does_not_cover_the_topic() -> None:
    facts = WordCounts(passages=100, words=1000, having={"old": 1, "mortgag": 1})
    for covered, match in (("the old barn", "perhaps"), ("the mortgage", "clear")):
        query = ask("How old is the mortgage?", counts=facts)
        assert match_quality(hit_with(query, covered, 0.12), query) == match


def test_a_name_that_no_fact_has_speaks_against_an_answer() -> None:
    facts = WordCounts(passages=100, words=1000, having={"version": 3})
    for name, match in (("cluster", "clear"), ("Kubernetes", "none")):
        query = ask(f"Which {name} version do we run?", counts=facts)
        assert match_quality(hit_with(query, "version 2.4 shows crates", 0.3), query) == match


def test_a_noun_in_german_is_no_name() -> None:
    facts = WordCounts(passages=100, words=1000, having={"version": 3})
    query = ask("Welche Version hat unser Lieferwagen?", counts=facts)
    assert match_quality(hit_with(query, "Version 2.4 mit Kisten", 0.35), query) == "clear"


def test_words_that_only_ask_are_not_the_topic() -> None:
    query = ask("List everything you know about Ada", named="Ada")
    assert match_quality(hit_with(query, "likes tea", 0.15), query) == "clear"


def test_a_name_or_a_summary_before_the_facts_does_not_hide_that_nothing_is_stored() -> None:
    query = ask("Which allergies does Ada have?", named="Ada")
    for summary in ("", "Runs the orchard"):
        card = replace(scored(query, "", Signals()), passage=Passage("Ada", "person", 0, summary))
        fact = scored(query, "likes tea", Signals(meaning=0.15))
        ranked = [replace(card, score=2.0), fact, *unrelated(query)]
        assert match_quality(best_hits(query.folded, ranked, 22), query) == "none"


def test_of_few_facts_none_is_far_enough_to_say_that_nothing_is_stored() -> None:
    query = ask("Which database do we use?")
    fact = scored(query, "runs on PostgreSQL", Signals(meaning=0.2))
    assert match_quality(best_hits(query.folded, [fact], 1), query) == "perhaps"


def test_the_words_of_a_relation_are_stored() -> None:
    query = replace(ask("Which suppliers has Ada?", named="Ada"), relation_terms=SUPPLIES)
    assert match_quality(hit_with(query, "likes tea", 0.15), query) == "clear"


def test_vague_words_and_relations_are_not_missing() -> None:
    query = replace(ask("Which suppliers and which database do we use?"), relation_terms=SUPPLIES)
    assert unknown_words(query) == ("database",)


def test_a_question_with_a_part_of_a_name_is_not_about_nothing() -> None:
    query = ask("Which allergies does Ada have?", named="Ada")
    part = scored(query, "likes tea", Signals(meaning=0.15, entity=0.2))
    assert match_quality(best_hits(query.folded, [part], 1), query) == "perhaps"


def test_a_small_memory_is_judged_together_with_a_large_one() -> None:
    query = ask("Who is the treasurer?")
    fact = scored(query, "is called Ada and writes software", Signals(meaning=0.33))
    small = support_of(best_hits(query.folded, [fact], 1), query)
    related = [
        scored(query, f"person {number} sings", Signals(meaning=0.3)) for number in range(20)
    ]
    large = support_of(best_hits(query.folded, related, 20), query)
    assert stored.match_quality([small]) == "clear"
    assert stored.match_quality([small, large]) == "none"


def test_a_year_alone_is_no_answer() -> None:
    query = ask("Who won the regatta in 1998?")
    hits = hit_with(query, "likes tea", 0.2)
    assert match_quality(hits, query) == "none"
    first = replace(hits[0], signals=Signals(meaning=0.2, date=0.5))
    assert match_quality([first, *hits[1:]], query) == "clear"
