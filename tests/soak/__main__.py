"""Load a server over HTTP on a directory and report how its costs grow.

`python -m tests.soak --hours 8`, or `--minutes 20`; `--clients` says how many clients there are.
"""

import argparse
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from polymnia.engine.health import check_all
from tests.directory.directories import opened
from tests.soak.costs import CALLS, MAX_LATENCY_RATIO, Sample, measure_growth, take_sample
from tests.soak.load import WORKSPACES, Load
from tests.transports.running import Running

_SAMPLES = 60


def soak(seconds: float, clients: int, *, report: bool = False) -> tuple[list[Sample], list[str]]:
    """Load a new server for so long. Return the samples and everything that went wrong."""
    with TemporaryDirectory() as home:
        store = Path(home) / "memories"
        with closing(opened(store)) as workspaces:
            for name in WORKSPACES:
                workspaces.create(name)
        settings = {"POLYMNIA_EMBEDDER": "none"}
        with Running(f"{store}/", dialect="native", settings=settings) as server:
            samples, problems = _load(server, seconds, clients, report=report)
            status = server.stop()
            if status:
                problems.append(f"the server ended with {status}")
            if "Traceback" in server.log:
                problems.append(server.log[-3000:])
        if not check_all(f"{store}/").sound:
            problems.append("doctor finds problems")
    return samples, problems


def _load(
    server: Running, seconds: float, clients: int, *, report: bool
) -> tuple[list[Sample], list[str]]:
    load = Load(server.port, clients)
    samples = []
    load.start()
    end = monotonic() + seconds
    try:
        while monotonic() < end and not load.problems:
            sleep(seconds / _SAMPLES)
            samples.append(take_sample(server.popen.pid, load.calls, load.take_latencies()))
            if report:
                _print_sample(samples[-1])
    finally:
        load.stop()
    return samples, load.problems


def _print_sample(sample: Sample) -> None:
    print(
        f"{sample.calls} calls, {sample.memory / 2**20:.1f} MB, {sample.descriptors} descriptors, "
        f"{sample.threads} threads, {sample.latency * 1000:.1f} ms",
        flush=True,
    )


def main() -> int:
    """Run for the given time. Return 1 if a reply was wrong or a bound on growth was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    seconds = options.hours * 3600 + options.minutes * 60
    samples, problems = soak(seconds or 60.0, options.clients, report=True)
    growth = measure_growth(samples)
    print(
        f"{samples[-1].calls} calls; after the first quarter, for {CALLS} calls: "
        f"{growth.memory_per_calls / 2**20:+.1f} MB; in all: {growth.descriptors:+d} descriptors, "
        f"{growth.threads:+d} threads, latency x {growth.latency_ratio:.2f}"
    )
    problems += growth.problems()
    if growth.latency_ratio > MAX_LATENCY_RATIO:
        problems.append(f"latency x {growth.latency_ratio:.2f}")
    print("\n".join(problems) or "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
