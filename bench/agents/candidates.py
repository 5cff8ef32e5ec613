"""`python -m bench.agents.candidates`: which sentences of a conversation become candidate facts.

It gives the turns of candidates.toml, and those of conversations (files in the form of LoCoMo), to
the code of the hooks. A candidate of an agent's turn is right if it has the part that is labelled.
A candidate of a conversation is right if some question needs the turn it was found in.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from bench.recall.sets import load_cases
from polymnia.hooks.noticing import notice
from polymnia.importers.conversation import Turn

TURNS = Path(__file__).with_name("candidates.toml")
SPEAKERS = {"user": "user", "agent": "assistant"}
MIN_PRECISION = 0.7


class Outcome(Struct, frozen=True):
    """What one turn gave: whether it is labelled, its candidates, and how many are right."""

    is_labelled: bool
    candidates: int
    right: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table."""
    options = _parser().parse_args(arguments)
    print("| turns of | turns | worth keeping | candidates | right | precision | found |")
    print("|---|---|---|---|---|---|---|")
    lists = tomllib.loads(TURNS.read_text("utf-8"))
    for name, turns in lists.items():
        print(_row(f"an agent, {name}", [_judge(turn, options.show) for turn in turns]))
    for file in options.conversations:
        print(_row(file.stem, list(_judge_conversations(file))))
    return 0


def _judge(turn: dict[str, str], show: bool) -> Outcome:
    key = next(key for key in SPEAKERS if key in turn)
    texts = [draft.text for draft in notice([Turn(SPEAKERS[key], turn[key], 0)], "")]
    keep = turn.get("keep", "")
    right = sum(bool(keep) and keep.lower() in text.lower() for text in texts)
    if show and (len(texts) != right or bool(keep) != bool(right)):
        print(f"{turn[key][:80]!r}\n    keep {keep!r}, got {texts}")
    return Outcome(bool(keep), len(texts), right)


def _judge_conversations(file: Path) -> Iterator[Outcome]:
    for case in load_cases(file):
        evidence = {label for question in case.asked for label in question.answers}
        for told in case.told:
            count = len(notice([Turn("user", told.text, 0)], ""))
            is_evidence = told.label in evidence
            yield Outcome(is_evidence, count, count if is_evidence else 0)


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    labelled = sum(outcome.is_labelled for outcome in outcomes)
    candidates = sum(outcome.candidates for outcome in outcomes)
    right = sum(outcome.right for outcome in outcomes)
    found = sum(outcome.is_labelled and outcome.right > 0 for outcome in outcomes)
    precision = right / candidates if candidates else 0.0
    share = found / labelled if labelled else 0.0
    verdict = "met" if precision >= MIN_PRECISION else "missed"
    return (
        f"| {name} | {len(outcomes):,} | {labelled:,} | {candidates:,} | {right:,} | "
        f"{precision:.0%} ({verdict}) | {share:.0%} |"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.agents.candidates", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("conversations", metavar="FILE", nargs="*", type=Path)
    parser.add_argument("--show", action="store_true", help="print what is wrong or missing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
