"""The command `python -m bench.recall.editions PATH… --other CHECKOUT`: tokens for evidence.

Both this checkout and another one serve the same memories over stdio, each with its own code, and
are asked the same questions at several budgets. What counts is the text that a model reads: is the
needed fact or turn in it, and how long is it? For the evidence that this checkout shows, the table
says how many tokens the other one needs, from a line through its own budgets.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

from msgspec import Struct

from bench.agents.tasks import NOT_STORED, session_calls
from bench.client import Session, open_session
from bench.errors import BenchError
from bench.pipe import Launch
from bench.recall.files import load_file
from bench.recall.questions import Case, spread_questions

BUDGETS = (500, 1000, 2000)
# Budgets of the other edition: it may count otherwise, so its replies are measured.
OTHER_BUDGETS = (200, 300, 500, 750, 1000, 1500, 2000, 3000, 4500, 6500, 9000)
_MAX_LIMIT = 200
_WARM_UP_CALLS = 40
# What a reply says if its question was not embedded in time, and how often it is asked again.
_WORDS_ALONE = "so only words were searched"
_MAX_ASKED = 60
_BEFORE_ASKING_AGAIN_S = 0.5
_HERE = Path(__file__).parents[2]

Call = tuple[str, dict[str, Any]]


class Task(Struct, frozen=True):
    """A memory as calls that write it, and its questions with the texts that they need."""

    writes: list[Call]
    questions: list[tuple[str, list[str]]]


class Shown(Struct):
    """What the replies at one budget show: sums over all questions."""

    questions: int = 0
    evidence: float = 0.0
    tokens: float = 0.0

    def mean(self) -> tuple[float, float]:
        """Return the mean number of tokens and the mean share of the evidence."""
        return self.tokens / self.questions, self.evidence / self.questions


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask both editions and print a table for each group of files."""
    options = _parser().parse_args(arguments)
    for paths in _groups(options.paths):
        tasks = [task for path in paths for task in load_tasks(path, options.limit)]
        ours = ask_edition(_HERE, tasks, BUDGETS, {})
        same_calls = ask_edition(options.other, tasks, BUDGETS, {})
        # Without a limit, an early edition showed ten hits at most.
        curve = ask_edition(options.other, tasks, OTHER_BUDGETS, {"limit": _MAX_LIMIT})
        title = ", ".join(path.name for path in paths)
        questions = sum(len(task.questions) for task in tasks)
        print(f"\n{title}: {questions} questions\n\n{table(ours, same_calls, curve)}", flush=True)
    return 0


def _groups(paths: Sequence[Path]) -> list[list[Path]]:
    """Return the files of agents' facts as one group, and each other file as one of its own."""
    facts = [path for path in paths if path.suffix == ".toml"]
    groups = [[path] for path in paths if path.suffix != ".toml"]
    return [facts, *groups] if facts else groups


def load_tasks(path: Path, limit: int | None) -> list[Task]:
    """Load the memories of a file: facts of agents (.toml), or conversations as LoCoMo has them."""
    if path.suffix == ".toml":
        return [_agent_task(tomllib.loads(path.read_text("utf-8")))]
    return [_conversation_task(case) for case in spread_questions(load_file(path), limit)]


def _agent_task(content: dict[str, Any]) -> Task:
    writes: list[Call] = []
    for session in content["session"]:
        writes += session_calls(session)
    questions = []
    for group in content["questions"]:
        if group["kind"] != NOT_STORED:
            questions += [(question["ask"], question["needs"]) for question in group["list"]]
    return Task(writes, questions)


def _conversation_task(case: Case) -> Task:
    writes: list[Call] = []
    texts = {}
    for told in case.told:
        when = datetime.fromtimestamp(told.valid_at / 1_000_000, UTC).isoformat()
        entity = {"name": told.entity, "type": case.kind, "facts": [told.text], "when": when}
        writes.append(("remember", {"entities": [entity]}))
        texts[told.label] = _plain(told.text)
    questions = []
    for asked in case.asked:
        if asked.answers:
            questions.append((asked.text, [texts[label] for label in asked.answers]))
    return Task(writes, questions)


def ask_edition(
    checkout: Path, tasks: Sequence[Task], budgets: Sequence[int], arguments: dict[str, Any]
) -> list[Shown]:
    """Return what the replies of a checkout show at each budget."""
    shown = [Shown() for _ in budgets]
    for task in tasks:
        with TemporaryDirectory() as folder:
            store = Path(folder) / "memory.db"
            with closing(_serve(checkout, store)) as session:
                for tool, call in task.writes:
                    session.call(tool, call)
            _index(checkout, store)
            with closing(_serve(checkout, store)) as session:
                _warm_up(session)
                for sums, (needs, text) in _replies(session, task, shown, budgets, arguments):
                    present = [needed for needed in needs if _plain(needed) in _plain(text)]
                    sums.questions += 1
                    sums.evidence += len(present) / len(needs)
                    sums.tokens += len(text) / 4
    return shown


def _replies(
    session: Session,
    task: Task,
    shown: Sequence[Shown],
    budgets: Sequence[int],
    arguments: dict[str, Any],
) -> Iterator[tuple[Shown, tuple[list[str], str]]]:
    for question, needs in task.questions:
        for sums, budget in zip(shown, budgets, strict=True):
            call = {"query": question, "max_tokens": budget, **arguments}
            yield sums, (needs, _ask(session, call))


def _ask(session: Session, call: dict[str, Any]) -> str:
    """Return the reply to a question. Ask again while a busy machine embeds it too slowly."""
    for _ in range(_MAX_ASKED):
        text = session.call("recall", call).text
        if _WORDS_ALONE not in text:
            return text
        sleep(_BEFORE_ASKING_AGAIN_S)
    raise BenchError(f"no question is embedded in time: {text}")


def _warm_up(session: Session) -> None:
    """Ask until the model is loaded: an early edition answered by words alone meanwhile."""
    for _ in range(_WARM_UP_CALLS):
        session.call("recall", {"query": "what is stored here?"})


def _serve(checkout: Path, store: Path) -> Session:
    command = _command("serve", store)
    log = store.with_suffix(".log")
    return open_session(Launch(str(checkout), command, _environment(checkout), log))


def _index(checkout: Path, store: Path) -> None:
    """Embed all passages. Raise BenchError if that fails."""
    ended = subprocess.run(
        _command("index", store), env=_environment(checkout), capture_output=True, text=True
    )
    if ended.returncode:
        raise BenchError(f"{checkout}: polymnia index failed: {ended.stderr.strip()[-300:]}")


def _command(name: str, store: Path) -> list[str]:
    return [sys.executable, "-m", "polymnia", name, "--store", str(store), "--embedder", "local"]


def _environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}


def table(ours: Sequence[Shown], same_calls: Sequence[Shown], others: Sequence[Shown]) -> str:
    """Return a row for each of our budgets.

    It has what we show, what the other edition answers to the same call, and how many tokens it
    needs for the evidence that we show.
    """
    curve = sorted(shown.mean() for shown in others)
    heads = ["max_tokens", "evidence, tokens", "other: the same call", "other: the same evidence"]
    lines = [f"| {' | '.join(heads)} | share of its tokens |", "|---|---|---|---|---|"]
    for budget, shown, same_call in zip(BUDGETS, ours, same_calls, strict=True):
        tokens, evidence = shown.mean()
        needed = tokens_for(evidence, curve)
        cells = [str(budget), _figures(shown), _figures(same_call)]
        if needed is None:
            cells += [f"more than {curve[-1][0]:.0f} tokens", ""]
        else:
            cells += [f"{needed:.0f} tokens", f"{100 * tokens / needed:.0f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figures(shown: Shown) -> str:
    tokens, evidence = shown.mean()
    return f"{100 * evidence:.1f} %, {tokens:.0f}"


def tokens_for(evidence: float, curve: Sequence[tuple[float, float]]) -> float | None:
    """Return the tokens at which a curve of (tokens, evidence) reaches this evidence.

    Return None if it never does.
    """
    before = (0.0, 0.0)
    for point in curve:
        if point[1] >= evidence:
            rise = point[1] - before[1]
            share = (evidence - before[1]) / rise if rise else 1.0
            return before[0] + share * (point[0] - before[0])
        before = point
    return None


def _plain(text: str) -> str:
    return " ".join(text.split())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.editions", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="a .json file in the form of LoCoMo, or a .toml file of bench/agents",
    )
    parser.add_argument(
        "--other",
        type=Path,
        required=True,
        metavar="CHECKOUT",
        help="a checkout of another commit (git worktree add CHECKOUT COMMIT)",
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", help="ask only N questions of a conversation file"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
