"""Load a set of questions, whatever its form."""

from pathlib import Path

from bench.recall.locomo import load_locomo
from bench.recall.questions import Case
from bench.recall.smart import load_collection


def load_cases(path: Path) -> list[Case]:
    """Load a LoCoMo-format file, or the directory of a SMART collection."""
    return load_collection(path) if path.is_dir() else load_locomo(path)
