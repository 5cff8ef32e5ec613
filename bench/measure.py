"""The measuring: each row over all stages, of every size, in the same rounds."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial

from bench.figures import Figures, Key
from bench.rounds import Limits, Sampler, nothing, take_rounds
from bench.rows import PROBE, Row
from bench.stage import Stage


def measure(
    rows: Sequence[Row],
    stages: Sequence[Stage],
    limits: Limits,
    say: Callable[[str], None],
) -> Figures:
    """Measure every row. Raises BenchError when a server misbehaves."""
    samples: dict[Key, Sequence[float]] = {}
    for row in rows:
        say(row.title)
        with open_samplers(row, stages) as samplers:
            most = min(row.most, limits.most)
            # A commit waits for all that was written before it: without this, one server
            # would pay for the unwritten data of another.
            settle = os.sync if row.writes else nothing
            samples |= take_rounds(samplers, replace(limits, most=most), settle=settle)
    return Figures(samples)


@contextmanager
def open_samplers(row: Row, stages: Sequence[Stage]) -> Iterator[Mapping[Key, Sampler]]:
    """The contestants of a row: the stages that take part, and its probe per size."""
    taking_part = [stage for stage in stages if takes_part(row, stage)]
    samplers: dict[Key, Sampler] = {
        Key(row.key, stage.server.name, stage.size): partial(row.sample, stage) for stage in taking_part
    }
    with ExitStack() as stack:
        if row.probe is not None:
            # Beside the stores, so that both write to the same disk.
            for size, folder in {s.size: s.home.parent for s in taking_part}.items():
                probe = stack.enter_context(closing(row.probe.place(folder)))
                samplers[Key(row.probe.key, PROBE, size)] = probe.sample
        yield samplers


def takes_part(row: Row, stage: Stage) -> bool:
    """Whether the row is measured on this stage."""
    return stage.server.name in row.servers and (row.on_empty or stage.size > 0)
