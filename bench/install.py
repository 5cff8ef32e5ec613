"""The base install.

What `pip install polymnia` brings, counted in the environment that runs the benchmark.
"""

from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

NAME = "polymnia"


@dataclass(frozen=True, slots=True)
class Install:
    """How many packages there are, Polymnia among them, and their size in bytes."""

    packages: int
    size: int


def measure_install() -> Install:
    """Return the size of Polymnia and of everything it requires without extras."""
    found: dict[str, Distribution] = {}
    pending = [NAME]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = distribution(name)
            pending += required_names(found[name])
    return Install(len(found), sum(size_of(item) for item in found.values()))


def required_names(package: Distribution) -> list[str]:
    """Return the packages that this one requires here, without extras."""
    requirements = [Requirement(require) for require in package.requires or ()]
    return [
        requirement.name
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]


def size_of(package: Distribution) -> int:
    """Return the size of a package's installed files."""
    paths = [package.locate_file(file) for file in package.files or ()]
    return sum(path.stat().st_size for path in map(Path, map(str, paths)) if path.is_file())
