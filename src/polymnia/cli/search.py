"""`polymnia search`: find what answers a question."""

import argparse
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap

from polymnia.cli.common import (
    Subparsers,
    add_embedder_argument,
    add_limit_argument,
    add_memory_arguments,
    display_width,
    format_time,
    print_json,
    printable,
    workspace_label,
)
from polymnia.engine.recall.names import similar_types
from polymnia.engine.recall.passages import RecallResult, recall
from polymnia.model import Hit, Within
from polymnia.search.hits import EXACT_KINDS
from polymnia.settings import Settings
from polymnia.workspace_choice import OpenedWorkspace, open_workspaces_to_read, other_workspaces

_Result = tuple[OpenedWorkspace, RecallResult]
_PlacedHit = tuple[OpenedWorkspace, Hit]


def add_search(commands: Subparsers) -> None:
    parser = commands.add_parser("search", help="find what answers a question")
    parser.add_argument(
        "query", metavar="QUERY", nargs="+", help="words, a name, or a whole question"
    )
    add_limit_argument(parser, 10, "maximum number of hits")
    parser.add_argument(
        "--type", action="append", default=[], help="only entities of this type (repeatable)"
    )
    add_embedder_argument(parser)
    add_memory_arguments(parser)


def run_search(settings: Settings, options: argparse.Namespace) -> int:
    """Print the hits, best first. Return 0 if there are any, 1 if not."""
    question = " ".join(options.query)
    within = Within(types=tuple(options.type)) if options.type else None
    with open_workspaces_to_read(settings, by_meaning=True) as workspaces:
        for requested in options.type:
            near = [similar_types(workspace.memory, requested) for workspace in workspaces]
            if all(near):  # a workspace with the type, or without a similar one, suggests none
                names = dict.fromkeys(repr(name) for similar in near for name in similar)
                sentence = (
                    f"no entity has the type {requested!r}; did you mean {' or '.join(names)}?"
                )
                print(printable(sentence), file=sys.stderr)
        results = [_search(workspace, question, options.limit, within) for workspace in workspaces]
        is_new = all(_is_empty(workspace) for workspace in workspaces)
        needs_index = any(_has_no_vectors(workspace) for workspace in workspaces)
        has_others = False
        if within is not None and not any(result.hits for _, result in results):
            unfiltered = [_search(workspace, question, 1, None) for workspace in workspaces]
            has_others = any(result.hits for _, result in unfiltered)
    hits = _rank(results)[: options.limit]
    if options.json:
        shape = {
            "workspaces": [workspace_label(settings, workspace) for workspace, _ in results],
            "hits": [
                {"workspace": workspace_label(settings, workspace), **_hit_shape(hit)}
                for workspace, hit in hits
            ],
            "note": "; ".join(_notes(settings, results)),
            "coverage": round(min(result.coverage for _, result in results), 4),
            "corrections": _corrections(results),
        }
        print_json(shape)
    else:
        print("\n".join(_result_lines(settings, results, hits)))
        if is_new:
            print("nothing has been remembered there yet; `polymnia remember NAME FACT` does it")
        elif needs_index:
            print("to search by meaning: polymnia index")
        # Say where else to look if nothing was found.
        if not hits and not settings.workspace:
            others = other_workspaces(settings, workspaces)
            if others:
                print(printable(f"other workspaces, for --workspace: {', '.join(others)}"))
        if has_others:
            print("there are hits without --type")
    return 0 if hits else 1


def _search(
    workspace: OpenedWorkspace, question: str, limit: int, within: Within | None
) -> _Result:
    if _is_empty(workspace):
        return workspace, RecallResult(hits=[], coverage=1.0)
    # The user watches while the embedding model is loaded.
    return workspace, recall(workspace.memory, question, limit=limit, within=within, timeout=10.0)


def _is_empty(workspace: OpenedWorkspace) -> bool:
    with workspace.memory.reading() as read:
        counts = read.counts()
    return not counts.entities and not counts.notes


def _has_no_vectors(workspace: OpenedWorkspace) -> bool:
    """Return True if the memory could be searched by meaning, but nothing is embedded yet."""
    memory = workspace.memory
    if memory.meaning is None or memory.meaning.missing_package:
        return False
    with memory.reading() as read:
        return not read.vectors.models()


def _rank(results: Sequence[_Result]) -> list[_PlacedHit]:
    """Return the hits of all workspaces in one ranking: exact matches first, then by score."""
    hits = [(workspace, hit) for workspace, result in results for hit in result.hits]
    if len(results) > 1:
        hits.sort(key=lambda placed: (_exact_rank(placed[1]), -placed[1].score))
    return hits


def _exact_rank(hit: Hit) -> int:
    if hit.match_kind in EXACT_KINDS:
        return EXACT_KINDS.index(hit.match_kind)
    return len(EXACT_KINDS)


def _hit_shape(hit: Hit) -> dict[str, object]:
    passage, signals = hit.passage, hit.signals
    shape: dict[str, object] = {"kind": passage.kind}
    if passage.kind == "note":
        shape["key"] = passage.entity
    else:
        shape |= {"entity": passage.entity, "type": passage.type, "ordinal": passage.ordinal}
    shape["text"] = passage.text
    shape["time"] = format_time(passage.valid_at or passage.created_at)
    if passage.source:
        shape["source"] = passage.source
    meaning = None if signals.meaning is None else round(signals.meaning, 4)
    return {
        **shape,
        "score": round(hit.score, 4),
        "matched": hit.match_kind,
        "alike": hit.alike,
        "reasons": hit.reasons,
        "weak": hit.is_weak,
        "why": {
            "words": round(signals.words, 4),
            "before": round(signals.before, 4),
            "meaning": meaning,
            "entity": signals.entity,
            "date": round(signals.date, 4),
            "tells_time": signals.tells_time,
        },
    }


def _result_lines(
    settings: Settings, results: Sequence[_Result], hits: Sequence[_PlacedHit]
) -> list[str]:
    width = max(get_terminal_size().columns, 60)
    lines = []
    for wrong, right in _corrections(results).items():
        lines.append(printable(f"searched for {right!r} instead of {wrong!r}"))
    for rank, (workspace, hit) in enumerate(hits, 1):
        reasons = _reasons(hit)
        if len(results) > 1:
            reasons.insert(0, f"in {workspace_label(settings, workspace)}")
        passage = hit.passage
        text = f"note {passage.entity}: {hit.excerpt}"
        if passage.kind != "note":
            excerpt = hit.excerpt if passage.ordinal else "(the entity itself)"
            text = f"{passage.entity} [{passage.type}]: {excerpt}"
        lines += _wrap(f"{rank:2}. {printable(text)}", width)
        lines += _wrap(f"    {'; '.join(reasons)}", width)
    where = " and ".join(workspace_label(settings, workspace) for workspace, _ in results)
    lines.append(f"searched {where}" if hits else f"nothing found in {where}")
    lines += [f"note: {note}" for note in _notes(settings, results)]
    return lines


def _corrections(results: Sequence[_Result]) -> dict[str, str]:
    corrections: dict[str, str] = {}
    for _, result in results:
        corrections |= result.corrections
    return corrections


def _notes(settings: Settings, results: Sequence[_Result]) -> list[str]:
    """Return the notes about the results, each once, with its workspace if others have none."""
    notes = list(dict.fromkeys(result.note for _, result in results if result.note))
    if all(result.note for _, result in results):
        return notes
    named = []
    for workspace, result in results:
        if result.note:
            named.append(f"{workspace_label(settings, workspace)}: {result.note}")
    return named


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, all but the first indented. Characters may take two columns."""
    columns = display_width(text) / len(text)
    return wrap(text, int(width / max(1, columns)), subsequent_indent="    ")


def _reasons(hit: Hit) -> list[str]:
    reasons = ["weak match"] if hit.is_weak else []
    reasons += hit.reasons
    if hit.alike:
        reasons.append(f"{hit.alike} more say the same")
    at = format_time(hit.passage.valid_at)
    if at:
        reasons.append(f"said: {at}")
    if hit.passage.source:
        reasons.append(f"source: {hit.passage.source}")
    return [printable(reason) for reason in reasons]
