"""The rounds: contestants take short turns, so that noise affects all of them alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from random import Random
from time import perf_counter
from typing import TypeVar

K = TypeVar("K")
Sampler = Callable[[], float]
Settle = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one contestant is measured: the fewest and the most samples, and the time.

    Both are spread over the rounds, so that fast and slow contestants meet the same load of the
    machine.
    """

    least: int
    most: int
    seconds: float
    rounds: int = 10

    @property
    def turn_samples(self) -> int:
        """The most samples of one turn."""
        return ceil(self.most / self.rounds)

    @property
    def turn_seconds(self) -> float:
        """The time after which a turn takes no further sample."""
        return self.seconds / self.rounds


@dataclass(slots=True)
class Tally:
    """The samples of one contestant and the time they took."""

    samples: list[float]
    spent: float = 0.0


def nothing() -> None:
    """Do nothing, for contestants that write nothing."""


def take_rounds(
    samplers: Mapping[K, Sampler], limits: Limits, *, settle: Settle = nothing
) -> dict[K, list[float]]:
    """Give every sampler a turn, round after round, until each has enough samples.

    Each round has a random order, because a turn is not independent of the one before it. `settle`
    runs before each turn, outside of its time.
    """
    rng = Random(0)
    tallies = {key: Tally([]) for key in samplers}
    while waiting := [key for key in samplers if not enough(tallies[key], limits)]:
        for key in rng.sample(waiting, len(waiting)):
            settle()
            take_turn(samplers[key], tallies[key], limits)
    return {key: tally.samples for key, tally in tallies.items()}


def enough(tally: Tally, limits: Limits) -> bool:
    """Return True if a contestant needs no further turn."""
    count = len(tally.samples)
    if count < min(limits.least, limits.most):
        return False
    return count >= limits.most or tally.spent >= limits.seconds


def take_turn(sampler: Sampler, tally: Tally, limits: Limits) -> None:
    """Sample until the turn is over, at least once."""
    began = perf_counter()
    for _ in range(min(limits.turn_samples, limits.most - len(tally.samples))):
        tally.samples.append(sampler())
        if perf_counter() - began >= limits.turn_seconds:
            break
    tally.spent += perf_counter() - began
