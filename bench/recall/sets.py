"""Load a set of questions, whatever its form."""

from pathlib import Path

from bench.recall.smart import load_collection
from polymnia.evaluation.beam import chat_folders
from polymnia.evaluation.files import load_file
from polymnia.evaluation.questions import Case


def load_cases(path: Path) -> list[Case]:
    """Load what `polymnia bench` reads, or the directory of a SMART collection."""
    if path.is_dir() and not chat_folders(path):
        return load_collection(path)
    return load_file(path)
