"""Playground: why hits rank as they do, why something is missing, and saved questions."""

from collections.abc import Iterable
from time import time_ns
from typing import Any

from msgspec import Struct
from msgspec.json import encode
from starlette.responses import Response

from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.explanation import Absence, Explanation, explain, explain_absence
from polymnia.engine.recall.passages import recall
from polymnia.errors import BadInput
from polymnia.model import Passage, Within
from polymnia.search.question import content_words
from polymnia.search.scoring import WeightedSignal
from polymnia.search.terms import count_noun, terms_of
from polymnia.search.times import parse_moment
from polymnia.web.page import Page, get, post
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
    """A signal of a hit: its value, its weight, and its points as a share of the largest."""

    name: str
    value: float
    weight: float
    share: float

    @property
    def points(self) -> float:
        return self.value * self.weight


@get("/playground")
def show(page: Page) -> Response:
    """Show how the question in the box is answered."""
    options, memory = _options(page), page.memory
    explanation = None
    tables: dict[str, Any] = {}
    if options.question:
        within = options.within
        explanation = explain(options.memory(page), options.question, limit=MAX_HITS, within=within)
        tables = _tables(explanation)
    return page.render(
        "playground/page.html",
        options=options,
        types=entities.types(memory)[:_MAX_TYPES],
        since=_SINCE,
        embedder=memory.meaning.url if memory.meaning else "",
        words_only=WORDS_ONLY,
        found=explanation,
        terms=frozenset(terms_of(" ".join(content_words(options.question)))),
        call=_recall_call(options),
        **tables,
        **_saved_questions(page),
    )


@get("/playground/why")
def why(page: Page) -> Response:
    """Say why something is not among the hits."""
    options, expected = _options(page), page.query.get("wanted").strip()
    absence = None
    compared: list[tuple[str, float, float]] = []
    if expected and options.question:
        memory, within = options.memory(page), options.within
        absence = explain_absence(memory, options.question, expected, limit=MAX_HITS, within=within)
        if absence.last and absence.outcome in ("ranked", "not found"):
            compared = _compare(absence)
    return page.render(
        "playground/why_page.html",
        fragment="playground/why.html",
        options=options,
        wanted=expected,
        absence=absence,
        hits=MAX_HITS,
        compared=compared,
    )


@post("/playground/save")
def save(page: Page) -> Response:
    """Save the question with the entity that it should find."""
    options, expected = _options(page), page.form.get("expected")
    if not options.question or not expected:
        raise BadInput("a saved question needs words and something that it should find")
    place = _place_of(page.memory, options, expected)
    saved = SavedQuestion(
        question=options.question,
        expected=expected,
        type=options.type,
        since=options.since,
        place=place,
        before=place,
        at=time_ns() // 1000,
    )
    with page.site.state.edit(page.workspace) as state:
        if len(state.questions) >= MAX_QUESTIONS:
            raise BadInput(f"at most {MAX_QUESTIONS} questions can be saved; delete one first")
        _remove(state.questions, options.question)
        state.questions.append(saved)
    here = page.url("/playground", q=options.question, type=options.type, since=options.since)
    return _done(page, "Question saved", here)


@post("/playground/delete")
def delete(page: Page) -> Response:
    """Delete a saved question."""
    with page.site.state.edit(page.workspace) as state:
        _remove(state.questions, page.form["question"])
    return _done(page, "Question deleted", page.url("/playground"))


@post("/playground/run")
def run_all(page: Page) -> Response:
    """Ask all saved questions again."""
    places = {}
    for saved in page.site.state.read(page.workspace).questions:
        options = Options(saved.question, saved.type, saved.since)
        places[saved.question] = _place_of(page.memory, options, saved.expected)
    with page.site.state.edit(page.workspace) as state:
        for saved in state.questions:
            if saved.question in places:
                saved.before, saved.place = saved.place, places[saved.question]
                saved.at = time_ns() // 1000
    return _done(page, f"{count_noun(len(places), 'question')} asked", page.url("/playground"))


def _remove(questions: list[SavedQuestion], question: str) -> None:
    questions[:] = [saved for saved in questions if saved.question != question]


def _done(page: Page, text: str, to: str) -> Response:
    """Show the saved questions as they are now."""
    return page.done(text, to, fragment="playground/saved.html", **_saved_questions(page))


@post("/playground/index")
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
    arguments: dict[str, object] = {"query": options.question}
    if options.type:
        arguments["types"] = [options.type]
    if options.since:
        arguments["since"] = options.since
    return encode(arguments).decode()


def _tables(explanation: Explanation) -> dict[str, Any]:
    """Return the signals as columns, the rows of bars, and the three rankings."""
    rows = [_Signals(hit.signals) for hit in explanation.hits]
    names = list(rows[0].by_name) if rows else []
    used = [name for name in names if any(row.points(name) for row in rows)]
    largest = max((abs(row.points(name)) for row in rows for name in used), default=1.0)
    both = [explained.hit.passage for explained in explanation.hits]
    words, meaning = explanation.words, explanation.meaning
    return {
        "columns": [(name, _weights(rows, name)) for name in used],
        "unused": [name for name in names if name not in used],
        "bars": [[row.bar(name, largest) for name in used] for row in rows],
        "rankings": [
            ("Words", words.milliseconds, _moves(words.passages, both), False),
            ("Meaning", meaning.milliseconds, _moves(meaning.passages, both), False),
            ("Both", explanation.milliseconds, _moves(both, both), True),
        ],
    }


class _Signals:
    """The signals of one hit by name."""

    def __init__(self, signals: Iterable[WeightedSignal]) -> None:
        self.by_name = {name: (value, weight) for name, value, weight in signals}

    def points(self, name: str) -> float:
        """Return what a signal adds to the score; 0 if that is too little to show."""
        value, weight = self.by_name[name]
        points = value * weight
        return points if abs(points) >= _MIN_SHOWN_POINTS else 0.0

    def bar(self, name: str, largest: float) -> Bar:
        return Bar(name, *self.by_name[name], abs(self.points(name)) / largest)


def _weights(rows: list[_Signals], name: str) -> tuple[float, float]:
    """Return the lowest and the highest weight of a signal where it counts."""
    weights = [row.by_name[name][1] for row in rows if row.points(name)]
    return min(weights), max(weights)


def _moves(passages: list[Passage], both: list[Passage]) -> list[tuple[Passage, int | None]]:
    """Return the passages and how many places higher each is than by both; None if not there."""
    place = {passage.key: number for number, passage in enumerate(both)}
    moves: list[tuple[Passage, int | None]] = []
    for number, passage in enumerate(passages):
        moves.append((passage, place[passage.key] - number if passage.key in place else None))
    return moves


def _compare(absence: Absence) -> list[tuple[str, float, float]]:
    """Return the signals that differ: what each adds to the missing passage and to the last hit."""
    last = absence.last.signals if absence.last else ()
    shown = {name: value * weight for name, value, weight in last}
    compared = []
    for name, value, weight in absence.signals:
        missing, present = value * weight, shown.get(name, 0.0)
        if abs(missing - present) >= _MIN_SHOWN_POINTS:
            compared.append((name, missing, present))
    return compared


def _place_of(memory: Memory, options: Options, expected: str) -> int:
    """Return the place of the first hit of an entity; 0 if it is not among the first."""
    hits = recall(memory, options.question, limit=MAX_PLACE, within=options.within).hits
    for place, hit in enumerate(hits, 1):
        if hit.passage.entity == expected:
            return place
    return 0


def _saved_questions(page: Page) -> dict[str, Any]:
    questions = page.site.state.read(page.workspace).questions
    return {
        "questions": questions,
        "good": sum(0 < saved.place <= GOOD_PLACE for saved in questions),
        "good_place": GOOD_PLACE,
        "max_place": MAX_PLACE,
        "last_run": max((saved.at for saved in questions), default=0),
        "is_kept": page.site.state.is_kept,
    }
