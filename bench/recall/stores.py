"""`python -m bench.recall.stores PATH`: whether PostgreSQL ranks as SQLite does, question by
question.

Without --postgres, a server is started for the run (tests/postgres.py).
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.recall.asking import load_case
from bench.recall.questions import Case
from bench.recall.sets import load_cases
from polymnia.embedders.base import Embedder
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import PassageKind
from polymnia.search.fulltext import TextQuery, plain_words
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from tests.postgres import new_database, running_server

DEPTH = 20
# A busy machine must not turn a question by meaning into one by words.
_TIMEOUT_S = 60.0
KINDS: tuple[PassageKind, ...] = ("fact",)


class Comparison(Struct):
    """How many queries were compared, and those that gave another ranking or other scores."""

    queries: int = 0
    ranked_otherwise: int = 0
    scored_otherwise: int = 0
    largest_difference: float = 0.0

    def add(self, expected: list[tuple[object, float]], found: list[tuple[object, float]]) -> None:
        """Compare two rankings of things with scores."""
        self.queries += 1
        self.ranked_otherwise += [thing for thing, _ in expected] != [thing for thing, _ in found]
        pairs = zip([score for _, score in expected], [score for _, score in found], strict=False)
        difference = max(
            [abs(one - other) / max(abs(one), 1e-9) for one, other in pairs], default=0.0
        )
        self.scored_otherwise += difference > 1e-9
        self.largest_difference = max(self.largest_difference, difference)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many rankings are equal; 1 if one is not."""
    options = _parser().parse_args(arguments)
    cases = load_cases(options.path)
    words, recalled = Comparison(), Comparison()
    with ExitStack() as stack:
        server = options.postgres or stack.enter_context(running_server()).url
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for number, case in enumerate(cases):
            with new_database(server) as database:
                compare(case, str(folder / f"{number}.db"), database, words, recalled)
    for name, each in (("BM25, all and any words", words), ("recall, words alone", recalled)):
        same = each.queries - each.ranked_otherwise
        print(
            f"{name}: {same} of {each.queries} rankings equal, "
            f"{each.scored_otherwise} with other scores "
            f"(largest relative difference {each.largest_difference:.1e})"
        )
    return int(bool(words.ranked_otherwise or recalled.ranked_otherwise))


def compare(
    case: Case,
    sqlite: str,
    postgres: str,
    words: Comparison,
    recalled: Comparison,
    embedder: Embedder | None = None,
) -> None:
    """Load a case into both stores and ask its questions of both; with an embedder, by meaning."""
    with ExitStack() as stack:
        memories = []
        for url in (sqlite, postgres):
            store = stack.enter_context(closing(open_store(url)))
            load_case(Memory(store), case)
            meaning = None
            if embedder is not None:
                meaning = Meaning(SharedEmbedder("local", lambda url: embedder))
                stack.callback(meaning.close)
                meaning.index(store)
            memories.append(Memory(store, meaning))
        one, other = memories
        for asked in case.asked:
            for query in _queries(asked.text):
                words.add(_match(one.store, query), _match(other.store, query))
            recalled.add(_recall(one, asked.text), _recall(other, asked.text))


def _queries(text: str) -> Iterator[TextQuery]:
    words = tuple(plain_words(text))
    yield TextQuery(words)
    yield TextQuery(words, every=False)


def _match(store: Store, query: TextQuery) -> list[tuple[object, float]]:
    with store.reading() as read:
        return [(item.id, item.score) for item in read.match(query, KINDS, DEPTH)]


def _recall(memory: Memory, text: str) -> list[tuple[object, float]]:
    hits = recall(memory, text, limit=DEPTH, timeout=_TIMEOUT_S).hits
    return [(hit.passage.key, hit.score) for hit in hits]


def _parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(
        prog="python -m bench.recall.stores",
        description="Compare the rankings of SQLite and PostgreSQL.",
    )
    new.add_argument(
        "path",
        type=Path,
        help="a LoCoMo-format .json file, or the directory of a SMART collection (Cranfield, CISI)",
    )
    new.add_argument(
        "--postgres", metavar="URL", help="a superuser's URL of a server with pgvector"
    )
    return new


if __name__ == "__main__":
    raise SystemExit(main())
