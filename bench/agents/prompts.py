"""The command `python -m bench.agents.prompts`: what prompts get from memory without being asked.

It types the questions of conversations (files in the form of LoCoMo) and of an agent's memory
(memory.toml), and the tasks of prompts.toml, and judges every line that the hook would add: is it
labelled as evidence? Prompts without evidence are questions of the next conversation, with the
names of this one's speakers, questions on what nobody stored, and everyday tasks.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.agents.tasks import MEMORY, replay
from bench.recall.asking import load_case
from bench.recall.mcp import Conversation, PatientMeaning
from bench.recall.questions import Case
from bench.recall.sets import load_cases
from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder
from polymnia.engine.memory import Memory
from polymnia.engine.recall.prompted import (
    MAX_FACTS,
    PromptVector,
    facts_for_prompt,
    searchable_text,
)
from polymnia.engine.semantic.meaning import SharedEmbedder
from polymnia.errors import PolymniaError
from polymnia.hooks.prompts import line_of
from polymnia.model import Passage
from polymnia.search.tokens import count_tokens
from polymnia.stores import open_store

PROMPTS = Path(__file__).with_name("prompts.toml")
MIN_PRECISION, MAX_FALSE_ALARMS = 0.7, 0.15
# Every other question of another conversation is enough.
OTHER_QUESTIONS_STEP = 2

IsEvidence = Callable[[Passage], bool]


class Prompt(Struct, frozen=True):
    """What is typed, and which facts are labelled as evidence; None without any."""

    text: str
    is_evidence: IsEvidence | None


class Outcome(Struct, frozen=True):
    """What one prompt got: lines, how many of them are evidence, and their tokens."""

    has_evidence: bool
    lines: int
    useful: int
    tokens: int


class Typist:
    """Types prompts into a memory, with or without the embedder."""

    def __init__(self, memory: Memory, embedder: Embedder | None, *, show: bool) -> None:
        self._memory = memory
        self._embedder = embedder
        self._show = show

    def type(self, prompt: Prompt) -> Outcome:
        """Return what the prompt gets."""
        text = searchable_text(prompt.text)
        facts = []
        if text:
            facts = facts_for_prompt(self._memory, text, self._vector(text))[:MAX_FACTS]
        useful = 0
        lines = []
        for fact in facts:
            is_useful = prompt.is_evidence is not None and prompt.is_evidence(fact.passage)
            useful += is_useful
            line = line_of(fact, text)
            lines.append(line)
            if self._show:
                print(f"{'+' if is_useful else '!'} {prompt.text[:70]!r}\n    {line}")
        tokens = sum(map(count_tokens, lines))
        return Outcome(prompt.is_evidence is not None, len(lines), useful, tokens)

    def _vector(self, text: str) -> PromptVector | None:
        if self._embedder is None:
            return None
        (vector,) = self._embedder.embed([text], asking=True)
        return PromptVector(self._embedder.identity, vector.astype("<f4").tobytes())


def main(arguments: Sequence[str] | None = None) -> int:
    """Type everything and print a table; 1 when the embedder cannot be loaded."""
    options = _parser().parse_args(arguments)
    try:
        embedder = open_embedder(options.embedder)
    except PolymniaError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    embedders = {"words and meaning": embedder, "words alone": None}
    if embedder is None:
        del embedders["words and meaning"]
    print(_heading())
    with TemporaryDirectory() as folder:
        for name, prompts in _collections(options.conversations, Path(folder), embedder):
            for way, used in embedders.items():
                outcomes = []
                for memory, prompt in prompts:
                    outcomes.append(Typist(memory, used, show=options.show).type(prompt))
                print(_row(name, way, outcomes), flush=True)
    return 0


def _collections(
    files: Sequence[Path], folder: Path, embedder: Embedder | None
) -> Iterator[tuple[str, list[tuple[Memory, Prompt]]]]:
    """Yield the name of each collection, and its prompts with the memories they are typed into."""
    with ExitStack() as stack:
        memory = _open(folder / "agent.db", stack)
        content = tomllib.loads(MEMORY.read_text("utf-8"))
        replay(Conversation(memory), content["session"])
        _index(memory, embedder)
        yield "questions of an agent", [(memory, prompt) for prompt in _questions(content)]
        yield "tasks for an agent", [(memory, prompt) for prompt in _tasks()]
        for file in files:
            cases = load_cases(file)
            prompts: list[tuple[Memory, Prompt]] = []
            for number, case in enumerate(cases):
                memory = _open(folder / f"{file.stem}-{case.name}.db", stack)
                labels = load_case(memory, case)
                _index(memory, embedder)
                other = cases[(number + 1) % len(cases)]
                for prompt in (*_asked(case, labels), *_strange(case, other)):
                    prompts.append((memory, prompt))
            yield file.stem, prompts


def _open(path: Path, stack: ExitStack) -> Memory:
    store = open_store(str(path))
    stack.callback(store.close)
    return Memory(store)


def _index(memory: Memory, embedder: Embedder | None) -> None:
    if embedder is None:
        return
    meaning = PatientMeaning(SharedEmbedder("local", lambda url: embedder))
    meaning.index(memory.store)
    meaning.close()


def _questions(content: dict[str, list[dict[str, list[dict[str, object]]]]]) -> Iterator[Prompt]:
    for group in content["questions"]:
        for question in group["list"]:
            yield _labelled(str(question["ask"]), question["needs"])


def _tasks() -> Iterator[Prompt]:
    for task in tomllib.loads(PROMPTS.read_text("utf-8"))["prompts"]:
        yield _labelled(task["type"], task.get("helps", []))


def _labelled(text: str, needs: object) -> Prompt:
    assert isinstance(needs, list)

    def is_evidence(passage: Passage) -> bool:
        return any(needed in f"{passage.entity}: {passage.text}" for needed in needs)

    return Prompt(text, is_evidence if needs else None)


def _asked(case: Case, labels: dict[tuple[str, int], str]) -> Iterator[Prompt]:
    for question in case.asked:
        answers = question.answers
        yield Prompt(question.text, lambda passage, a=answers: labels.get(passage.key) in a)  # type: ignore[misc]


def _strange(case: Case, other: Case) -> Iterator[Prompt]:
    """Yield questions of another conversation as if they were about this one's speakers."""
    own_names = list(dict.fromkeys(told.entity for told in case.told))
    other_names = list(dict.fromkeys(told.entity for told in other.told))
    for question in other.asked[::OTHER_QUESTIONS_STEP]:
        text = question.text
        for name, own_name in zip(other_names, own_names, strict=False):
            text = re.sub(rf"\b{re.escape(name)}\b", own_name, text)
        yield Prompt(text, None)


def _heading() -> str:
    heads = ["collection", "search", "prompts", "with evidence", "get a line", "of these useful"]
    heads += ["without evidence", "get a line", "lines", "useful lines", "tokens a prompt", ""]
    return f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"


def _row(name: str, way: str, outcomes: Sequence[Outcome]) -> str:
    answerable = [outcome for outcome in outcomes if outcome.has_evidence]
    strange = [outcome for outcome in outcomes if not outcome.has_evidence]
    prompted = [outcome for outcome in answerable if outcome.lines]
    lines = sum(outcome.lines for outcome in outcomes)
    useful = sum(outcome.useful for outcome in outcomes)
    false_alarms = sum(bool(outcome.lines) for outcome in strange)
    is_met = useful >= MIN_PRECISION * lines and false_alarms <= MAX_FALSE_ALARMS * len(strange)
    cells = [
        name,
        way,
        str(len(outcomes)),
        str(len(answerable)),
        _percent(len(prompted), len(answerable)),
        _percent(sum(bool(outcome.useful) for outcome in prompted), len(prompted)),
        str(len(strange)),
        _percent(false_alarms, len(strange)),
        str(lines),
        _percent(useful, lines),
        f"{sum(outcome.tokens for outcome in outcomes) / len(outcomes):.1f}",
        "met" if is_met else "missed",
    ]
    return f"| {' | '.join(cells)} |"


def _percent(count: int, total: int) -> str:
    return f"{100 * count / max(1, total):.0f} %"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.agents.prompts", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "conversations", type=Path, nargs="*", help="files in the form of LoCoMo, besides our own"
    )
    parser.add_argument("--show", action="store_true", help="print every line")
    parser.add_argument("--embedder", default="local", help="or none (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
