"""The command: `python -m bench.recall PATH`, one whole run."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from bench.recall.cache import open_cached
from bench.recall.mcp import McpStage, Shown
from bench.recall.measures import MEASURES, Measure, Score, interval, mean, score, values_of
from bench.recall.questions import Case, spread_questions
from bench.recall.sets import load_cases
from bench.recall.stage import Stage
from bench.recall.variants import PHRASINGS, VARIANTS
from polymnia.embedders.base import Embedder
from polymnia.errors import PolymniaError

# Scores by ranking, then by kind of question; and seconds of processor time by ranking.
Scores = dict[str, dict[str, list[Score]]]
Times = dict[str, list[float]]
StageMaker = Callable[[Case, Path, Embedder | None], Stage | McpStage]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the tables; 1 when the embedder cannot be loaded."""
    options = _parser().parse_args(arguments)
    cases = spread_questions(VARIANTS[options.variant](load_cases(options.path)), options.limit)
    try:
        embedder = open_cached(options.embedder)
    except PolymniaError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    make: StageMaker = (
        McpStage
        if options.through == "mcp"
        else partial(Stage, coverage=options.coverage / 100, also=PHRASINGS[options.also])
    )
    scores: Scores = {}
    times: Times = {}
    embedded, seconds = 0, 0.0
    shown: dict[int, list[Shown]] = {budget: [] for budget in options.budgets}
    for case in cases:
        seconds += _run(make, case, embedder, scores, times, shown)
        embedded += len(case.told)
    if scores:
        print(_table(scores, times))
    if options.through == "mcp":
        print(_budget_table(shown))
    if embedder is not None:
        print(
            f"\n{embedder.identity}: {embedded} observations embedded, "
            f"{embedded / seconds:.0f} a second"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(
        prog="python -m bench.recall",
        description="How much of what answers a question is found among the first hits.",
    )
    new.add_argument(
        "path",
        type=Path,
        help="a .json or .json.gz file in the form of LoCoMo or LongMemEval, "
        "a folder of BEAM's chats, or the directory of a SMART collection (Cranfield, CISI)",
    )
    new.add_argument(
        "--variant",
        choices=VARIANTS,
        default="plain",
        help="ask or write otherwise than given (default: %(default)s)",
    )
    new.add_argument(
        "--through",
        choices=("engine", "mcp"),
        default="engine",
        help=(
            "write and read with the engine's verbs, "
            "or with the tools of the native dialect (default: %(default)s)"
        ),
    )
    new.add_argument(
        "--budgets",
        type=int,
        nargs="+",
        default=[500, 1000, 2000],
        metavar="TOKENS",
        help="with --through mcp: evidence in replies of so many tokens (default: %(default)s)",
    )
    new.add_argument(
        "--coverage",
        type=float,
        default=100,
        metavar="PERCENT",
        help="embed only the newest part of each memory (default: %(default)s)",
    )
    new.add_argument(
        "--also",
        choices=PHRASINGS,
        default="none",
        help=(
            "search for another phrasing of each question too, made by this rule "
            "(default: %(default)s)"
        ),
    )
    new.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="ask only N questions, spread evenly over the file (default: all)",
    )
    new.add_argument(
        "--embedder",
        default="local",
        help="as in `polymnia serve --embedder` (default: %(default)s)",
    )
    return new


def _run(
    make: StageMaker,
    case: Case,
    embedder: Embedder | None,
    scores: Scores,
    times: Times,
    shown: dict[int, list[Shown]],
) -> float:
    """Ask everything of one case; gives the seconds it took to embed."""
    with TemporaryDirectory() as folder:
        stage = make(case, Path(folder), embedder)
        try:
            if isinstance(stage, McpStage):
                for budget, replies in shown.items():
                    replies += stage.replies(case.asked, budget)
            for name, ranking in stage.rankings().items():
                for asked in case.asked:
                    began = process_time()
                    ranked = ranking(asked.text)
                    times.setdefault(name, []).append(process_time() - began)
                    by_kind = scores.setdefault(name, {})
                    by_kind.setdefault(asked.kind, []).append(score(ranked, asked))
            return stage.embedding_seconds
        finally:
            stage.close()


def _table(scores: Scores, times: Times) -> str:
    """Return a row for each ranking, with 95 % intervals, and a row for each kind of question."""
    every_score = [
        score for kinds in scores.values() for listed in kinds.values() for score in listed
    ]
    measures = [measure for measure in MEASURES if values_of(measure, every_score)]
    heads = ["ranking", "kind", "questions", *(measure.head for measure in measures), "ms CPU"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, kinds in scores.items():
        everything = [score for listed in kinds.values() for score in listed]
        median = sorted(times[name])[len(times[name]) // 2] * 1000
        cells = [_cell(measure, everything, measure.has_interval) for measure in measures]
        lines.append(_line(name, "all", len(everything), cells, f"{median:.1f}"))
        if len(kinds) == 1:
            continue
        for kind in sorted(kinds):
            cells = [_cell(measure, kinds[kind]) for measure in measures]
            lines.append(_line(name, kind, len(kinds[kind]), cells, ""))
    return "\n".join(lines)


def _budget_table(shown: dict[int, list[Shown]]) -> str:
    """Return a row for each budget: how much of the evidence a reply shows, in how many tokens."""
    lines = [
        "\n| budget | evidence shown [95 %] | whole | facts | tokens |",
        "|---|---|---|---|---|",
    ]
    for budget, replies in shown.items():
        evidence = [reply.evidence for reply in replies]
        low, high = interval(evidence)
        whole = mean([float(share == 1) for share in evidence])
        cells = [
            str(budget),
            f"{100 * mean(evidence):.1f} [{100 * low:.1f}, {100 * high:.1f}]",
            f"{100 * whole:.1f}",
            f"{mean([reply.facts for reply in replies]):.1f}",
            f"{mean([reply.tokens for reply in replies]):.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(measure: Measure, scores: list[Score], has_interval: bool = False) -> str:
    values = values_of(measure, scores)
    if not values:
        return ""
    text = f"{100 * mean(values):.1f}"
    if has_interval:
        low, high = interval(values)
        text += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return text


def _line(name: str, kind: str, count: int, cells: list[str], time: str) -> str:
    return f"| {name} | {kind} | {count} | {' | '.join(cells)} | {time} |"


if __name__ == "__main__":
    sys.exit(main())
