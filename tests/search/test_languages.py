"""The language of a question, its stop words and stems."""

import pytest

from polymnia.search.languages import beginnings, language_of, stem_in
from polymnia.search.question import content_words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wo wohnt Anna?", "german"),
        ("Wann löschen wir ein Protokoll?", "german"),
        ("¿Dónde viven los abuelos?", "spanish"),
        ("Quand supprime-t-on un journal ?", "french"),
        ("Dove abita il nonno?", "italian"),
        ("Onde mora o meu avô?", "portuguese"),
        ("Waar woont mijn oma?", "dutch"),
        ("Где живет бабушка?", "russian"),
        ("أين أجد مفاتيح المكتب؟", "arabic"),
        ("Where does Ada live?", ""),
        ("Who was in Las Vegas?", ""),
        ("Did they die in the war?", ""),
        ("deploy steps", ""),
        ("日志什么时候删除", ""),
        ("", ""),
    ],
)
def test_the_words_of_a_question_tell_its_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_the_stop_words_of_its_own_language_say_nothing_about_a_question() -> None:
    assert content_words("Wann werden die Protokolle gelöscht?") == ["protokolle", "geloscht"]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("german", "katze", "katzen"),
        ("spanish", "registro", "registros"),
        ("french", "journal", "journaux"),
        ("arabic", "السجلات", "سجل"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(language: str, one: str, other: str) -> None:
    assert stem_in(language, one) == stem_in(language, other)


def test_an_arabic_word_may_follow_an_article() -> None:
    assert "السجل" in beginnings("arabic", "سجل")
