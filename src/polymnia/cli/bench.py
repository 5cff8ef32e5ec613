"""`polymnia bench`: how much a search of this installation finds, on a file of questions."""

import argparse
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from polymnia.cli.common import (
    Progress,
    add_embedder_argument,
    add_json_argument,
    positive,
    print_json,
    print_table,
    printable,
)
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import Meaning
from polymnia.errors import BadInput, EmbedderError
from polymnia.evaluation.asking import load_case, rank
from polymnia.evaluation.files import load_file
from polymnia.evaluation.measures import MEASURES, Score, interval, mean, score, values_of
from polymnia.evaluation.questions import Case, spread_questions
from polymnia.places import open_meaning
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.stores import open_store

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

_HEADS = ("R@1", "R@10", "any@1", "any@5", "all@5")
_SHOWN = [measure for measure in MEASURES if measure.head in _HEADS]
_LOADING_TIMEOUT_S = 60.0

# The scores of each ranking, question by question.
Scores = dict[str, list[Score]]


def add_bench(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "bench",
        help="measure how much a search finds, on a file of questions",
        description="Fill a memory in a temporary directory with the conversations of a file, ask "
        "its questions, and print how much of what answers them is found: R@k is the share of the "
        "marked turns among the first k hits; any@k and all@k say how often one or all of the "
        "marked sessions are among the first k. Per cent, with 95 %% intervals. Nothing of yours "
        "is read or changed.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a .json or .json.gz file in the form of LoCoMo or LongMemEval (oracle, S or M), "
        "or a folder of BEAM's chats",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="ask only N questions, spread evenly over the file (default: all)",
    )
    add_embedder_argument(parser)
    add_json_argument(parser)
    return parser


def run_bench(settings: Settings, options: argparse.Namespace) -> int:
    """Ask the questions and print the measures. Raise BadInput for a file without any."""
    cases = spread_questions(load_file(Path(options.file)), options.limit)
    if not cases:
        raise BadInput(f"{options.file}: no question has an answer that is marked")
    with ExitStack() as resources:
        meaning, problem = _open_meaning(settings, resources)
        scores = _ask_all(cases, meaning)
    counts = {
        "questions": sum(len(case.asked) for case in cases),
        "memories": len(cases),
        "facts": sum(len(case.told) for case in cases),
    }
    if options.json:
        rankings = {name: _measures(listed) for name, listed in scores.items()}
        about = {"file": options.file, "embedder": settings.embedder, "problem": problem}
        print_json({**about, **counts, "rankings": rankings})
        return 0
    _print_scores(scores)
    asked, told = count_noun(counts["questions"], "question"), count_noun(counts["facts"], "fact")
    print(f"{asked} about {told} in {count_noun(counts['memories'], 'memory')}")
    _say_what_counts(scores["words alone"])
    if problem:
        print(printable(f"not asked by meaning: {problem}"))
    return 0


def _open_meaning(settings: Settings, resources: ExitStack) -> tuple[Meaning | None, str]:
    """Return what searches by meaning, or None and why not. Raise SettingsError."""
    # A process that other programs use too must not be kept busy for minutes.
    meaning = open_meaning(replace(settings, share_embedder=False))
    if meaning is None:
        return None, "the embedder is `none`"
    resources.callback(meaning.close)
    try:
        meaning.embed_questions(["Does it work?"], timeout=_LOADING_TIMEOUT_S)
    except EmbedderError as exc:
        return None, str(exc)
    return meaning, ""


def _ask_all(cases: list[Case], meaning: Meaning | None) -> Scores:
    scores: Scores = {}
    progress = Progress()
    done, total = 0, sum(len(case.asked) for case in cases)

    def show_embedding(embedded: int, passages: int) -> None:
        progress(done, total, f"questions; embedding {embedded:,} of {passages:,} facts")

    def show_asking(asked: int) -> None:
        progress(done + asked, total, "questions")

    for case in cases:
        _ask(case, meaning, scores, show_embedding, show_asking)
        done += len(case.asked)
    progress.end()
    return scores


def _ask(
    case: Case,
    meaning: Meaning | None,
    scores: Scores,
    show_embedding: Callable[[int, int], None],
    show_asking: Callable[[int], None],
) -> None:
    """Ask the questions of one case in a memory of its own, and add their scores."""
    with (
        TemporaryDirectory(prefix="polymnia-bench-") as directory,
        closing(open_store(str(Path(directory) / "memory.db"))) as store,
    ):
        labels = load_case(Memory(store), case)
        memories = {"words alone": Memory(store)}
        if meaning is not None:
            meaning.index(store, show_embedding)
            memories["words and meaning"] = Memory(store, meaning)
        for number, asked in enumerate(case.asked, 1):
            for name, memory in memories.items():
                ranked = rank(memory, asked.text, labels)
                scores.setdefault(name, []).append(score(ranked, asked))
            show_asking(number)


def _measures(scores: list[Score]) -> dict[str, dict[str, Any]]:
    """Return the measures that the questions have: how many have it, mean and interval."""
    measures = {}
    for measure in _SHOWN:
        values = values_of(measure, scores)
        if values:
            low, high = interval(values)
            estimate = {"mean": mean(values), "low": low, "high": high}
            measures[measure.head] = {"questions": len(values), **estimate}
    return measures


def _say_what_counts(scores: list[Score]) -> None:
    """Print how many questions recall counts, if no turn is marked for others."""
    marked = sum(score.recall is not None for score in scores)
    if marked < len(scores):
        print(f"R@1 and R@10 count only the {marked} with a marked turn in the memory")


def _print_scores(scores: Scores) -> None:
    measured = {name: _measures(listed) for name, listed in scores.items()}
    heads = list(next(iter(measured.values())))
    rows = [["", "questions", *heads]]
    for name, measures in measured.items():
        cells = [
            f"{100 * cell['mean']:.1f} [{100 * cell['low']:.1f}, {100 * cell['high']:.1f}]"
            for cell in measures.values()
        ]
        rows.append([name, str(len(scores[name])), *cells])
    print_table(rows)
