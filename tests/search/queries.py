"""Questions prepared for a store of known word counts, and passages scored for them."""

from polymnia.model import Passage, Signals, WordCounts
from polymnia.search.question import parse_question
from polymnia.search.scoring import Matcher, Query, ScoredPassage
from polymnia.search.terms import terms_of

COUNTS = WordCounts(passages=100, words=1000, having={"deploi": 3, "step": 5, "tuesdai": 1})


def ask(text: str, *, named: str = "", counts: WordCounts = COUNTS) -> Query:
    question = parse_question(text)
    matcher = Matcher(dict.fromkeys(question.content, 1.0), counts, question.content)
    names = {named: 1.0} if named else {}
    terms = question.content
    return Query(
        question=question,
        names=names,
        terms=terms,
        search_terms=terms,
        matcher=matcher,
        folded=text,
    )


def scored(query: Query, text: str, signals: Signals) -> ScoredPassage:
    return ScoredPassage(Passage("Ada", "person", 1, text), terms_of(text), signals, 1.0, query)
