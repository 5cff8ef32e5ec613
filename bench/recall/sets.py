"""Load a set of questions, whatever its form."""

from pathlib import Path

from bench.recall.beam import chat_folders
from bench.recall.files import load_file
from bench.recall.questions import Case
from bench.recall.smart import load_collection


def load_cases(path: Path) -> list[Case]:
    """Load a file of questions, a folder of chats, or the directory of a SMART collection."""
    if path.is_dir() and not chat_folders(path):
        return load_collection(path)
    return load_file(path)
