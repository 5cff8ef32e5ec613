"""Reading the Cranfield collection: abstracts, queries, and which abstracts answer which query."""

import re
from pathlib import Path

from bench.recall.questions import Asked, Case, Told

_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)
# From the collection's grades, 1 best to 4 least and -1 for none, to a gain.
_GAINS = {1: 4, 2: 3, 3: 2, 4: 1}


def load_cranfield(directory: Path) -> list[Case]:
    """One case: every abstract an entity with one observation, nobody named, no times."""
    abstracts = _records((directory / "cran.all.1400").read_text("utf-8", "replace"))
    told = [Told(f"abstract {number}", fields.get("W", ""), label=number) for number, fields in abstracts]
    queries = _records((directory / "cran.qry").read_text("utf-8", "replace"))
    gains = _gains(directory / "cranqrel")
    # The judgements count the queries; the queries' own numbers skip some.
    asked = [
        Asked(fields["W"], "abstracts", gains[str(place)])
        for place, (_, fields) in enumerate(queries, 1)
        if gains.get(str(place))
    ]
    return [Case("cranfield", "abstract", [each for each in told if each.text], asked)]


def _records(text: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for record in text.split("\n.I ")[0:]:
        number, _, rest = record.removeprefix(".I ").partition("\n")
        parts = _FIELD.split(rest)
        fields = {name: " ".join(body.split()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
        found.append((number.strip(), fields))
    return found


def _gains(path: Path) -> dict[str, dict[str, int]]:
    gains: dict[str, dict[str, int]] = {}
    for line in path.read_text("utf-8").splitlines():
        query, abstract, grade, *_ = line.split()
        if gain := _GAINS.get(int(grade)):
            gains.setdefault(query, {})[abstract] = gain
    return gains
