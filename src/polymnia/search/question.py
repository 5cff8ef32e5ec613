"""Parse a question: its words, the date in it, and the entities it names."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, lru_cache

from msgspec import Struct

from polymnia.search.dates import Period, asks_when, find_period, relative_period
from polymnia.search.languages import stop_words_of
from polymnia.search.terms import parts_of, plain, terms_of, words_of

# How much a part of a name counts, compared with the whole name.
NAME_PART_SHARE = 0.4
# A part that more names have than this is what they are called by, not a name: `session 12`.
MAX_PART_NAMES = 20
_WORD = re.compile(r"[^\W_]+")
# Words that ask a memory for anything: they do not make a phrasing of a question new.
_REQUEST_WORDS = """
tell know remember recall remind describe explain mention everything anything something
information details please
use used using have has get got go went come run make made do know name called kind type many much
long often big large like want need thing people person someone somebody mean happen say said told
list show belong
"""
# The verb: what is left of `may` in lower case once the date is removed.
_MAY = re.compile(r"(?<!\S)may(?!\S)")


# Who says a line of a transcript: up to three capitalised words and a colon.
_SPEAKER = re.compile(r"((?:[^\W\d_a-z][\w'\u2019.-]*)(?: [^\W\d_a-z][\w'\u2019.-]*){0,2}): ")


class Question(Struct, frozen=True):
    """A parsed question.

    `spoken` has the terms of all words in order, `content` those without stop words and without the
    date, whose terms `date_terms` has.
    """

    text: str
    spoken: tuple[str, ...]
    content: tuple[str, ...]
    capitalised: frozenset[str]
    period: Period | None
    date_terms: tuple[str, ...]
    asks_when: bool

    @property
    def name_terms(self) -> list[str]:
        """The terms that may belong to a name: the content, and capitalised words."""
        names = [term for term in self.spoken if term in self.capitalised]
        return list(dict.fromkeys((*self.content, *names)))


def parse_question(text: str, *, now: int = 0) -> Question:
    """Parse a text as a question that is asked at a time in microseconds.

    If it has only stop words, they are its content. Words such as `yesterday` are both a date and
    content.
    """
    period, rest = find_period(text)
    date_terms: tuple[str, ...] = ()
    if period:
        all_terms = Counter(_terms(content_words(text)))
        date_terms = tuple(all_terms - Counter(terms_of(rest)))
    elif now:
        period = relative_period(text, now)
    content = content_words(_MAY.sub(" ", rest)) or words_of(rest) or words_of(text)
    parts = words_of(parts_of(rest))
    # The first word of a sentence has a capital letter even if it is not a name.
    capitalised = [plain(word) for word in _WORD.findall(text)[1:] if word[:1].isupper()]
    return Question(
        text,
        spoken=tuple(_terms(words_of(text))),
        content=tuple(dict.fromkeys(_terms(content + parts))),
        capitalised=frozenset(_terms(capitalised)),
        period=period,
        date_terms=date_terms,
        asks_when=asks_when(text),
    )


def content_words(text: str) -> list[str]:
    """Return the words of a text that are not stop words, of English or of its own language."""
    stop_words = stop_words_of(text)
    return [word for word in words_of(text) if word not in stop_words]


@cache
def request_terms() -> frozenset[str]:
    """Return the terms of words that only ask, such as `tell` and `everything`."""
    return frozenset(terms_of(_REQUEST_WORDS))


def match_names(question: Question, names: Collection[str]) -> dict[str, float]:
    """Return the names that the question contains: 1 for a whole name, less for a part of one."""
    shares: dict[str, float] = {}
    terms_by_name = {name: _name_terms(name) for name in names}
    having: Counter[str] = Counter()
    for terms in terms_by_name.values():
        having.update(set(terms))
    parts = {term for term in question.name_terms if having[term] <= MAX_PART_NAMES}
    for name, terms in terms_by_name.items():
        if _contains(question.spoken, terms):
            shares[name] = 1.0
        elif len(terms) > 1 and not parts.isdisjoint(terms):
            shares[name] = NAME_PART_SHARE * len(parts.intersection(terms)) / len(set(terms))
    return shares


def speaker_of(text: str) -> str:
    """Return who says a text such as `Caroline: I adopted a puppy`; nothing if it does not tell."""
    found = _SPEAKER.match(text)
    return found[1] if found else ""


def content_without(question: Question, names: Collection[str]) -> tuple[str, ...]:
    """Return the content terms without those of the names, or all of them if nothing is left."""
    named: set[str] = set()
    for name in names:
        named.update(_terms(words_of(name)))
    rest = tuple(term for term in question.content if term not in named)
    return rest or question.content


def text_without(text: str, names: Collection[str]) -> str:
    """Return the text without the names, possessive or not, or all of it if nothing is left."""
    for name in sorted(names, key=len, reverse=True):
        possessive = rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)"
        shorter = re.sub(possessive, " ", text, flags=re.IGNORECASE)
        if words_of(shorter):
            text = shorter
    return " ".join(text.split())


def words_with(text: str, terms: Collection[str]) -> list[str]:
    """Return the words of a text, as they are written, whose terms are all among these."""
    words = []
    for word in _WORD.findall(text):
        own_terms = terms_of(word)
        if own_terms and all(term in terms for term in own_terms):
            words.append(word)
    return words


def replace_words(text: str, replacements: dict[str, str]) -> str:
    """Return the text with some of its words replaced, regardless of case and accents."""
    return _WORD.sub(lambda word: replacements.get(plain(word[0]), word[0]), text)


def _terms(words: Sequence[str]) -> list[str]:
    return terms_of(" ".join(words))


@lru_cache(maxsize=4096)
def _name_terms(name: str) -> tuple[str, ...]:
    """Return the terms of a name. The names of a memory come again in many questions."""
    return tuple(_terms(words_of(name))) or (plain(name),)


def _contains(spoken: Sequence[str], terms: Sequence[str]) -> bool:
    size, phrase = len(terms), tuple(terms)
    return any(tuple(spoken[start : start + size]) == phrase for start in range(len(spoken)))
