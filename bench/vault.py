"""`python -m bench.vault`: what searching notes by words and by meaning costs, over stdio, beside
words alone.

Notes have texts of words of known rarity and random vectors. The two kinds of search take turns, so
that a busy machine slows both alike; the figures are medians, and the budget is their ratio.
"""

import argparse
import random
import sys
from array import array
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, time_ns

from bench.client import Session, open_session
from bench.pipe import Launch
from bench.servers import POLYMNIA, POLYMNIA_VARIABLES, clean_environment
from polymnia.model import Change, Note, Rows
from polymnia.stores.sqlite.store import SqliteStore

NOTES = 100_000
DIMENSION = 384
BUDGET = 3.0
# Words that one note in so many has.
RARITIES = (2, 5, 10, 20, 50, 100, 1000)
_BATCH = 1000
_WORDS = 12
_WITHOUT_NUMPY = (
    sys.executable,
    "-c",
    "import sys; sys.modules['numpy'] = None; from polymnia.cli.main import main; sys.exit(main())",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a store, ask a server, print the table."""
    options = _parser().parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="vault-", dir=options.cache) as home:
        path = Path(home) / "memory.db"
        fill(path, options.notes, options.dimension)
        session = open_session(
            _launch(path, options.dimension, without_numpy=options.without_numpy)
        )
        try:
            report(session, options)
        finally:
            session.close()
    return 0


def fill(path: Path, count: int, dimension: int) -> None:
    """Write `count` notes with a vector each into the store."""
    store = SqliteStore(str(path))
    notes = _notes(count, dimension)
    while batch := tuple(islice(notes, _BATCH)):
        with store.writing() as writer:
            writer.apply(Change("fill", "bench", time_ns() // 1000, after=Rows(notes=batch)))
    store.compact()
    store.close()


def report(session: Session, options: argparse.Namespace) -> None:
    """Print how long each kind of search takes, query by query."""
    vector = list(_vector(random.Random(7), options.dimension))
    began = perf_counter()
    _search(session, "zzz", vector)
    with_numpy = (
        "without numpy" if options.without_numpy or not find_spec("numpy") else "with numpy"
    )
    print(
        f"{options.notes} notes, {options.dimension} numbers a vector, {with_numpy}; "
        "medians in milliseconds"
    )
    print(f"first search by meaning: {(perf_counter() - began) * 1000:.0f} ms")
    print(f"{'one note in':>12} {'words':>8} {'both':>8} {'ratio':>6}  (budget: {BUDGET:g})")
    for rarity in RARITIES:
        words, both = _turns(session, f"rare{rarity}", vector, options.rounds)
        verdict = "" if both <= BUDGET * words else "  over"
        print(
            f"{rarity:>12} {words * 1000:>8.2f} {both * 1000:>8.2f} {both / words:>6.2f}{verdict}"
        )
    print(f"resident memory: {session.resident_bytes() / 1e6:.0f} MB")


def _turns(session: Session, query: str, vector: list[float], rounds: int) -> tuple[float, float]:
    words, both = [], []
    for _ in range(rounds):
        words.append(_search(session, query, None))
        both.append(_search(session, query, vector))
    return median(words), median(both)


def _search(session: Session, query: str, vector: list[float] | None) -> float:
    arguments: dict[str, object] = {"query": query, "scope": "vault"}
    if vector is not None:
        arguments["query_embedding"] = vector
    return session.call("search_memories", arguments).seconds


def _notes(count: int, dimension: int) -> Iterator[Note]:
    chance = random.Random(11)
    for number in range(count):
        words = [f"word{chance.randrange(20_000)}" for _ in range(_WORDS)]
        words += [f"rare{rarity}" for rarity in RARITIES if chance.randrange(rarity) == 0]
        at = time_ns() // 1000
        vector = _vector(chance, dimension).tobytes()
        yield Note(
            f"note_{number}",
            " ".join(words),
            ("bench",),
            embedding=vector,
            created_at=at,
            updated_at=at,
        )


def _vector(chance: random.Random, dimension: int) -> "array[float]":
    """Return random numbers between -1 and 1."""
    return array("f", [byte / 127.5 - 1 for byte in chance.randbytes(dimension)])


def _launch(path: Path, dimension: int, *, without_numpy: bool) -> Launch:
    command = _WITHOUT_NUMPY if without_numpy else POLYMNIA
    settings = {
        **clean_environment(),
        **POLYMNIA_VARIABLES,
        "POLYMNIA_EMBEDDING_DIMENSION": str(dimension),
    }
    serve = (*command, "serve", "--dialect", "vault", "--store", str(path))
    return Launch("polymnia", serve, settings, path.with_name("stderr"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.vault", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--notes", type=int, default=NOTES, help="how many (default: %(default)s)")
    parser.add_argument(
        "--dimension", type=int, default=DIMENSION, help="numbers a vector (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=15, help="searches of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--without-numpy", action="store_true", help="as in an install that does not have it"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(".bench-cache"), help="where the store goes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
