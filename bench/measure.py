"""Measure each row over all stages, of every size, in the same rounds."""

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
    """Return the figures of every row. Raise BenchError if a server fails."""
    samples: dict[Key, Sequence[float]] = {}
    for row in rows:
        say(row.title)
        with open_samplers(row, stages) as samplers:
            most = min(row.most, limits.most)
            rounds = most if row.alternate else limits.rounds
            # A commit waits for everything that was written before it: without this, one server
            # would pay for the unwritten data of another.
            settle = os.sync if row.writes and not row.alternate else nothing
            samples |= take_rounds(
                samplers, replace(limits, most=most, rounds=rounds), settle=settle
            )
    return Figures(samples)


@contextmanager
def open_samplers(row: Row, stages: Sequence[Stage]) -> Iterator[Mapping[Key, Sampler]]:
    """Open the contestants of a row: its stages, and its probe for each size."""
    taking_part = [stage for stage in stages if takes_part(row, stage)]
    samplers: dict[Key, Sampler] = {
        Key(row.key, stage.server.name, stage.size): partial(row.sample, stage)
        for stage in taking_part
    }
    with ExitStack() as stack:
        if row.probe is not None:
            # Beside the stores, so that both write to the same disk.
            for size, folder in {s.size: s.home.parent for s in taking_part}.items():
                probe = stack.enter_context(closing(row.probe.place(folder)))
                samplers[Key(row.probe.key, PROBE, size)] = probe.sample
        yield samplers


def takes_part(row: Row, stage: Stage) -> bool:
    """Return True if the row is measured on this stage."""
    fits = row.max_size is None or stage.size <= row.max_size
    return stage.server.name in row.servers and fits and (row.on_empty or stage.size > 0)
