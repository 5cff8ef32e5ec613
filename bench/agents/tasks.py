"""The command `python -m bench.agents.tasks`: what an agent gets for its calls, session by session.

It replays the sessions in memory.toml with the tools of the native dialect, then asks the questions
with one `recall` each and judges the text of the reply: is the needed fact in it, in how many
tokens, does an outdated fact stand there as if it were true, and does a reply about something that
nobody stored say so.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from bench.recall.cache import open_cached
from bench.recall.mcp import Conversation, PatientMeaning
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.meaning import SharedEmbedder
from polymnia.errors import PolymniaError
from polymnia.stores import open_store

MEMORY = Path(__file__).with_name("memory.toml")
NOT_STORED = "not stored"
# What a reply says when nothing answers the question.
_REFUSAL = re.compile(r"^no fact has|^nothing|^no hits", re.I | re.M)
# What a line says of a fact that is no longer true.
_OUTDATED = re.compile(r"\bwas: |replaced|older than|superseded|newer|disagrees|until ", re.I)
# A line of a receipt about a fact that a new one resembles or contradicts.
_HINT = re.compile(r"^! .* may contradict .*", re.M)


class Question(Struct, frozen=True):
    """A question, the texts that its answer needs, and texts that are no longer true."""

    ask: str
    needs: list[str]
    stale: list[str] = []
    kind: str = ""


class Verdict(Struct, frozen=True):
    """What one reply was worth."""

    shown: float  # the share of the needed texts
    tokens: int
    is_misleading: bool
    is_refusal: bool
    first_rank: int  # of a hit with a needed text; 0 for none


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the sessions, ask, and print a table; 1 when the embedder cannot be loaded."""
    options = _parser().parse_args(arguments)
    content = tomllib.loads(options.memory.read_text("utf-8"))
    try:
        embedder = open_cached(options.embedder)
    except PolymniaError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    with TemporaryDirectory() as folder, closing(open_store(f"{folder}/memory.db")) as store:
        memory = Memory(store)
        calls, failures = replay(Conversation(memory), content["session"])
        print(f"{calls} calls in {len(content['session'])} sessions, {len(failures)} failed")
        for failure in failures:
            print(f"  {failure}")
        if embedder is not None:
            url = getattr(embedder, "url", "local")  # other models are calibrated
            meaning = PatientMeaning(SharedEmbedder(url, lambda url: embedder))
            meaning.index(store)
            memory = Memory(store, meaning)
        print(count_hints(content, show=options.show))
        for budget in options.max_tokens:
            print(f"\n{_title(budget)}\n\n{_table(ask_all(memory, content, budget, options.show))}")
        if memory.meaning is not None:
            memory.meaning.close()
    return 0


def replay(client: Conversation, sessions: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Make the calls of all sessions.

    Return how many there were and the errors of those that failed.
    """
    failures = []
    calls = 0
    for session in sessions:
        for tool, arguments in session_calls(session):
            calls += 1
            error = client.try_call(tool, arguments)
            if error:
                failures.append(f"{tool}: {error}")
    return calls, failures


def count_hints(content: dict[str, Any], *, show: bool = False) -> str:
    """Return how many changes the receipts notice if nobody names the older fact.

    Each `replace` is remembered as a fact of its own. A receipt that quotes the older fact has
    noticed the change. A hint on a fact that the sessions overtake without a `replace` (`changed`
    lists them, and questions name them as stale) is right too; any other hint is false.
    """
    sessions = content["session"]
    overtaken = list(content.get("changed", []))
    for group in content["questions"]:
        for question in group["list"]:
            overtaken += question.get("stale", [])
    noticed = changes = right = false = facts = 0
    with TemporaryDirectory() as folder, closing(open_store(f"{folder}/memory.db")) as store:
        client = Conversation(Memory(store))
        for session in sessions:
            when = session["date"].isoformat()
            facts += len(session["facts"])
            for tool, arguments in session_calls({**session, "replace": [], "forget": []}):
                reply = client.call(tool, arguments)["content"][0]["text"]
                for hint in _HINT.findall(reply):
                    if any(text[:60] in hint for text in overtaken):
                        right += 1
                        continue
                    false += 1
                    if show:
                        print(f"  false: {hint}")
            for name, old, new in session.get("replace", []):
                changes += 1
                entity = {"name": name, "facts": [new], "when": when}
                reply = client.call("remember", {"entities": [entity]})["content"][0]["text"]
                hints = _HINT.findall(reply)
                is_noticed = any(old[:60] in hint for hint in hints)
                noticed += is_noticed
                false += len(hints) - is_noticed
                if show and not is_noticed:
                    print(f"  missed: {name}: {old} -> {new}")
                client.try_call("forget", {"name": name, "facts": [old]})
    total = max(1, noticed + right + false)
    return (
        f"{noticed} of {changes} changes noticed; {false} of {total} hints are false, "
        f"on {facts} facts"
    )


def session_calls(session: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls of one session: an entity at a time, as agents work."""
    when = session["date"].isoformat()
    entities: dict[str, dict[str, Any]] = {}
    for name, kind, text in session["facts"]:
        entity = entities.setdefault(name, {"name": name, "type": kind, "facts": [], "when": when})
        entity["facts"].append(text)
    for entity in entities.values():
        yield "remember", {"entities": [entity]}
    relations = [
        {"from": source, "type": kind, "to": target}
        for source, kind, target in session.get("relations", [])
    ]
    if relations:
        yield "remember", {"relations": relations}
    for name, old, new in session.get("replace", []):
        yield "revise", {"name": name, "facts": [{"old": old, "new": new}]}
    for name, text in session.get("forget", []):
        yield "forget", {"name": name, "facts": [text]}


def ask_all(
    memory: Memory, content: dict[str, Any], budget: int | None, show: bool
) -> dict[str, list[Verdict]]:
    """Ask every question and return the verdicts by kind."""
    client = Conversation(memory)
    verdicts: dict[str, list[Verdict]] = {}
    for group in content["questions"]:
        for listed in group["list"]:
            question = Question(kind=group["kind"], **listed)
            arguments: dict[str, Any] = {"query": question.ask}
            if budget is not None:
                arguments["max_tokens"] = budget
            text = client.call("recall", arguments)["content"][0]["text"]
            verdict = judge(question, text, _ranked_texts(memory, question.ask))
            verdicts.setdefault(question.kind, []).append(verdict)
            if show:
                print(f"\n? {question.ask} [{question.kind}] {verdict}\n{text}")
    return verdicts


def judge(question: Question, text: str, ranked: Sequence[str]) -> Verdict:
    """Return what a reply is worth; `ranked` are the texts of the hits, best first."""
    present = [needed for needed in question.needs if needed in text]
    shown = len(present) / len(question.needs) if question.needs else 0.0
    first_rank = 0
    for rank, hit in enumerate(ranked, 1):
        if any(needed in hit for needed in question.needs):
            first_rank = rank
            break
    misleading = [
        line
        for line in text.splitlines()
        for stale in question.stale
        if stale in line and not _OUTDATED.search(line)
    ]
    return Verdict(shown, len(text) // 4, bool(misleading), bool(_REFUSAL.search(text)), first_rank)


def _ranked_texts(memory: Memory, question: str) -> list[str]:
    hits = recall(memory, question, limit=10, timeout=60.0).hits
    return [f"{hit.passage.entity}: {hit.passage.text}" for hit in hits]


def _title(budget: int | None) -> str:
    return "Default budget" if budget is None else f"At most {budget} tokens"


def _table(verdicts: dict[str, list[Verdict]]) -> str:
    heads = ["kind", "questions", "needed facts shown", "whole answer shown", "R@1", "R@3"]
    heads += ["misleading", "says not stored", "tokens"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    answerable = []
    for kind, listed in verdicts.items():
        lines.append(_line(kind, listed))
        if kind != NOT_STORED:
            answerable += listed
    lines.append(_line("all with an answer", answerable))
    return "\n".join(lines)


def _line(kind: str, verdicts: list[Verdict]) -> str:
    cells = [kind, str(len(verdicts))]
    if kind == NOT_STORED:
        cells += [""] * 4
    else:
        cells += [
            _percent([verdict.shown for verdict in verdicts]),
            _percent([float(verdict.shown == 1) for verdict in verdicts]),
            _percent([float(verdict.first_rank == 1) for verdict in verdicts]),
            _percent([float(1 <= verdict.first_rank <= 3) for verdict in verdicts]),
        ]
    cells += [
        str(sum(verdict.is_misleading for verdict in verdicts)),
        _percent([float(verdict.is_refusal) for verdict in verdicts]),
        f"{sum(verdict.tokens for verdict in verdicts) / len(verdicts):.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _percent(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f} %"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.agents.tasks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--memory", type=Path, default=MEMORY, help="another script (default: memory.toml)"
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        nargs="+",
        default=[None],
        metavar="N",
        help="budgets of the replies (default: that of the tool)",
    )
    parser.add_argument("--show", action="store_true", help="print every reply")
    parser.add_argument(
        "--embedder",
        default="local",
        help="as in `polymnia serve --embedder` (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
