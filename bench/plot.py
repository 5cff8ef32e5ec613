"""Draw a bar chart of a run as SVG: `python -m bench.plot numbers.json docs/benchmarks`.

A bar is the time of a call relative to the npm reference server in the same run, on a logarithmic
scale.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from msgspec import json

# The rows to show: the row's key and its label.
ROWS = {
    "start": "start to initialize",
    "point_read": "point read",
    "search": "one-hit search",
    "create_one": "create one entity",
    "add_observation": "add an observation",
    "create_relation": "create a relation",
}
SERVERS = {
    "sqlite": ("Polymnia on SQLite", "#3f51b5"),
    "jsonl": ("Polymnia on the same file", "#9fa8da"),
}
PEER = "npm"
_LEFT, _WIDTH, _BAR, _GAP, _TOP = 170, 640, 14, 12, 44
_LOWEST = 1e-3  # what is faster than a thousandth of the peer is drawn so


def chart(medians: Mapping[tuple[str, str], float], size: int) -> str:
    """Return the chart of one size of memory, given the median of each row and server."""
    shown = [row for row in ROWS if (row, PEER) in medians]
    height = _TOP + len(shown) * (len(SERVERS) * _BAR + _GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#777">',
        '<text x="0" y="14">Time relative to the npm reference server, '
        f"{size:,} entities (less is better)</text>",
        *_legend(),
        *_grid(height),
    ]
    for place, row in enumerate(shown):
        y = _TOP + place * (len(SERVERS) * _BAR + _GAP)
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + _BAR + 4}" text-anchor="end">{escape(ROWS[row])}</text>'
        )
        parts += _bars(medians, row, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(medians: Mapping[tuple[str, str], float], row: str, y: int) -> list[str]:
    bars = []
    for number, (server, (_, color)) in enumerate(SERVERS.items()):
        if (row, server) not in medians:
            continue
        ratio = medians[row, server] / medians[row, PEER]
        width, top = _x(ratio) - _LEFT, y + number * _BAR
        bars.append(
            f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR - 2}" fill="{color}"/>'
        )
        bars.append(
            f'<text x="{_LEFT + width + 5:.1f}" y="{top + 10}" font-size="10">{ratio:.3g}x</text>'
        )
    return bars


def _legend() -> list[str]:
    found = []
    for number, (label, color) in enumerate(SERVERS.values()):
        x = _LEFT + 200 * number
        found.append(f'<rect x="{x}" y="22" width="12" height="12" fill="{color}"/>')
        found.append(f'<text x="{x + 17}" y="32">{escape(label)}</text>')
    return found


def _grid(height: int) -> list[str]:
    found = []
    for tick in (0.001, 0.01, 0.1, 1.0):
        x = _x(tick)
        found.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{height - 22}" stroke="#bbb"/>'
        )
        found.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{tick:g}x</text>')
    return found


def _x(ratio: float) -> float:
    """Return where a ratio is on the logarithmic axis."""
    share = math.log10(max(ratio, _LOWEST) / _LOWEST) / math.log10(2 / _LOWEST)
    return _LEFT + min(share, 1) * (_WIDTH - _LEFT - 50)


def medians_of(document: Mapping[str, Any], size: int) -> dict[tuple[str, str], float]:
    """Return the median of each row and server at one size."""
    figures = [
        figure for figure in document["figures"] if figure["size"] == size and figure["median"]
    ]
    return {(figure["row"], figure["server"]): figure["median"] for figure in figures}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", type=Path, help="what `python -m bench --json` wrote")
    parser.add_argument("directory", type=Path, help="where to write the charts")
    options = parser.parse_args(arguments)
    document = json.decode(options.numbers.read_bytes())
    options.directory.mkdir(parents=True, exist_ok=True)
    for size in sorted({figure["size"] for figure in document["figures"] if figure["size"]}):
        (options.directory / f"{size}.svg").write_text(
            chart(medians_of(document, size), size), "utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
