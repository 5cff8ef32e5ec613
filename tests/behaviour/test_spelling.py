"""Spelling: corrections of a mistyped word, and its other spellings."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.recall.typos import measure
from polymnia.embedders.wordpiece import english_words, is_english, read_vocabulary
from polymnia.engine.memory import Memory
from polymnia.engine.recall.spelling import repair_spelling
from polymnia.model import EntityDraft
from polymnia.search.spelling import (
    edits,
    is_form,
    only_slips,
    slip_weight,
    variants,
    within_two_edits,
)
from tests.behaviour.graphs import create

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = st.text(LETTERS, min_size=2, max_size=8)
MIN_MEASURED_LETTERS = 6


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("cookng", "cooking"),
        ("amdrew", "andrew"),
        ("dborah", "deborah"),
        ("teh", "the"),
        ("puppyy", "puppy"),
    ],
)
def test_one_mistake_is_undone_by_one_edit(typed: str, meant: str) -> None:
    assert meant in edits(typed)


@given(WORDS, WORDS)
def test_edits_are_symmetric(one: str, other: str) -> None:
    assert (other in edits(one)) == (one in edits(other))


@given(WORDS)
def test_a_word_is_not_an_edit_of_itself(word: str) -> None:
    found = edits(word)
    assert word not in found
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("favourite", "favorite"),
        ("colours", "colors"),
        ("organise", "organize"),
        ("organisation", "organization"),
        ("analysed", "analyzed"),
        ("theatre", "theater"),
        ("catalogue", "catalog"),
        ("licence", "license"),
        ("travelling", "traveling"),
    ],
)
def test_british_and_american_spelling_are_variants_of_each_other(
    british: str, american: str
) -> None:
    assert american in variants(british)
    assert british in variants(american)


@pytest.mark.parametrize("word", ["filed", "four", "size", "water", "dog", "mourning"])
def test_variants_of_words_with_one_spelling_are_not_words(word: str) -> None:
    assert not set(variants(word)) & english_words().keys()


def test_regular_forms_of_known_words_are_known() -> None:
    is_known = {"paint", "carry", "bake", "ma"}.__contains__
    assert all(
        is_form(word, is_known)
        for word in ("paint", "paints", "painted", "carries", "baking", "baked", "painter")
    )
    assert not any(is_form(word, is_known) for word in ("pain", "paintd", "painte", "maed"))


def test_the_quick_look_up_knows_the_words_of_the_table() -> None:
    words = english_words()
    pieces = [*list(words)[::500], *read_vocabulary()[::500], "\n", "the\nof", ""]
    assert [is_english(piece) for piece in pieces] == [piece in words for piece in pieces]


def test_common_words_come_with_the_package_the_most_common_first() -> None:
    words = english_words()
    assert {"wife", "regard", "deploy"} <= words.keys()
    assert words["with"] < words["museum"]
    assert not [word for word in words if word.startswith("##")]


@pytest.mark.parametrize(
    ("short", "full"), [("gf", "girlfriend"), ("bday", "birthday"), ("k8s", "kubernetes")]
)
def test_short_forms_and_their_words_are_variants_of_each_other(short: str, full: str) -> None:
    assert full in variants(short)
    assert short in variants(full)


def test_omitted_swapped_and_doubled_letters_are_likelier_than_wrong_ones() -> None:
    slips = [
        slip_weight("hort", "short"),
        slip_weight("sohrt", "short"),
        slip_weight("shhort", "short"),
    ]
    assert min(slips) > slip_weight("hort", "hurt") == slip_weight("shorxt", "short")


@given(WORDS)
def test_one_edit_is_within_two(word: str) -> None:
    assert all(
        within_two_edits(word, edit) and within_two_edits(edit, word) for edit in edits(word)
    )


@pytest.mark.parametrize(
    ("one", "other"), [("house", "mouths"), ("abcd", "dcba"), ("long", "longest")]
)
def test_more_edits_are_not_within_two(one: str, other: str) -> None:
    assert not within_two_edits(one, other)


def test_wrong_letters_are_no_slips() -> None:
    assert only_slips("tommorow", "tomorrow")
    assert only_slips("accomodaton", "accommodation")
    assert not only_slips("housework", "homework")
    assert not only_slips("cocitation", "citation")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("cookng", "cooking"),
        ("amdrew", "andrew"),
        ("dborah", "deborah"),
        ("recieved", "received"),
        ("accomodaton", "accommodation"),
        ("kuberentes", "kubernetes"),
        ("kubrenets", "kubernetes"),
        ("grafna", "grafana"),
        ("snd", "send"),
        ("wife", None),
        ("kubern", None),
        ("housework", None),
    ],
)
def test_words_are_corrected_as_the_store_writes_them(
    memory: Memory, typed: str, meant: str | None
) -> None:
    told = (
        "cooking pasta",
        "found accommodation",
        "moved grafana to kubernetes",
        "did her homework",
        "wise",
        "send it",
    )
    create(memory, EntityDraft("Andrew", "person", told), EntityDraft("Deborah", "person"))
    with memory.reading() as read:
        assert repair_spelling(read, typed)[1].get(typed) == meant


@pytest.mark.parametrize(
    ("question", "corrections"),
    [
        ("Is Sam vegan?", {}),
        ("Did they fly to vegan?", {"vegan": "vegas"}),
        ("vegan", {"vegan": "vegas"}),
        ("Is Sam a vgeas fan?", {"vgeas": "vegas"}),
        ("What did Denix cook?", {"denix": "deniz"}),
    ],
)
def test_a_wrong_letter_in_a_short_word_is_corrected_to_what_fits_the_question(
    memory: Memory, question: str, corrections: dict[str, str]
) -> None:
    create(
        memory,
        EntityDraft("Sam", "person", ("Sam cooks at home", "They fly to Vegas")),
        EntityDraft("Deniz", "person"),
    )
    with memory.reading() as read:
        assert repair_spelling(read, question)[1] == corrections


@pytest.mark.parametrize("typed", ["alergy", "quand", "cocitation", "dislocation"])
def test_a_rare_word_is_not_corrected_to_another_word(memory: Memory, typed: str) -> None:
    create(
        memory,
        EntityDraft("A", "text", ("citation of works", "it was disclosed", "allergic to peanuts")),
    )
    with memory.reading() as read:
        assert repair_spelling(read, typed)[1] == {}


def test_a_long_word_is_corrected_to_a_word_that_the_store_lacks(memory: Memory) -> None:
    create(memory, EntityDraft("A", "text", ("the pressure fell",)))
    with memory.reading() as read:
        assert repair_spelling(read, "devreased pressure")[1] == {"devreased": "decreased"}


def test_nine_of_ten_mistakes_in_words_of_the_store_are_repaired(memory: Memory) -> None:
    chance = random.Random(5)
    words = [word for word in english_words() if len(word) >= MIN_MEASURED_LETTERS]
    stored = chance.sample(words, 600)
    texts = tuple([" ".join(stored[start : start + 6]) for start in range(0, len(stored), 6)])
    create(memory, EntityDraft("A", "text", texts))
    with memory.reading() as read:
        found = measure(read, chance.sample(stored, 100), chance)
    assert found.repaired >= 0.9 * found.typed
