"""Questions taken apart: content, names, what is left without them."""

from polymnia.search.question import named, parse, possible_names, unnamed, without


def test_stop_words_carry_nothing() -> None:
    assert parse("What is the name of her dog?").content == ("name", "dog")


def test_a_question_of_stop_words_alone_means_them() -> None:
    assert parse("to be or not to be").content == ("to", "be", "or", "not")


def test_joined_words_are_asked_for_in_parts_too() -> None:
    assert set(parse("where is getUserName").content) == {"getusernam", "get", "user", "name"}


def test_a_whole_name_counts_more_than_a_part() -> None:
    found = named(
        parse("What is Caroline Smith's dog called?"), ["Caroline Smith", "Caroline", "Dog House", "Smithers"]
    )
    assert found == {"Caroline Smith": 1.0, "Caroline": 1.0, "Dog House": 0.2}


def test_a_name_that_is_a_stop_word_counts_when_it_is_written_like_a_name() -> None:
    assert "will" in possible_names(parse("Where does Will live?"))
    assert "will" not in possible_names(parse("Where will she live?"))


def test_names_are_taken_out_of_the_words() -> None:
    question = parse("When did Caroline adopt the dog?")
    assert without(question, ["Caroline"]) == ("adopt", "dog")
    assert without(parse("Caroline"), ["Caroline"]) == ("carolin",)


def test_names_are_taken_out_of_the_text() -> None:
    assert unnamed("When did Caroline's dog meet caroline?", ["Caroline"]) == "When did dog meet ?"
    assert unnamed("Caroline", ["Caroline"]) == "Caroline"
    assert unnamed("Ann and Anna", ["Ann"]) == "and Anna"
