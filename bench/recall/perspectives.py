"""The command `python -m bench.recall.perspectives PATH`: what several perspectives find that one
vector does not.

A ranking is by the best cosine over its perspectives, as `search_nodes` of the workspace dialect
has it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.recall.measures import DEPTHS, MEASURES, Score, mean, score
from bench.recall.questions import Case
from bench.recall.sets import load_cases
from polymnia.dialects.workspace.tools import DEFAULT_PERSPECTIVES
from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder
from polymnia.errors import PolymniaError
from polymnia.model import Perspective
from polymnia.search.templates import render_document, render_query

Floats = NDArray[np.float32]

_PREFIXES = ("technical details", "relationships", "time and events", "project, goals and status")
_PLAIN = Perspective("text", "{text}", "{query}")
# What the defaults are compared with: one vector, and a prefix for each perspective on both sides.
RANKINGS: dict[str, tuple[Perspective, ...]] = {
    "one vector of {text}": (_PLAIN,),
    **{f"one vector: {perspective.name}": (perspective,) for perspective in DEFAULT_PERSPECTIVES},
    "the five defaults": DEFAULT_PERSPECTIVES,
    "five prefixes": (
        _PLAIN,
        *[
            Perspective(prefixe, f"{prefixe}: {{text}}", f"{prefixe}: {{query}}")
            for prefixe in _PREFIXES
        ],
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when the embedder cannot be loaded."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.perspectives", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("path", type=Path, help="a LoCoMo-format .json file")
    parser.add_argument(
        "--embedder",
        default="local",
        help="as in `polymnia serve --embedder` (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        embedder = open_embedder(options.embedder)
    except PolymniaError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    if embedder is None:
        parser.error("there is nothing to measure without an embedder")
    scores: dict[str, list[Score]] = {name: [] for name in RANKINGS}
    for case in load_cases(options.path):
        vectors = _Vectors(case, embedder)
        for name, perspectives in RANKINGS.items():
            scores[name] += _rank(case, vectors, perspectives)
    print(table(scores))
    return 0


class _Vectors:
    """The vectors of one case, each template embedded once."""

    def __init__(self, case: Case, embedder: Embedder) -> None:
        self._case = case
        self._embedder = embedder
        self._made: dict[str, Floats] = {}

    def told(self, template: str) -> Floats:
        texts = [
            render_document(
                template, text=item.text, name=item.entity, kind=self._case.kind, at=item.valid_at
            )
            for item in self._case.told
        ]
        return self._embed(template, texts, asking=False)

    def asked(self, template: str) -> Floats:
        return self._embed(
            template, [render_query(template, item.text) for item in self._case.asked], asking=True
        )

    def _embed(self, template: str, texts: list[str], *, asking: bool) -> Floats:
        if template not in self._made:
            self._made[template] = self._embedder.embed(texts, asking=asking)
        return self._made[template]


def _rank(case: Case, vectors: _Vectors, perspectives: Sequence[Perspective]) -> list[Score]:
    cosines = np.max(
        [
            vectors.asked(perspective.query) @ vectors.told(perspective.document).T
            for perspective in perspectives
        ],
        axis=0,
    )
    ranked = np.argsort(-cosines, axis=1, kind="stable")[:, : max(DEPTHS)]
    return [
        score([case.told[place].label for place in row], asked)
        for asked, row in zip(case.asked, ranked, strict=True)
    ]


def table(scores: dict[str, list[Score]]) -> str:
    """Return the means as a Markdown table."""
    measures = MEASURES[: len(DEPTHS) + 1]
    lines = [
        f"| perspectives | {' | '.join(measure.head for measure in measures)} |",
        f"|{'---|' * (len(measures) + 1)}",
    ]
    for name, listed in scores.items():
        means = [mean([measure.value(score) or 0.0 for score in listed]) for measure in measures]
        lines.append(f"| {name} | {' | '.join(f'{100 * value:.1f}' for value in means)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
