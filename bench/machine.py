"""The machine: where and when the figures were measured, and how busy it was."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Machine:
    """What a reader must know to judge the figures."""

    date: str
    python: str
    system: str
    processor: str
    cores: int
    load_before: float


def describe_machine() -> Machine:
    """Return the machine as it is now, before the run adds its own load."""
    return Machine(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        system=platform.system(),
        processor=platform.machine(),
        cores=os.cpu_count() or 1,
        load_before=round(os.getloadavg()[0], 2),
    )
