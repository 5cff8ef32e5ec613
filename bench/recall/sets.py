"""Load a set of questions, whatever its form."""

from pathlib import Path

from bench.recall.smart import load_collection
from polymnia.evaluation.files import load_file
from polymnia.evaluation.questions import Case


def load_cases(path: Path) -> list[Case]:
    """Load a file in the form of LoCoMo or LongMemEval, or the directory of a SMART collection."""
    return load_collection(path) if path.is_dir() else load_file(path)
