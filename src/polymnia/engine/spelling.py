"""Repair the spelling of a question: replace words that nobody wrote by those of the store they are close to."""

from polymnia.embedders.vocabulary import english_words
from polymnia.search.question import content_words, replace_words
from polymnia.search.spelling import MIN_TWO_TYPOS_LETTERS, MIN_TYPO_LETTERS, distance, edits, is_form
from polymnia.search.terms import terms_of
from polymnia.stores.contract import Reader

# How many terms with the same two letters at the start are compared with a word that may be wrong twice.
MAX_COMPARED_TERMS = 2_000
_LAST_CHARACTER = "\U0010ffff"


def repair_spelling(read: Reader, text: str) -> tuple[str, dict[str, str]]:
    """Return the text without typing mistakes, and each corrected word with its correction.

    Leave alone what the store contains, what its words start with, and what is an English word.
    """
    terms = {word: _term(word) for word in content_words(text) if _can_be_wrong(word)}
    known = read.word_counts(set(terms.values())).having if terms else {}
    corrections = {}
    for word, term in terms.items():
        if term in known or is_form(word, english_words()) or terms_starting(read, term, 1):
            continue
        meant = _one_mistake(read, word) or _two_mistakes(read, term)
        if meant:
            corrections[word] = meant
    return (replace_words(text, corrections) if corrections else text), corrections


def terms_starting(read: Reader, start: str, limit: int) -> list[str]:
    """Return up to `limit` terms of the store that start with these characters."""
    return read.vocabulary(start, start + _LAST_CHARACTER, limit)


def _can_be_wrong(word: str) -> bool:
    return len(word) >= MIN_TYPO_LETTERS and word.isascii() and word.isalpha()


def _term(word: str) -> str:
    return terms_of(word)[0]


def _one_mistake(read: Reader, word: str) -> str:
    """Return the word of the store one mistake away: with the same first letter, an English word, a common one."""
    terms = {each: _term(each) for each in edits(word) if each}
    known = read.word_counts(set(terms.values())).having
    found = [each for each, term in terms.items() if term in known]
    english = english_words()
    return max(
        found, key=lambda each: (each[0] == word[0], is_form(each, english), known[terms[each]], each), default=""
    )


def _two_mistakes(read: Reader, term: str) -> str:
    """Return the most common term of the store that starts alike and is two mistakes away from a long one."""
    if len(term) < MIN_TWO_TYPOS_LETTERS:
        return ""
    near = terms_starting(read, term[:2], MAX_COMPARED_TERMS)
    found = [each for each in near if distance(term, each, 2) <= 2]
    known = read.word_counts(found).having if found else {}
    return max(found, key=lambda each: (known.get(each, 0), each), default="")
