"""The figures: the samples taken, by row, server and size."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Unit:
    """How a raw sample (seconds, bytes or a ratio) is shown."""

    label: str
    show: Callable[[float], float]
    more_is_better: bool = False


MILLISECONDS = Unit("ms", lambda seconds: seconds * 1e3)
SECONDS = Unit("s", lambda seconds: seconds)
MEGABYTES = Unit("MB", lambda size: size / 1e6)
TIMES = Unit("x", lambda times: times)
HUNDREDS_PER_SECOND = Unit("entities/s", lambda seconds: 100 / seconds, True)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds by the clock, seconds of processor time, and the highest resident memory of the
    process in MB.
    """

    wall: float
    processor: float
    peak: float


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Which measurement: the row's key, the server's name, the number of entities."""

    row: str
    server: str
    size: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Raw samples; an empty store has the size 0."""

    samples: Mapping[Key, Sequence[float]] = field(default_factory=dict)

    def raw(self, row: str, server: str, size: int) -> float | None:
        """Return the median sample; None if this was not measured."""
        taken = self.samples.get(Key(row, server, size))
        return median(taken) if taken else None

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes that were measured, without the empty store."""
        return tuple(sorted({key.size for key in self.samples if key.size}))

    def servers(self) -> frozenset[str]:
        """Return the names of all servers."""
        return frozenset(key.server for key in self.samples)


def number(value: float) -> str:
    """Return a number with three significant digits and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return `part / whole`; None unless both were measured."""
    if part is None or whole is None:
        return None
    return part / whole
