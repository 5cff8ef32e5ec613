"""Spelling: correct unknown words of a question that are one edit away from known ones, and find other spellings."""

from collections.abc import Collection, Iterator

from polymnia.embedders.vocabulary import english_words
from polymnia.search.question import content_words, replace_words
from polymnia.search.terms import terms_of
from polymnia.stores.contract import Reader

# Shorter words have too many similar ones: they are corrected only to names.
MIN_WORD_LETTERS, MIN_NAME_LETTERS = 4, 3
# How many names are considered as corrections.
MAX_NAMES = 100
# How many letters come before an ending with two spellings.
MIN_HEAD_LETTERS = 3

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# British and American spelling, and the endings that may follow.
_SPELLINGS = (
    ("our", "or", ("", "s", "ed", "ing", "ite", "ites", "able", "ful", "less")),
    ("is", "iz", ("e", "es", "ed", "er", "ers", "ing", "ation", "ations")),
    ("ys", "yz", ("e", "es", "ed", "er", "ers", "ing")),
    ("tre", "ter", ("", "s")),
    ("ogue", "og", ("", "s")),
    ("ence", "ense", ("", "s")),
    ("ll", "l", ("ed", "er", "ers", "ing", "ings")),
)
# Regular endings, and what the base form has instead.
_ENDINGS = (
    ("s", ""),
    ("es", ""),
    ("ies", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("er", ""),
    ("er", "e"),
    ("ly", ""),
)
# Each correction looks up some fifty words per letter. A longer word, or a text of unknown words, is no typo.
MAX_WORD_LETTERS = 24
MAX_CORRECTED_WORDS = 8
_LAST_CHARACTER = "\U0010ffff"


def repair_spelling(read: Reader, text: str) -> tuple[str, dict[str, str]]:
    """Return the text without typos, and each corrected word with its correction.

    Words that the store contains and English words are not corrected.
    """
    terms = {word: _term(word) for word in content_words(text) if _can_be_wrong(word)}
    known = read.word_counts(set(terms.values())).having if terms else {}
    unknown = [word for word, term in terms.items() if term not in known]
    english = english_words() if unknown else {}
    wrong = [word for word in unknown if not is_form(word, english)]
    corrections = {word: _correct(read, word) for word in wrong[:MAX_CORRECTED_WORDS]}
    corrections = {word: meant for word, meant in corrections.items() if meant}
    return (replace_words(text, corrections) if corrections else text), corrections


def terms_starting(read: Reader, start: str, limit: int) -> list[str]:
    """Return up to `limit` terms of the store that start with these characters."""
    return read.vocabulary(start, start + _LAST_CHARACTER, limit)


def variants(word: str) -> list[str]:
    """Return the other spellings a word may have: `favourite` for `favorite`, `organise` for `organize`."""
    return list(dict.fromkeys(_variants(word)))


def is_form(word: str, known: Collection[str]) -> bool:
    """Return True if the word or its base form is known."""
    if word in known:
        return True
    return any(word.endswith(ending) and word.removesuffix(ending) + rest in known for ending, rest in _ENDINGS)


def edits(word: str) -> list[str]:
    """Return every text that is one edit away: a letter removed, swapped with the next, replaced or added."""
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    missing = [head + tail[1:] for head, tail in splits if tail]
    swapped = [head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1]
    wrong = [head + letter + tail[1:] for head, tail in splits if tail for letter in _LETTERS]
    added = [head + letter + tail for head, tail in splits for letter in _LETTERS]
    return list(dict.fromkeys(each for each in [*missing, *swapped, *wrong, *added] if each != word))


def _can_be_wrong(word: str) -> bool:
    return MIN_NAME_LETTERS <= len(word) <= MAX_WORD_LETTERS and word.isascii() and word.isalpha()


def _term(word: str) -> str:
    return terms_of(word)[0]


def _correct(read: Reader, word: str) -> str:
    """Return the correction: a word of an entity's name, else of the store, else a common English word; or nothing."""
    possible = {each: _term(each) for each in edits(word)}
    having = read.word_counts(set(possible.values())).having
    names, english = _name_terms(read, having), english_words()

    def likelihood(each: str) -> tuple[bool, bool, bool, bool, bool, int, str]:
        term, swapped = possible[each], sorted(each) == sorted(word)
        forms = each in english, is_form(each, english)
        return term in names, *forms, swapped, each[0] == word[0], having[term], each

    found = [each for each, term in possible.items() if term in names]
    if len(word) >= MIN_WORD_LETTERS and not found:
        # The beginning of a word of the store is no mistake, unless only the last letter is missing.
        starts = bool(terms_starting(read, _term(word), 1))
        possible = {each: term for each, term in possible.items() if not starts or each.startswith(word)}
        found = [each for each, term in possible.items() if term in having]
        if not found:
            return min([each for each in possible if each in english], key=english.__getitem__, default="")
    return max(found, key=likelihood, default="")


def _name_terms(read: Reader, terms: Collection[str]) -> set[str]:
    return {term for name in read.names_with(terms, MAX_NAMES) for term in terms_of(name)} if terms else set()


def _variants(word: str) -> Iterator[str]:
    for british, american, endings in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            for ending in endings:
                head = word.removesuffix(one + ending)
                if MIN_HEAD_LETTERS <= len(head) < len(word):
                    yield head + other + ending
