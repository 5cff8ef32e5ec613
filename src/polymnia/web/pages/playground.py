"""Playground: how a question is answered, signal by signal, why something is missing, and questions to ask again."""

from time import time_ns
from typing import Any

from msgspec import Struct
from msgspec.json import encode

from polymnia.dialects.times import parse_moment
from polymnia.engine import entities
from polymnia.engine.explanation import Absence, Explanation, explain, explain_absence
from polymnia.engine.memory import Memory
from polymnia.engine.recall import recall
from polymnia.errors import BadInput
from polymnia.model import Passage, Within
from polymnia.search.question import content_words
from polymnia.search.scoring import WeightedSignal
from polymnia.search.terms import terms_of
from polymnia.web.page import Page
from polymnia.web.response import Response
from polymnia.web.routes import Route
from polymnia.web.state import MAX_QUESTIONS, SavedQuestion

# Hits that are explained, and places that a saved question searches for the entity it should find.
MAX_HITS = 10
MAX_PLACE = 50
GOOD_PLACE = 5
WORDS_ONLY = "words"
_MAX_TYPES = 100
_SINCE = (("", "any time"), ("7d", "7 days"), ("30d", "30 days"), ("365d", "a year"))
# A signal that adds less to the score is not shown.
_MIN_SHOWN_POINTS = 0.005


class Options(Struct, frozen=True):
    """What to ask, with which filters, and with which embedder."""

    question: str
    type: str = ""
    since: str = ""
    embedder: str = ""

    @property
    def within(self) -> Within | None:
        """The filters as the engine takes them. Raise BadInput."""
        if not (self.type or self.since):
            return None
        since = parse_moment(self.since, "since") if self.since else None
        return Within(types=(self.type,) if self.type else None, since=since)

    def memory(self, page: Page) -> Memory:
        """Return the memory, without search by meaning if only words are wanted."""
        return Memory(page.memory.store) if self.embedder == WORDS_ONLY else page.memory


class Bar(Struct, frozen=True):
    """A signal of a hit: its value, its weight, what it adds to the score, and that as a share of the largest."""

    name: str
    value: float
    weight: float
    share: float

    @property
    def points(self) -> float:
        return self.value * self.weight


def show(page: Page) -> Response:
    """Show how the question in the box is answered."""
    options = _options(page)
    memory = page.memory
    found = (
        explain(options.memory(page), options.question, limit=MAX_HITS, within=options.within)
        if options.question
        else None
    )
    return page.render(
        "playground/page.html",
        options=options,
        types=entities.types(memory)[:_MAX_TYPES],
        since=_SINCE,
        embedder=memory.meaning.url if memory.meaning else "",
        words_only=WORDS_ONLY,
        found=found,
        terms=frozenset(terms_of(" ".join(content_words(options.question)))),
        call=_recall_call(options),
        **(_tables(found) if found else {}),
        **_saved_questions(page),
    )


def why(page: Page) -> Response:
    """Say why something is not among the hits."""
    options, wanted = _options(page), page.query.get("wanted").strip()
    found = None
    if wanted and options.question:
        found = explain_absence(
            options.memory(page), options.question, wanted, limit=MAX_HITS, within=options.within
        )
    return page.render(
        "playground/why_page.html",
        fragment="playground/why.html",
        options=options,
        wanted=wanted,
        absence=found,
        hits=MAX_HITS,
        compared=_compare(found)
        if found and found.last and found.outcome in ("ranked", "not found")
        else [],
    )


def save(page: Page) -> Response:
    """Save the question with the entity that it should find."""
    options, expected = _options(page), page.form.get("expected")
    if not options.question or not expected:
        raise BadInput("a saved question needs words and something that it should find")
    place = _place_of(page.memory, options, expected)
    saved = SavedQuestion(
        options.question, expected, options.type, options.since, place, place, time_ns() // 1000
    )
    with page.site.state.edit(page.workspace) as state:
        if len(state.questions) >= MAX_QUESTIONS:
            raise BadInput(f"at most {MAX_QUESTIONS} questions can be saved; delete one first")
        state.questions[:] = [
            each for each in state.questions if each.question != options.question
        ] + [saved]
    here = page.url("/playground", q=options.question, type=options.type, since=options.since)
    return page.done(
        "Question saved", here, fragment="playground/saved.html", **_saved_questions(page)
    )


def delete(page: Page) -> Response:
    """Delete a saved question."""
    with page.site.state.edit(page.workspace) as state:
        state.questions[:] = [
            each for each in state.questions if each.question != page.form["question"]
        ]
    return page.done(
        "Question deleted",
        page.url("/playground"),
        fragment="playground/saved.html",
        **_saved_questions(page),
    )


def run_all(page: Page) -> Response:
    """Ask all saved questions again."""
    memory = page.memory
    asked = page.site.state.read(page.workspace).questions
    places = {
        each.question: _place_of(
            memory, Options(each.question, each.type, each.since), each.expected
        )
        for each in asked
    }
    with page.site.state.edit(page.workspace) as state:
        for each in state.questions:
            if each.question in places:
                each.before, each.place, each.at = (
                    each.place,
                    places[each.question],
                    time_ns() // 1000,
                )
    asked_again = f"{len(places)} question{'' if len(places) == 1 else 's'} asked"
    return page.done(
        asked_again,
        page.url("/playground"),
        fragment="playground/saved.html",
        **_saved_questions(page),
    )


def index(page: Page) -> Response:
    """Embed in the background what has no vector yet."""
    page.memory.request_indexing()
    return page.done(
        "Embedding continues in the background; reload the page to see its progress", page.back
    )


def _options(page: Page) -> Options:
    fields = page.query if page.query.get("q") else page.form
    return Options(
        fields.get("q").strip(), fields.get("type"), fields.get("since"), fields.get("embedder")
    )


def _recall_call(options: Options) -> str:
    """Return the arguments with which an agent asks the same question."""
    given = {
        "query": options.question,
        "types": [options.type] if options.type else None,
        "since": options.since,
    }
    return encode({name: value for name, value in given.items() if value}).decode()


def _tables(found: Explanation) -> dict[str, Any]:
    """Return the signals as columns, the rows of bars, and the three rankings."""
    rows = [each.signals for each in found.hits]
    columns = [name for name, _, _ in rows[0]] if rows else []
    used = [name for name in columns if any(_points(row, name) for row in rows)]
    largest = max([abs(_points(row, name)) for row in rows for name in used], default=1.0)
    both = [each.hit.passage for each in found.hits]
    return {
        "columns": [(name, _weights(rows, name)) for name in used],
        "unused": [name for name in columns if name not in used],
        "bars": [_bars(row, used, largest) for row in rows],
        "rankings": [
            ("Words", found.words.milliseconds, _moves(found.words.passages, both), False),
            ("Meaning", found.meaning.milliseconds, _moves(found.meaning.passages, both), False),
            ("Both", found.milliseconds, _moves(both, both), True),
        ],
    }


def _points(row: list[WeightedSignal], name: str) -> float:
    points = next(value * weight for each, value, weight in row if each == name)
    return points if abs(points) >= _MIN_SHOWN_POINTS else 0.0


def _weights(rows: list[list[WeightedSignal]], name: str) -> tuple[float, float]:
    """Return the lowest and the highest weight of a signal where it counts."""
    weights = [
        weight for row in rows for each, _, weight in row if each == name and _points(row, name)
    ]
    return min(weights), max(weights)


def _bars(row: list[WeightedSignal], used: list[str], largest: float) -> list[Bar]:
    by_name = {name: (value, weight) for name, value, weight in row}
    return [Bar(name, *by_name[name], abs(_points(row, name)) / (largest or 1.0)) for name in used]


def _moves(passages: list[Passage], both: list[Passage]) -> list[tuple[Passage, int | None]]:
    """Return the passages, and how many places higher each is than in the ranking by both; None if it is not there."""
    place = {each.key: number for number, each in enumerate(both)}
    return [
        (each, place[each.key] - number if each.key in place else None)
        for number, each in enumerate(passages)
    ]


def _compare(found: Absence) -> list[tuple[str, float, float]]:
    """Return the signals that differ: what each adds to the missing passage, and to the last hit that is shown."""
    last = (
        {name: value * weight for name, value, weight in found.last.signals} if found.last else {}
    )
    points = [(name, value * weight, last.get(name, 0.0)) for name, value, weight in found.signals]
    return [each for each in points if abs(each[1] - each[2]) >= _MIN_SHOWN_POINTS]


def _place_of(memory: Memory, options: Options, expected: str) -> int:
    """Return the place of the first hit of an entity; 0 if it is not among the first."""
    found = recall(memory, options.question, limit=MAX_PLACE, within=options.within).hits
    return next((place for place, hit in enumerate(found, 1) if hit.passage.entity == expected), 0)


def _saved_questions(page: Page) -> dict[str, Any]:
    questions = page.site.state.read(page.workspace).questions
    return {
        "questions": questions,
        "good": sum(0 < each.place <= GOOD_PLACE for each in questions),
        "good_place": GOOD_PLACE,
        "max_place": MAX_PLACE,
        "last_run": max((each.at for each in questions), default=0),
        "is_on_disk": page.site.state.path is not None,
    }


ROUTES = (
    Route("GET", "/playground", show),
    Route("GET", "/playground/why", why),
    Route("POST", "/playground/save", save),
    Route("POST", "/playground/delete", delete),
    Route("POST", "/playground/run", run_all),
    Route("POST", "/playground/index", index),
)
