"""The benchmarks that matter before a release, in one table: `just bench-all`.

    python -m bench.whole [--sizes 1000,100000] [--quick] [--page docs/benchmarks.md]

Start, memory, reads and writes over stdio for `native` and `reference`, HTTP, and the cost of a
recall. The table replaces what is between the markers of the page, with the commit and the date.
"""

import argparse
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

from bench.__main__ import run as run_stdio
from bench.__main__ import sizes
from bench.client import Session, open_session
from bench.dataset import entity_name, token, write_dataset
from bench.errors import BenchError
from bench.figures import number
from bench.http import __main__ as http
from bench.http.contestants import ECHO
from bench.http.contestants import POLYMNIA as OVER_HTTP
from bench.machine import describe_machine
from bench.pipe import Launch
from bench.recall.scale import RandomEmbedder, ZipfText
from bench.report import ROOT, commit, machine_line, replace_between, table
from bench.rows import ROWS
from bench.servers import (
    FLOOR,
    NPM,
    POLYMNIA,
    POLYMNIA_VARIABLES,
    SQLITE,
    clean_environment,
    load_by_import,
)
from polymnia.embedders.base import Embedder
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.engine.semantic.indexer import index_store
from polymnia.engine.semantic.meaning import Meaning, SharedEmbedder
from polymnia.model import EntityDraft
from polymnia.stores import open_store

BEGIN, END = "<!-- bench-all -->", "<!-- end of bench-all -->"
STDIO_ROWS = (
    "start",
    "resident",
    "point_read",
    "search",
    "add_fact",
    "create_one",
    "create_hundred",
)


class Line(NamedTuple):
    """One figure beside that of a peer, if there is one."""

    what: str
    size: int
    value: float
    unit: str
    peer: str = ""
    peer_value: float = 0

    def cells(self) -> list[str]:
        cells = [self.what, f"{self.size:,}", f"{number(self.value)} {self.unit}"]
        if not self.peer:
            return [*cells, "", ""]
        beside = f"{self.peer}: {number(self.peer_value)}"
        return [*cells, beside, f"{self.value / self.peer_value:.2g}"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.whole", description=__doc__)
    parser.add_argument("--sizes", type=sizes, default=(1_000, 100_000), metavar="N,N")
    parser.add_argument("--quick", action="store_true", help="few samples: only to try the command")
    parser.add_argument("--cache", type=Path, default=Path(".bench-cache"))
    parser.add_argument("--peer", choices=(NPM, FLOOR), default=NPM, help="over stdio")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args(arguments)
    machine = describe_machine()
    cache = options.cache.resolve()
    cache.mkdir(exist_ok=True)
    try:
        lines = [*reference_lines(options, cache), *http_lines(options)]
        # On a disk: a temporary directory may be memory.
        with TemporaryDirectory(prefix="run-", dir=cache) as folder:
            for size in options.sizes:
                lines += native_lines(size, Path(folder), calls=5 if options.quick else 50)
                lines += recall_lines(size, Path(folder), questions=5 if options.quick else 50)
    except BenchError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    heads = ["what", "entities or passages", "Polymnia", "beside", "ratio"]
    head = f"Commit {commit()}, {machine.date[:10]}. {machine_line(machine)}"
    section = f"{head}\n\n{table(heads, [line.cells() for line in lines])}"
    print(section)
    return replace_between(options.page, BEGIN, END, section)


def reference_lines(options: argparse.Namespace, cache: Path) -> list[Line]:
    """Return the rows of `python -m bench` that matter, beside the server from npm."""
    figures = run_stdio(
        argparse.Namespace(
            servers=(SQLITE, options.peer),
            cache=cache,
            polymnia_command=POLYMNIA,
            sizes=options.sizes,
            quick=options.quick,
            million=False,
            seconds=2.0,
        )
    )
    lines = []
    for row in ROWS:
        for size in (0, *figures.sizes()):
            ours, peer = (figures.raw(row.key, server, size) for server in (SQLITE, options.peer))
            if row.key in STDIO_ROWS and ours is not None and peer is not None:
                what, unit = f"reference, stdio: {row.title}", row.unit
                beside = f"{options.peer} server"
                lines.append(Line(what, size, unit.show(ours), unit.label, beside, unit.show(peer)))
    return lines


def http_lines(options: argparse.Namespace) -> list[Line]:
    """Return point reads per second over HTTP, beside a bare Starlette echo."""
    given = ["--rounds", "1", "--seconds", "0.2"] if options.quick else []
    chosen = http.parse(given)
    with TemporaryDirectory() as home, http.contestants(chosen, Path(home)) as found:
        rates = http.measure(found, chosen)
    lines = []
    for connections in http.CONNECTIONS:
        ours, echo = (
            median(rate for rate, _, _ in rates[name, connections]) for name in (OVER_HTTP, ECHO)
        )
        what = f"reference, HTTP, {connections} connections: point reads"
        lines.append(Line(what, chosen.entities, ours, "a second", "a bare echo", echo))
    return lines


def native_lines(size: int, folder: Path, *, calls: int) -> list[Line]:
    """Return the median time of calls of the default dialect, without a model."""
    store = folder / f"native-{size}.db"
    load_by_import(POLYMNIA)(write_dataset(size, folder / f"{size}.jsonl").path, store)
    launch = Launch(
        "polymnia",
        [*POLYMNIA, "serve", "--store", str(store)],
        {**clean_environment(), **POLYMNIA_VARIABLES},
        folder / "native.log",
    )
    random = Random(size)

    def pick() -> int:
        return random.randrange(size)

    def remember(number: int) -> dict[str, object]:
        return {"entities": [{"name": f"new {number}", "type": "thing", "facts": ["is new"]}]}

    tools: dict[str, tuple[str, Callable[[int], dict[str, object]]]] = {
        "recall, a rare word": ("recall", lambda _: {"query": f"who has {token(pick())}"}),
        "recall, by type": ("recall", lambda _: {"types": ["person"]}),
        "open": ("open", lambda _: {"names": [entity_name(pick())]}),
        "explore": ("explore", lambda _: {"name": entity_name(pick())}),
        "remember": ("remember", remember),
        "history of one entity": ("history", lambda _: {"name": entity_name(pick())}),
        "history": ("history", lambda _: {}),
        "briefing": ("briefing", lambda _: {}),
        "review": ("review", lambda _: {}),
    }
    lines = []
    with closing(open_session(launch)) as session:
        for title, (tool, arguments) in tools.items():
            repeated = 3 if tool == "review" else calls
            spent = [seconds_of(session, tool, arguments(number)) for number in range(repeated)]
            lines.append(Line(f"native, stdio: {title}", size, median(spent) * 1e3, "ms"))
    return lines


def seconds_of(session: Session, tool: str, arguments: dict[str, object]) -> float:
    return session.call(tool, arguments).seconds


def recall_lines(size: int, folder: Path, *, questions: int) -> list[Line]:
    """Return the processor time of a recall by words and vectors, beside a bare FTS5 query and a
    bare product of vectors over the same passages.
    """
    import numpy as np

    text, embedder = ZipfText(), RandomEmbedder()
    passages = [text.make() for _ in range(size)]
    store = open_store(str(folder / f"recall-{size}.db"))
    for start in range(0, size, 1000):
        drafts = [
            EntityDraft(f"Entity {number}", "thing", tuple(passages[number : number + 10]))
            for number in range(start, min(start + 1000, size), 10)
        ]
        entities.create(Memory(store), drafts, by="bench")

    def shared() -> SharedEmbedder:
        return SharedEmbedder("local", opened)

    def opened(_: str) -> Embedder:
        return embedder

    index_store(store, shared())
    meaning = Meaning(shared())
    memory = Memory(store, meaning)
    bare = sqlite3.connect(":memory:")
    bare.execute("CREATE VIRTUAL TABLE passages USING fts5(text)")
    bare.executemany("INSERT INTO passages VALUES (?)", [(passage,) for passage in passages])
    matrix = np.asarray(embedder.embed(passages), np.float32)

    asked = [f"{text.make(3)} {number}" for number in range(questions)]
    recalls, floors = [], []
    recall(memory, asked[0], timeout=600)  # reads the vectors
    for question in asked:
        began = process_time()
        recall(memory, question, timeout=600)
        recalls.append(process_time() - began)
        vector = embedder.embed([question])[0]
        began = process_time()
        words = " OR ".join(f'"{word}"' for word in question.split())
        by_rank = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT 10"
        bare.execute(by_rank, (words,)).fetchall()
        np.argpartition(matrix @ vector, -min(10, size))
        floors.append(process_time() - began)
    meaning.close()
    store.close()
    ours, floor = median(recalls) * 1e3, median(floors) * 1e3
    return [Line("recall, words and vectors", size, ours, "ms of CPU", "FTS5 and a product", floor)]


if __name__ == "__main__":
    sys.exit(main())
