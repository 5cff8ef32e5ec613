"""The command `python -m bench.recall.languages`: questions in seven languages.

Each question is asked in its own language of facts in that language, in English of those facts, and
in that language of English facts.
"""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.recall.cache import open_cached
from bench.recall.measures import Score, mean, score
from bench.recall.questions import Asked, Case, Told
from bench.recall.stage import Stage
from polymnia.embedders.base import Embedder

_SET = Path(__file__).with_name("languages.toml")
_ENGLISH = "en"
_RANKINGS = ("BM25, any word", "polymnia, words alone", "polymnia, words and meaning")
# A question in a language, and the language of the facts it is asked of.
Pair = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask everything and print R@1 and R@3 of each ranking."""
    options = _parser().parse_args(arguments)
    facts = tomllib.loads(_SET.read_text("utf-8"))["fact"]
    embedder = open_cached(options.embedder)
    heads = ["question", "facts", *_RANKINGS]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    totals: dict[str, dict[str, list[Score]]] = {}
    for asked, told in _pairs(facts):
        found = _ask(facts, asked, told, embedder)
        print(_line(asked, told, found))
        kind = "the same language" if asked == told else "another language"
        for name, scores in found.items():
            totals.setdefault(kind, {}).setdefault(name, []).extend(scores)
    for kind, found in totals.items():
        print(_line("all", kind, found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.languages", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--embedder",
        default="local",
        help="as in `polymnia serve --embedder` (default: %(default)s)",
    )
    return parser


def _pairs(facts: Sequence[dict[str, list[str]]]) -> list[Pair]:
    others = [language for language in facts[0] if language != _ENGLISH]
    same = [(language, language) for language in others]
    abroad = [(_ENGLISH, language) for language in others]
    back = [(language, _ENGLISH) for language in others]
    return [(_ENGLISH, _ENGLISH), *same, *abroad, *back]


def _ask(
    facts: Sequence[dict[str, list[str]]], asked: str, told: str, embedder: Embedder | None
) -> dict[str, list[Score]]:
    """Return the scores of each ranking."""
    texts = [Told("memory", fact[told][0], 0, str(place)) for place, fact in enumerate(facts)]
    questions = [Asked(fact[asked][1], asked, {str(n): 1}) for n, fact in enumerate(facts)]
    with TemporaryDirectory() as folder:
        stage = Stage(Case("languages", "note", texts, questions), Path(folder), embedder)
        try:
            rankings = stage.rankings()
            return {
                name: [score(rankings[name](question.text), question) for question in questions]
                for name in _RANKINGS
                if name in rankings
            }
        finally:
            stage.close()


def _line(asked: str, told: str, found: dict[str, list[Score]]) -> str:
    cells = []
    for scores in found.values():
        firsts = mean([float(one.reciprocal_rank == 1) for one in scores])
        threes = mean([float((one.reciprocal_rank or 0) >= 1 / 3) for one in scores])
        cells.append(f"{100 * firsts:.0f} / {100 * threes:.0f}")
    return f"| {asked} | {told} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
