"""Load a set of questions, whatever its form."""

from pathlib import Path

from bench.recall.locomo import load_locomo
from bench.recall.longmemeval import is_longmemeval, load_longmemeval, read_json
from bench.recall.questions import Case
from bench.recall.smart import load_collection


def load_cases(path: Path) -> list[Case]:
    """Load a file in the form of LoCoMo or LongMemEval, or the directory of a SMART collection."""
    if path.is_dir():
        return load_collection(path)
    samples = read_json(path)
    if is_longmemeval(samples):
        return [load_longmemeval(samples)]
    return load_locomo(samples)
