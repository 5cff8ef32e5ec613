"""Correct unknown words of a question to words or names of the store, or common English ones.

The index has stems, so the words of a store as they were written come from two places: every word
one edit away from a typed one is stemmed and looked up, and a few passages with each stem that is
found confirm how they spell it.
"""

from collections.abc import Collection
from math import log

from polymnia.embedders.wordpiece import english_words, is_english
from polymnia.search.question import content_words, replace_words
from polymnia.search.spelling import edits, is_form, only_slips, slip_weight, within_two_edits
from polymnia.search.terms import terms_of, words_of
from polymnia.stores.contract import Reader

# Shorter words have too many similar ones: they are corrected only to names, or if a letter was
# left out.
MIN_WORD_LETTERS, MIN_NAME_LETTERS = 4, 3
# A shorter word with a wrong letter may well be one that the store lacks: it is corrected only to a
# name, or to a word that a passage has together with another word of the question. At most
# MAX_OTHER_TERMS of these words are tried, the rarest first.
MIN_DISTINCT_LETTERS, MAX_OTHER_TERMS = 6, 12
# Words of this many letters may have two mistakes, and are also corrected to English words that the
# store lacks.
MIN_LONG_LETTERS = 8
# How many names are considered as corrections.
MAX_NAMES = 100
# How many stems are confirmed, the most likely first, and by how many passages each.
MAX_CONFIRMED_STEMS, CONFIRMING_PASSAGES = 12, 8
# Words that may be two edits away are looked up by their first letters.
PREFIX_LETTERS, MAX_PREFIXED_TERMS = 3, 2_000
# What counts for a correction, as logarithms: a name, a word that the store has like this, an
# English one, and the same first letter.
_NAME, _CONFIRMED, _ENGLISH, _SAME_START = 3.0, 2.0, 1.5, 0.5
# How often an English word that the store does not have counts as having been seen.
UNKNOWN_COUNT = 0.1
# Each correction looks up some fifty words per letter. A longer word, or a text of unknown words,
# is no typo.
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
    wrong = [word for word in unknown if not is_form(word, is_english)]
    corrections = {word: _correct(read, word) for word in wrong[:MAX_CORRECTED_WORDS]}
    others = sorted(known, key=lambda term: known[term])[:MAX_OTHER_TERMS]
    corrections = {
        word: meant
        for word, meant in corrections.items()
        if meant and _fits(read, word, meant, others)
    }
    return (replace_words(text, corrections) if corrections else text), corrections


def terms_starting(read: Reader, start: str, limit: int) -> list[str]:
    """Return up to `limit` terms of the store that start with these characters."""
    return read.vocabulary(start, start + _LAST_CHARACTER, limit)


def _can_be_wrong(word: str) -> bool:
    return MIN_NAME_LETTERS <= len(word) <= MAX_WORD_LETTERS and word.isascii() and word.isalpha()


def _term(word: str) -> str:
    return terms_of(word)[0]


def _correct(read: Reader, word: str) -> str:
    """Return the likeliest correction, one edit away or, for a long word, two; or nothing."""
    english = english_words()
    possible = {edit: _term(edit) for edit in edits(word)}
    having = read.word_counts(set(possible.values())).having
    names = _name_terms(read, having)
    is_long = len(word) >= MIN_LONG_LETTERS
    possible = {
        each: term
        for each, term in possible.items()
        if term in having or (is_long and each in english)
    }
    if len(word) < MIN_WORD_LETTERS:
        possible = {
            candidate: term
            for candidate, term in possible.items()
            if term in names or len(candidate) > len(word)
        }
    if terms_starting(read, word, 1):
        # The beginning of a word of the store is no mistake, unless only the last letter is
        # missing, or it is a name.
        longer = len(word) >= MIN_WORD_LETTERS
        possible = {
            candidate: term
            for candidate, term in possible.items()
            if term in names or (longer and candidate.startswith(word))
        }
    found = _most_likely(read, word, possible, having, names)
    return found or (_two_edits_away(read, word) if is_long else "")


def _fits(read: Reader, word: str, meant: str, others: Collection[str]) -> bool:
    """Return True for a slip, a long word, or a correction that fits another term."""
    if len(word) >= MIN_DISTINCT_LETTERS or slip_weight(word, meant) > 1 or not others:
        return True
    term = _term(meant)
    return term in _name_terms(read, [term]) or any(
        read.candidates([term, other], 1, every=True) for other in others
    )


def _most_likely(
    read: Reader,
    word: str,
    possible: dict[str, str],
    having: dict[str, int],
    names: Collection[str],
) -> str:
    """Return the likeliest correction by the mistake made, how common it is, and how it is written.

    Words that neither the store nor English has like this are no corrections.
    """
    english = english_words()

    def likelihood(each: str) -> float:
        term = possible[each]
        total = log(slip_weight(word, each)) + 0.5 * log(having.get(term, UNKNOWN_COUNT))
        total += _NAME * (term in names) + _SAME_START * (each[0] == word[0])
        return total + _ENGLISH * (each in english)

    ranked = sorted(possible, key=lambda item: (-likelihood(item), item))
    stems = list(dict.fromkeys(possible[hit] for hit in ranked if possible[hit] in having))
    written = {
        found
        for stem in stems[:MAX_CONFIRMED_STEMS]
        for candidate in read.candidates([stem], CONFIRMING_PASSAGES)
        for found in words_of(f"{candidate.entity} {candidate.words}")
    }
    ranked = [hit for hit in ranked if hit in written or is_form(hit, english.__contains__)]
    return max(ranked, key=lambda hit: likelihood(hit) + _CONFIRMED * (hit in written), default="")


def _two_edits_away(read: Reader, word: str) -> str:
    """Return the most common word of the store that two slips turn into the word; empty if none."""
    near = [item for item in english_words() if item[0] == word[0] and _may_be_meant(word, item)]
    stems, own = terms_starting(read, word[:PREFIX_LETTERS], MAX_PREFIXED_TERMS), _term(word)
    terms = {*map(_term, near), *[stem for stem in stems if _may_be_meant(own, stem)]}
    having = read.word_counts(terms).having if terms else {}
    if not having:
        return ""
    best = max(having, key=lambda term: (having[term], term))
    passages = read.candidates([best], CONFIRMING_PASSAGES)
    written = {
        found
        for passage in passages
        for found in words_of(f"{passage.entity} {passage.words}")
        if _term(found) == best
    }
    near = [item for item in written if within_two_edits(word, item)]
    return min(near, key=lambda item: (abs(len(item) - len(word)), item), default="")


def _may_be_meant(typed: str, word: str) -> bool:
    # Most words are dismissed by their length alone.
    return (
        abs(len(word) - len(typed)) <= 2
        and only_slips(typed, word)
        and within_two_edits(typed, word)
    )


def _name_terms(read: Reader, terms: Collection[str]) -> set[str]:
    return (
        {term for name in read.names_with(terms, MAX_NAMES) for term in terms_of(name)}
        if terms
        else set()
    )
