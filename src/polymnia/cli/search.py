"""`polymnia search`: find what answers a question."""

import argparse
import sys
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING

from polymnia.app import open_workspace_memory
from polymnia.cli.common import (
    add_embedder_argument,
    add_json_argument,
    add_store_arguments,
    add_workspace_argument,
    display_width,
    format_time,
    print_json,
    printable,
    require_store,
)
from polymnia.engine.memory import Memory
from polymnia.engine.recall import RecallResult, recall
from polymnia.engine.suggest import similar_types
from polymnia.model import Hit, Passage, Within
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

# How long to wait for the embedding model while the user watches.
_EMBED_TIMEOUT_S = 10.0
_MIN_WIDTH = 60


def add_parser(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser("search", help="find what answers a question")
    parser.add_argument(
        "query", metavar="QUERY", nargs="+", help="words, a name, or a whole question"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=10,
        metavar="N",
        help="maximum number of hits (default: %(default)s)",
    )
    parser.add_argument(
        "--type", action="append", default=[], help="only entities of this type (repeatable)"
    )
    add_embedder_argument(parser)
    add_json_argument(parser)
    add_store_arguments(parser)
    add_workspace_argument(parser)
    return parser


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print the hits, best first. Return 0 if there are any, 1 if not."""
    require_store(settings.store)
    within = Within(types=tuple(options.type)) if options.type else None
    with open_workspace_memory(settings, read_only=True) as memory:
        _warn_of_unknown_types(memory, options.type)
        found = recall(
            memory,
            " ".join(options.query),
            limit=options.limit,
            within=within,
            timeout=_EMBED_TIMEOUT_S,
        )
    if options.json:
        print_json(_result_shape(found))
    else:
        print(_search_table(found))
    return 0 if found.hits else 1


def _warn_of_unknown_types(memory: Memory, types: list[str]) -> None:
    for each in types:
        near = similar_types(memory, each)
        if near:
            meant = " or ".join(map(repr, near))
            print(
                printable(f"no entity has the type {each!r}; did you mean {meant}?"),
                file=sys.stderr,
            )


def _result_shape(found: RecallResult) -> dict[str, object]:
    return {
        "hits": [_hit_shape(hit) for hit in found.hits],
        "note": found.note,
        "coverage": round(found.coverage, 4),
        "corrections": found.corrections,
    }


def _hit_shape(hit: Hit) -> dict[str, object]:
    passage, signals = hit.passage, hit.signals
    return {
        "kind": passage.kind,
        **({"key": passage.entity} if passage.kind == "note" else _entity_fields(passage)),
        "text": passage.text,
        "time": format_time(passage.valid_at or passage.created_at),
        **({"source": passage.source} if passage.source else {}),
        "score": round(hit.score, 4),
        "matched": hit.match_kind,
        "alike": hit.alike,
        "reasons": hit.reasons,
        "weak": hit.is_weak,
        "why": {
            "words": round(signals.words, 4),
            "before": round(signals.before, 4),
            "meaning": None if signals.meaning is None else round(signals.meaning, 4),
            "entity": signals.entity,
            "linked": signals.linked,
            "date": round(signals.date, 4),
            "tells_time": signals.tells_time,
        },
    }


def _entity_fields(passage: Passage) -> dict[str, object]:
    return {"entity": passage.entity, "type": passage.type, "ordinal": passage.ordinal}


def _search_table(found: RecallResult) -> str:
    width = max(get_terminal_size().columns, _MIN_WIDTH)
    lines = [
        f"searched for {right!r} instead of {wrong!r}" for wrong, right in found.corrections.items()
    ]
    for rank, hit in enumerate(found.hits, 1):
        lines += _wrap(f"{rank:2}. {_describe(hit)}", width)
        lines += _wrap(f"    {'; '.join(_reasons(hit))}", width)
    if not found.hits:
        lines.append("nothing found")
    if found.note:
        lines.append(f"note: {found.note}")
    return "\n".join(lines)


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, all but the first indented. Characters may take two columns."""
    columns = display_width(text) / len(text)
    return wrap(text, int(width / max(1, columns)), subsequent_indent="    ")


def _describe(hit: Hit) -> str:
    passage = hit.passage
    if passage.kind == "note":
        return printable(f"note {passage.entity}: {hit.excerpt}")
    return printable(
        f"{passage.entity} [{passage.type}]: {hit.excerpt if passage.ordinal else '(the entity itself)'}"
    )


def _reasons(hit: Hit) -> list[str]:
    weak = ["weak match"] if hit.is_weak else []
    alike = [f"{hit.alike} more say the same"] if hit.alike else []
    at, source = format_time(hit.passage.valid_at), hit.passage.source
    origin = [*([f"said: {at}"] if at else []), *([f"source: {source}"] if source else [])]
    return [printable(each) for each in (*weak, *hit.reasons, *alike, *origin)]
