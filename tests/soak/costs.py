"""What a server costs at a moment, and how that grows over many calls."""

import os
from pathlib import Path
from statistics import median
from typing import NamedTuple

# The bounds on growth after the first quarter of a run.
MAX_BYTES_PER_CALLS = 20 << 20
CALLS = 100_000
MAX_NEW_DESCRIPTORS = 8
MAX_NEW_THREADS = 4
MAX_LATENCY_RATIO = 2.0
# With fewer calls than this the memory of a server that has just started decides the slope.
MIN_CALLS_FOR_SLOPE = 20_000


class Sample(NamedTuple):
    """The server after so many calls.

    Bytes, counts, and the median latency since the last sample.
    """

    calls: int
    memory: int
    descriptors: int
    threads: int
    latency: float


class Growth(NamedTuple):
    """How the costs changed after the first quarter of a run."""

    calls: int
    memory_per_calls: float
    descriptors: int
    threads: int
    latency_ratio: float

    def problems(self) -> list[str]:
        """Return which bounds are exceeded. Latency is left to the reader of the report."""
        problems = []
        if self.calls >= MIN_CALLS_FOR_SLOPE and self.memory_per_calls > MAX_BYTES_PER_CALLS:
            problems.append(f"memory grows by {self.memory_per_calls / 2**20:.1f} MB")
        if self.descriptors > MAX_NEW_DESCRIPTORS:
            problems.append(f"{self.descriptors} more descriptors")
        if self.threads > MAX_NEW_THREADS:
            problems.append(f"{self.threads} more threads")
        return problems


def take_sample(process: int, calls: int, latencies: list[float]) -> Sample:
    """Measure a server by its process id."""
    descriptors = len(os.listdir(f"/proc/{process}/fd"))  # noqa: PTH208  # only how many
    threads = len(os.listdir(f"/proc/{process}/task"))  # noqa: PTH208
    latency = median(latencies) if latencies else 0.0
    return Sample(calls, _own_memory(process), descriptors, threads, latency)


def measure_growth(samples: list[Sample]) -> Growth:
    """Compare the samples after the first quarter: slope of the memory, differences of the rest."""
    settled = samples[len(samples) // 4 :]
    half = len(settled) // 2
    early, late = settled[: half or 1], settled[half:]
    return Growth(
        calls=settled[-1].calls - settled[0].calls,
        memory_per_calls=_slope(settled) * CALLS,
        descriptors=max(sample.descriptors for sample in late) - _most(early, "descriptors"),
        threads=max(sample.threads for sample in late) - _most(early, "threads"),
        latency_ratio=_latency(late) / (_latency(early) or 1.0),
    )


def can_measure() -> bool:
    """True if this system shows what a process uses."""
    return Path("/proc/self/fd").is_dir()


def _own_memory(process: int) -> int:
    """Return the resident bytes that are the process's own.

    Without mapped files: every connection maps its SQLite file, so a file that grows counts once
    for each of them although the pages are the system's cache.
    """
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/{process}/status has no RssAnon")


def _most(samples: list[Sample], field: str) -> int:
    return max(int(getattr(sample, field)) for sample in samples)


def _latency(samples: list[Sample]) -> float:
    return median(sample.latency for sample in samples)


def _slope(samples: list[Sample]) -> float:
    """Return the bytes per call of the line that fits the samples best."""
    mean_calls = sum(sample.calls for sample in samples) / len(samples)
    mean_memory = sum(sample.memory for sample in samples) / len(samples)
    products, squares = 0.0, 0.0
    for sample in samples:
        distance = sample.calls - mean_calls
        products += distance * (sample.memory - mean_memory)
        squares += distance * distance
    return products / squares if squares else 0.0
