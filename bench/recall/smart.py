"""Load a collection in SMART form, such as Cranfield or CISI.

Abstracts, queries and relevance judgements.
"""

import re
from pathlib import Path

from bench.recall.questions import Asked, Case, Told

_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)
# The judgements of Cranfield are grades from 1 (best) to 4, and -1 for none. Those of CISI are all
# 0.
_GAINS = {1: 4, 2: 3, 3: 2, 4: 1, 0: 1}
# The files of each collection: abstracts, queries, judgements.
_COLLECTIONS = {
    "cranfield": ("cran.all.1400", "cran.qry", "cranqrel"),
    "cisi": ("CISI.ALL", "CISI.QRY", "CISI.REL"),
}


def load_collection(directory: Path) -> list[Case]:
    """Return one case: each abstract is an entity with one observation, without names or times.

    Raise FileNotFoundError when the directory holds no known collection.
    """
    name, files = _files(directory)
    abstracts, queries = (
        _records((directory / file).read_text("utf-8", "replace")) for file in files[:2]
    )
    told = [Told(f"abstract {number}", _text(fields), label=number) for number, fields in abstracts]
    gains = _gains(directory / files[2])
    # Judgements count the queries; the queries' own numbers skip some.
    asked = [
        Asked(fields["W"], "abstracts", gains[str(place)])
        for place, (_, fields) in enumerate(queries, 1)
        if gains.get(str(place))
    ]
    return [Case(name, "abstract", [item for item in told if item.text], asked)]


def _files(directory: Path) -> tuple[str, tuple[str, str, str]]:
    for name, files in _COLLECTIONS.items():
        if (directory / files[0]).exists():
            return name, files
    raise FileNotFoundError(
        f"no collection in {directory}: it has neither cran.all.1400 nor CISI.ALL"
    )


def _text(fields: dict[str, str]) -> str:
    """Return title and abstract; in some collections the abstract repeats the title."""
    title, abstract = fields.get("T", ""), fields.get("W", "")
    return abstract if not title or abstract.startswith(title) else f"{title} {abstract}"


def _records(text: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for record in text.split("\n.I "):
        number, _, rest = record.removeprefix(".I ").partition("\n")
        parts = _FIELD.split(rest)
        fields = {
            name: " ".join(body.split())
            for name, body in zip(parts[1::2], parts[2::2], strict=True)
        }
        found.append((number.strip(), fields))
    return found


def _gains(path: Path) -> dict[str, dict[str, int]]:
    gains: dict[str, dict[str, int]] = {}
    for line in path.read_text("utf-8").splitlines():
        query, abstract, grade, *_ = line.split()
        if gain := _GAINS.get(int(grade)):
            gains.setdefault(query, {})[abstract] = gain
    return gains
