"""The command `python -m bench.recall.marks PATH…`: how well "not stored" is told from an answer.

Each memory is asked questions that it answers and questions that it cannot answer. For facts of
agents (.toml, as `bench.agents.tasks` reads them) both are in the file. A conversation is asked the
questions of the next one in the file, with the names of the speakers exchanged. A question counts
as marked if the reply of `recall` does not say that the match is clear. Other thresholds than the
product's show the price of marking more.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.agents.tasks import NOT_STORED, replay
from bench.recall.asking import load_case
from bench.recall.cache import open_cached
from bench.recall.mcp import Conversation, PatientMeaning
from bench.recall.questions import Case
from bench.recall.sets import load_cases
from polymnia.embedders.base import Embedder
from polymnia.engine.memory import Memory
from polymnia.engine.semantic.meaning import SharedEmbedder
from polymnia.errors import PolymniaError
from polymnia.search import stored
from polymnia.stores import open_store

# A memory and its questions, with whether it answers them.
AskedMemory = tuple[Memory, list[tuple[str, bool]]]

THRESHOLDS = (1.5, 1.8, stored.MIN_STORED, 2.2, stored.MIN_STORED_TURNS, 2.7)
# Which of them the product has.
_CHOSEN = {stored.MIN_STORED: " (facts)", stored.MIN_STORED_TURNS: " (turns)"}


class Marks(Struct):
    """Of so many questions, how many are marked at each threshold."""

    asked: int = 0
    marked: dict[float, int] = {}

    def add(self, other: "Marks") -> None:
        """Count the questions of another memory, too."""
        self.asked += other.asked
        for threshold, marked in other.marked.items():
            self.marked[threshold] = self.marked.get(threshold, 0) + marked

    def percent(self, threshold: float) -> float:
        """Return the share that is marked, in per cent."""
        return 100 * self.marked.get(threshold, 0) / max(1, self.asked)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask and print a table for each file; 1 when the embedder cannot be loaded."""
    options = _parser().parse_args(arguments)
    try:
        embedder = open_cached(options.embedder)
    except PolymniaError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    if embedder is None:
        print("error: without an embedder nothing is marked as not stored", file=sys.stderr)
        return 1
    users = Marks(), Marks()
    for path in options.paths:
        answerable, unanswerable = Marks(), Marks()
        for memory, questions in _memories(path, embedder, options.limit):
            for text, has_answer in questions:
                _ask(memory, text, answerable if has_answer else unanswerable)
        print(f"\n{path.name}\n\n{table(answerable, unanswerable)}", flush=True)
        if path.suffix == ".toml":
            users[0].add(answerable)
            users[1].add(unanswerable)
    if users[0].asked:
        print(f"\nall users\n\n{table(*users)}")
    return 0


def foreign_questions(cases: Sequence[Case]) -> list[list[str]]:
    """Return for each case the questions of the next one, asked of its own speakers."""
    asked = []
    for case, other in zip(cases, [*cases[1:], *cases[:1]], strict=True):
        own_names = _speakers(case)
        texts = []
        for question in other.asked:
            text = question.text
            for name, own_name in zip(_speakers(other), own_names, strict=False):
                text = re.sub(rf"\b{re.escape(name)}\b", own_name, text, flags=re.IGNORECASE)
            texts.append(text)
        asked.append(texts)
    return asked


def _speakers(case: Case) -> list[str]:
    return list(dict.fromkeys(told.entity for told in case.told))


def _memories(path: Path, embedder: Embedder, limit: int | None) -> Iterator[AskedMemory]:
    """Yield each memory of a file with its questions, and whether it answers them."""
    if path.suffix == ".toml":
        yield from _agent_memory(path, embedder)
        return
    cases = load_cases(path)
    for case, foreign in zip(cases, foreign_questions(cases), strict=True):
        own = [question.text for question in case.asked]
        questions = [(text, True) for text in _spread(own, limit)]
        questions += [(text, False) for text in _spread(foreign, limit)]
        with TemporaryDirectory() as folder, closing(open_store(f"{folder}/memory.db")) as store:
            load_case(Memory(store), case)
            with closing(PatientMeaning(SharedEmbedder("local", lambda url: embedder))) as meaning:
                meaning.index(store)
                yield Memory(store, meaning), questions


def _agent_memory(path: Path, embedder: Embedder) -> Iterator[AskedMemory]:
    content = tomllib.loads(path.read_text("utf-8"))
    questions = []
    for group in content["questions"]:
        for question in group["list"]:
            questions.append((question["ask"], group["kind"] != NOT_STORED))
    with TemporaryDirectory() as folder, closing(open_store(f"{folder}/memory.db")) as store:
        replay(Conversation(Memory(store)), content["session"])
        with closing(PatientMeaning(SharedEmbedder("local", lambda url: embedder))) as meaning:
            meaning.index(store)
            yield Memory(store, meaning), questions


def _spread(texts: list[str], limit: int | None) -> list[str]:
    """Return `limit` of the texts, or all: files are sorted by kind, so not the first ones."""
    count = len(texts) if limit is None else min(limit, len(texts))
    return [texts[place * len(texts) // count] for place in range(count)]


def _ask(memory: Memory, text: str, marks: Marks) -> None:
    """Ask once with each threshold and count the replies that are marked."""
    client = Conversation(memory)
    marks.asked += 1
    chosen = stored.MIN_PERHAPS, stored.MIN_STORED, stored.MIN_STORED_TURNS
    try:
        for threshold in THRESHOLDS:
            stored.MIN_PERHAPS = stored.MIN_STORED = stored.MIN_STORED_TURNS = threshold
            reply = client.call("recall", {"query": text})
            if reply["structuredContent"]["match"] != "clear":
                marks.marked[threshold] = marks.marked.get(threshold, 0) + 1
    finally:
        stored.MIN_PERHAPS, stored.MIN_STORED, stored.MIN_STORED_TURNS = chosen


def table(answerable: Marks, unanswerable: Marks) -> str:
    """Return a row for each threshold: the recall of the mark, its errors and its precision."""
    lines = [
        f"| threshold | not stored, marked (of {unanswerable.asked}) "
        f"| stored, marked wrongly (of {answerable.asked}) | precision |",
        "|---|---|---|---|",
    ]
    for threshold in THRESHOLDS:
        right, wrong = unanswerable.marked.get(threshold, 0), answerable.marked.get(threshold, 0)
        cells = [
            f"{threshold:g}{_CHOSEN.get(threshold, '')}",
            f"{unanswerable.percent(threshold):.1f} %",
            f"{answerable.percent(threshold):.1f} %",
            f"{100 * right / max(1, right + wrong):.0f} %",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.marks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="a .json file in the form of LoCoMo, or a .toml file of bench/agents",
    )
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="of each conversation ask N questions with and N without an answer (default: all)",
    )
    parser.add_argument(
        "--embedder",
        default="local",
        help="as in `polymnia serve --embedder` (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
