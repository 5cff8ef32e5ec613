"""Draw a bar chart of a run as SVG: `python -m bench.plot numbers.json docs/benchmarks`.

A bar is the time of a call relative to the npm reference server in the same run, on a logarithmic
scale.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import json


class Series(NamedTuple):
    """The bars of one server: its label and colour."""

    label: str
    color: str


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
    "sqlite": Series("Polymnia on SQLite", "#3f51b5"),
    "jsonl": Series("Polymnia on the same file", "#9fa8da"),
}
PEER = "npm"
_LEFT, _WIDTH, _BAR, _GAP, _LEGEND_LINE = 170, 640, 14, 12, 18


def chart(
    title: str,
    rows: Mapping[str, str],
    series: Mapping[str, Series],
    ratios: Mapping[tuple[str, str], float],
    *,
    lowest: float,
    highest: float,
) -> str:
    """Return a chart of the ratio of each row and series, between two ends of the scale."""
    top = 28 + _LEGEND_LINE * math.ceil(len(series) / 2)
    height = top + len(rows) * (len(series) * _BAR + _GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#777">',
        f'<text x="0" y="14">{escape(title)}</text>',
    ]
    for number, (label, color) in enumerate(series.values()):
        left, y = _WIDTH // 2 * (number % 2), 22 + _LEGEND_LINE * (number // 2)
        parts.append(f'<rect x="{left}" y="{y}" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{left + 17}" y="{y + 10}">{escape(label)}</text>')

    def place_of(ratio: float) -> float:
        """Return where a ratio is on the logarithmic axis."""
        inside = min(max(ratio, lowest), highest)
        share = math.log(inside / lowest) / math.log(highest / lowest)
        return _LEFT + share * (_WIDTH - _LEFT - 50)

    for power in range(round(math.log10(lowest)), math.floor(math.log10(highest)) + 1):
        x = place_of(10.0**power)
        parts.append(
            f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{height - 22}" stroke="#bbb"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{10.0**power:g}x</text>'
        )
    y = top
    for row, label in rows.items():
        middle = y + len(series) * _BAR // 2 + 4
        parts.append(f'<text x="{_LEFT - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>')
        for name, (_, color) in series.items():
            if (row, name) in ratios:
                ratio = ratios[row, name]
                width = place_of(ratio) - _LEFT
                parts.append(
                    f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 2}" '
                    f'fill="{color}"/>'
                )
                parts.append(
                    f'<text x="{_LEFT + width + 5:.1f}" y="{y + 10}" font-size="10">'
                    f"{ratio:.3g}x</text>"
                )
            y += _BAR
        y += _GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


def beside_npm(document: Mapping[str, Any], size: int) -> str:
    """Return the chart of one size of memory, from what `python -m bench --json` wrote."""
    medians = {
        (figure["row"], figure["server"]): figure["median"]
        for figure in document["figures"]
        if figure["size"] == size and figure["median"]
    }
    shown = {row: label for row, label in ROWS.items() if (row, PEER) in medians}
    ratios = {
        (row, server): median / medians[row, PEER]
        for (row, server), median in medians.items()
        if row in shown
    }
    title = f"Time relative to the npm reference server, {size:,} entities (less is better)"
    # What is faster than a thousandth of the peer is drawn as a thousandth.
    return chart(title, shown, SERVERS, ratios, lowest=1e-3, highest=2)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", type=Path, help="what `python -m bench --json` wrote")
    parser.add_argument("directory", type=Path, help="where to write the charts")
    options = parser.parse_args(arguments)
    document = json.decode(options.numbers.read_bytes())
    options.directory.mkdir(parents=True, exist_ok=True)
    for size in sorted({figure["size"] for figure in document["figures"] if figure["size"]}):
        chart_file = options.directory / f"{size}.svg"
        chart_file.write_text(beside_npm(document, size), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
