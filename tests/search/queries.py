"""Questions prepared for a store of known word counts, and passages scored for them."""

from msgspec.structs import replace

from polymnia.embedders.wordpiece import english_rarity
from polymnia.model import Passage, Signals, WordCounts
from polymnia.search.question import parse_question
from polymnia.search.scoring import Matcher, Query, ScoredPassage
from polymnia.search.terms import terms_of, words_of

COUNTS = WordCounts(passages=100, words=1000, having={"deploi": 3, "step": 5, "tuesdai": 1})


def ask(text: str, *, named: str = "", counts: WordCounts = COUNTS) -> Query:
    question = parse_question(text)
    matcher = Matcher(dict.fromkeys(question.content, 1.0), counts, question.content)
    names = {named: 1.0} if named else {}
    terms = question.content
    query = Query(question, names, {}, frozenset(), terms, {}, frozenset(), terms, matcher, text)
    rarities = {term: english_rarity(word) for word in words_of(text) for term in terms_of(word)}
    return replace(query, rarities=rarities)


def scored(query: Query, text: str, signals: Signals) -> ScoredPassage:
    return ScoredPassage(Passage("Ada", "person", 1, text), terms_of(text), signals, 1.0, query)
