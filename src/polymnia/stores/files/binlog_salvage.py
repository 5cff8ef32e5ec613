"""What can still be read of a damaged binary log, as a new one."""

from pathlib import Path
from typing import NamedTuple

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.disk.replace import replace_file
from polymnia.errors import BadInput
from polymnia.model import Counts
from polymnia.stores.files.binlog_changes import refuse_unfit_graph
from polymnia.stores.files.binlog_forms import OURS, PLAIN, form_of
from polymnia.stores.files.binlog_records import encode_graph, next_whole
from polymnia.stores.files.binlog_replay import Replay
from polymnia.stores.memory import MemoryGraph


class Salvaged(NamedTuple):
    """What the new log holds, and from where to where the old one could not be read."""

    counts: Counts
    gaps: list[tuple[int, int]]


def salvage(path: Path, target: Path) -> Salvaged:
    """Write what every sound record of a log makes to a new one; the old one is not touched.

    Raises BadInput when the new one exists already, or there is no old one.
    """
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if target.exists():
        raise BadInput(f"{target} exists already; name another file to write to")
    with map_os_errors(str(path)), file_lock(path):
        data = path.read_bytes()
    graph, gaps = readable(data)
    refuse_unfit_graph(graph)
    with map_os_errors(str(target)):
        replace_file(target, encode_graph(graph.entities(), graph.relations()))
    return Salvaged(graph.counts(), gaps)


def readable(data: bytes) -> tuple[MemoryGraph, list[tuple[int, int]]]:
    """The graph that a log's sound records make, and where there were none."""
    form = form_of(data)
    if form is OURS and next_whole(data, 0, OURS.whole_at) is None:
        form = PLAIN  # or nothing at all
    graph = MemoryGraph()
    replay = Replay(graph)
    gaps = []
    at = form.start
    while at < len(data):
        found = form.whole_at(data, at)
        if found is not None:
            kind, strings, at = found
            replay.take(kind, strings)
            continue
        sound = next_whole(data, at + 1, form.whole_at)
        gaps.append((at, len(data) if sound is None else sound))
        at = gaps[-1][1]
    replay.finish()
    return graph, gaps
