"""The report: figures and verdicts as tables to read, or as JSON to keep."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.budgets import EMPTY, Verdict
from bench.figures import Figures, number, ratio
from bench.machine import Machine
from bench.rows import PROBE, ROWS, Probe, Row
from bench.servers import FLOOR, NPM, OURS, REFERENCE_VERSION, SERVER_NAMES

ROOT = Path(__file__).parent.parent
PROBES = tuple(row.probe for row in ROWS if row.probe is not None)

Cells = Sequence[str]
Entry = dict[str, object]


def tables(machine: Machine, figures: Figures, verdicts: Sequence[Verdict]) -> str:
    """Return the whole report: the machine, a table per size, then the budgets."""
    sizes = (EMPTY, *figures.sizes())
    sections = [size_section(figures, size) for size in sizes]
    return "\n\n".join([machine_line(machine), *sections, budget_section(verdicts)])


def machine_line(machine: Machine) -> str:
    """Describe the machine in a sentence. A load near the number of cores spoils the figures."""
    python, cores, load = machine.python, machine.cores, machine.load_before
    return f"Medians, on Python {python} and {cores} cores; load before the run: {load}."


def commit() -> str:
    """Return the commit of this checkout; it ends with "-dirty" if files differ from it."""
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.check_output(describe, text=True).strip()


def replace_between(page: Path, begin: str, end: str, section: str) -> int:
    """Replace what a page has between two marks. Return 1, with a message, if it lacks them."""
    before, found_begin, rest = page.read_text("utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        print(f"error: {page} lacks {begin} or {end}", file=sys.stderr)
        return 1
    page.write_text(f"{before}{begin}\n\n{section}\n\n{end}{after}", "utf-8")
    return 0


def size_section(figures: Figures, size: int) -> str:
    """Return the table of one size and the figures of its probes."""
    title = "Empty store" if size == EMPTY else f"{size:,} entities"
    servers = [name for name in SERVER_NAMES if name in figures.servers()]
    pairs = [(mine, peer) for peer in (NPM, FLOOR) for mine in OURS]
    pairs = [pair for pair in pairs if set(pair) <= set(servers)]
    heads = ["row", "unit", *servers, *(f"{mine}/{peer}" for mine, peer in pairs)]
    lines = [
        [row.title, row.unit.label]
        + [cell(shown(figures, row, name, size)) for name in servers]
        + [cell(times(figures, row, *pair, size)) for pair in pairs]
        for row in ROWS
        if any(shown(figures, row, name, size) is not None for name in servers)
    ]
    return "\n".join([f"## {title}\n", table(heads, lines), *notes(figures, size)])


def notes(figures: Figures, size: int) -> Iterator[str]:
    """Yield a sentence for each probe of this size."""
    for probe in PROBES:
        value = shown(figures, probe, PROBE, size)
        if value is not None:
            yield f"\nBeside these, {probe.title}: {cell(value)} {probe.unit.label}."


def budget_section(verdicts: Sequence[Verdict]) -> str:
    """Return the table of budgets."""
    words = {True: "yes", False: "NO", None: "-"}
    lines = [[v.what, v.budget, v.measured, words[v.met]] for v in verdicts]
    return "## Budgets\n\n" + table(["what", "budget", "measured", "met"], lines)


def as_json(machine: Machine, figures: Figures, verdicts: Sequence[Verdict]) -> bytes:
    """Return all numbers, the verdicts and the machine as JSON."""
    document = {
        "machine": machine,
        "npm_reference": REFERENCE_VERSION,
        "figures": list(entries(figures)),
        "budgets": verdicts,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def entries(figures: Figures) -> Iterator[Entry]:
    """Yield every figure in its row's unit, with the spread of its samples."""
    kinds: dict[str, Row | Probe] = {row.key: row for row in ROWS}
    kinds |= {probe.key: probe for probe in PROBES}
    for key, samples in sorted(figures.samples.items()):
        unit = kinds[key.row].unit
        values = sorted(unit.show(sample) for sample in samples)
        yield {
            "row": key.row,
            "server": key.server,
            "size": key.size,
            "unit": unit.label,
            "median": shown(figures, kinds[key.row], key.server, key.size),
            "least": values[0],
            "lower_quartile": values[len(values) // 4],
            "greatest": values[-1],
            "repetitions": len(values),
        }


def shown(figures: Figures, kind: Row | Probe, server: str, size: int) -> float | None:
    """Return the median in the unit of its row; None if it was not measured."""
    value = figures.raw(kind.key, server, size)
    return None if value is None else kind.unit.show(value)


def times(figures: Figures, row: Row, mine: str, peer: str, size: int) -> float | None:
    """Return the figure of one server as a multiple of another's."""
    left = shown(figures, row, mine, size)
    return ratio(left, shown(figures, row, peer, size))


def cell(value: float | None) -> str:
    """Return the text of a value; empty if it was not measured."""
    return "" if value is None else number(value)


def table(heads: Cells, lines: Sequence[Cells]) -> str:
    """Return a Markdown table whose columns also line up as plain text."""
    columns = zip(heads, *lines, strict=True)
    widths = [max(len(text) for text in column) for column in columns]
    rule = ["-" * width for width in widths]
    return "\n".join(table_line(cells, widths) for cells in (heads, rule, *lines))


def table_line(cells: Cells, widths: Sequence[int]) -> str:
    """Return one line of a table."""
    padded = (text.ljust(width) for text, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
