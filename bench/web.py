"""What the pages of the web interface cost in a large memory: `python -m bench.web`."""

import argparse
import gzip
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from urllib.parse import urlencode

from bench.budgets import Verdict, at_most
from bench.dataset import entity_name, token, write_dataset
from bench.http.contestants import await_port, free_port, running
from bench.machine import describe_machine
from polymnia.cli.main import main as polymnia

# No page shows more rows than this.
_MAX_ROWS = 50
# What a page shows as a row: something the keys j and k move over, or a row of a table.
_ROW = re.compile(rb"<[^>]*\sdata-row[\s>]")
_TABLE_ROW, _TABLE_HEAD = re.compile(rb"<tr[\s>]"), re.compile(rb"<thead[\s>]")
_FORM_TOKEN = re.compile(rb'"X-Form-Token": "(\w+)"')
# When the graph is on the screen, and the times of the first paint and of now.
_IS_DRAWN = "() => document.querySelector('#graph-status')?.textContent.includes('on screen')"
_PAINT_TIMES = """() => [
    performance.getEntriesByName("first-contentful-paint")[0].startTime, performance.now()
]"""
_HOME, _SEARCH, _GRAPH, _CURATION = "home", "search", "graph, JSON", "curation"


@dataclass(frozen=True, slots=True)
class Figure:
    """Milliseconds of the first request and in the middle of the others, and what the response is
    like.

    `cpu` is the server's CPU time for one request in milliseconds, without the first; `size` and
    `packed` are the bytes of the response and of what is sent.
    """

    first: float
    usual: float
    cpu: float
    size: int
    packed: int
    rows: int


class Client:
    """A browser without a window: one connection, no login, because the server has no tokens."""

    def __init__(self, port: int) -> None:
        self.packed = 0
        self._connection = HTTPConnection("127.0.0.1", port, timeout=300)
        found = _FORM_TOKEN.search(self.send("/ui/more"))
        assert found
        self._form_token = found[1].decode()
        self._origin = f"http://127.0.0.1:{port}"

    def send(self, path: str, form: dict[str, str] | None = None) -> bytes:
        """Return the body of a page, or of the answer to a form."""
        encoding = {"Accept-Encoding": "gzip"}
        if form is None:
            self._connection.request("GET", path, headers=encoding)
        else:
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self._origin}
            headers |= encoding
            body = urlencode({"form_token": self._form_token, **form})
            self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        body_bytes = response.read()
        self.packed = len(body_bytes)
        if response.getheader("Content-Encoding") == "gzip":
            body_bytes = gzip.decompress(body_bytes)
        assert response.status == 200, (path, response.status, body_bytes[:300])
        return body_bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.web", description=__doc__)
    parser.add_argument(
        "--entities", type=int, default=100_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--requests", type=int, default=20, metavar="N", help="for each page (default: %(default)s)"
    )
    parser.add_argument(
        "--browser", action="store_true", help="also open the graph in Chromium and time it"
    )
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print(
        f"{machine.cores} cores, load {machine.load_before} before the run, Python {machine.python}"
    )
    with TemporaryDirectory() as folder:
        figures = _measure(Path(folder), options.entities, options.requests, options.browser)
    for name, each in figures.items():
        times = f"{each.usual:.1f} ms, first {each.first:.0f} ms, CPU {each.cpu:.0f} ms"
        sizes = f"{each.size / 1024:.1f} KB, compressed {each.packed / 1024:.1f} KB"
        print(f"{name}: {times}, {sizes}, {each.rows} rows")
    for verdict in _judge(figures):
        print(
            f"{verdict.what}: {verdict.measured}, budget {verdict.budget}: "
            f"{'met' if verdict.met else 'missed'}"
        )
    return 0


def _judge(figures: dict[str, Figure]) -> Iterator[Verdict]:
    yield at_most("home, server time", figures[_HOME].usual, 300, " ms")
    yield at_most("search, server time", figures[_SEARCH].usual, 100, " ms")
    yield at_most("graph", figures[_GRAPH].size / 1024, 100, " KB")
    yield at_most(
        "server CPU of a page", max(figure.cpu for figure in figures.values()), 150, " ms"
    )
    largest = max(figure.packed for figure in figures.values())
    yield at_most("compressed page", largest / 1024, 60, " KB")
    yield at_most("curation from the cache", figures[_CURATION].usual, 50, " ms")
    yield at_most("rows of a page", max(figure.rows for figure in figures.values()), _MAX_ROWS, "")


def _measure(folder: Path, entities: int, requests: int, with_browser: bool) -> dict[str, Figure]:
    """Fill a store, serve it and ask for every page."""
    store, port = folder / "memory.db", free_port()
    dataset = write_dataset(entities, folder / "memory.jsonl")
    assert polymnia(["import", str(dataset.path), "--store", str(store)]) == 0
    command = [
        sys.executable,
        "-m",
        "polymnia",
        "serve",
        "--store",
        str(store),
        "--transport",
        "http",
    ]
    log = folder / "log"
    with running([*command, "--port", str(port), "--embedder", "none"], log) as process:
        await_port(port, process, log)
        client = Client(port)
        _await_findings(client)
        figures = {}
        for name, asked in _pages(entities, requests):
            figures[name] = _time(client, list(asked), requests, process.pid)
        if with_browser:
            _open_graph(port)
        return figures


def _open_graph(port: int) -> None:
    """Print how long Chromium takes to paint the page of the graph and to draw it."""
    from tests.web.browser import chromium

    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "chromium is not on the PATH"
    with chromium(program) as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/ui/more")  # scripts and styles of every page are kept
        for _ in range(3):
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            page.goto(f"http://127.0.0.1:{port}/ui/graph")
            page.wait_for_function(_IS_DRAWN)
            painted, drawn = page.evaluate(_PAINT_TIMES)
            metrics = session.send("Performance.getMetrics")["metrics"]
            tasks = {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]
            print(
                f"graph in Chromium: first paint {painted:.0f} ms, drawn {drawn:.0f} ms, "
                f"{1000 * tasks:.0f} ms of work on the page's thread"
            )


def _await_findings(client: Client) -> None:
    """Let the server compute findings, which it does in the background."""
    while b"Look again" in client.send("/ui/curation"):
        sleep(0.5)


def _cpu_ms(process: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def _pages(
    entities: int, requests: int
) -> Iterator[tuple[str, Iterator[tuple[str, dict[str, str] | None]]]]:
    """Yield the name of each page and the requests for it: paths, and forms if they are sent."""
    numbers = [place * 7919 % entities for place in range(requests)]

    def pages(path: str, **fields: str) -> Iterator[tuple[str, dict[str, str] | None]]:
        for number in numbers:
            filled = {
                key: value.format(name=entity_name(number), word=token(number))
                for key, value in fields.items()
            }
            yield path + ("?" + urlencode(filled) if filled else ""), None

    yield _HOME, pages("/ui/")
    yield _SEARCH, pages("/ui/", q="{word}")
    yield "search, a common word", pages("/ui/", q="entity")
    yield "search, a name being typed", pages("/ui/", q="enti")
    yield "why a hit is here", pages("/ui/why", q="{word}", wanted="{name}")
    yield "entity", pages("/ui/entity", name="{name}")
    yield "history", pages("/ui/history")
    yield "graph page", pages("/ui/graph")
    yield _GRAPH, (("/ui/graph/data", {}) for _ in numbers)
    yield "graph around an entity", pages("/ui/graph", name="{name}")
    yield "entity at a moment", pages("/ui/entity", name="{name}", at="2100-01-01")
    yield _CURATION, pages("/ui/curation")
    yield "table of entities", pages("/ui/entities")
    yield "facts by the time they were said", pages("/ui/entities", sort="said")
    yield "add", pages("/ui/new")
    yield "import and export", pages("/ui/import")
    yield "access", pages("/ui/access")
    yield "health", pages("/ui/health")


def _time(
    client: Client, asked: list[tuple[str, dict[str, str] | None]], requests: int, process: int
) -> Figure:
    taken, body = [], b""
    before = 0.0
    for path, form in asked[:requests]:
        began = perf_counter()
        body = client.send(path, form)
        taken.append(1000 * (perf_counter() - began))
        before = before or _cpu_ms(process)  # the first request fills caches
    usual = median(taken[1:] or taken)
    cpu = (_cpu_ms(process) - before) / max(1, len(taken) - 1)
    in_tables = len(_TABLE_ROW.findall(body)) - len(_TABLE_HEAD.findall(body))
    rows = max(len(_ROW.findall(body)), in_tables)
    return Figure(taken[0], usual, cpu, len(body), client.packed, rows)


if __name__ == "__main__":
    sys.exit(main())
