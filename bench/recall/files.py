"""Load a file of questions in the form of LoCoMo or LongMemEval, or a folder of BEAM's chats."""

import gzip
import zlib
from pathlib import Path
from typing import Any

from msgspec import DecodeError, json

from bench.recall.beam import CHAT, QUESTIONS, chat_folders, load_chat
from bench.recall.locomo import is_locomo, load_locomo
from bench.recall.longmemeval import is_longmemeval, load_longmemeval
from bench.recall.questions import Case
from polymnia.errors import BadInput


def load_file(path: Path) -> list[Case]:
    """Return the cases of a .json or .json.gz file, or of a folder. Raise BadInput, OSError."""
    try:
        return _load_folder(path) if path.is_dir() else _load_samples(path)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        problem = f"has no {exc}" if isinstance(exc, KeyError) else str(exc)
        raise BadInput(f"{path}: a sample is not in the form of the others: {problem}") from exc


def _load_folder(directory: Path) -> list[Case]:
    folders = chat_folders(directory)
    if not folders:
        raise BadInput(f"{directory}: no chats; needed are folders with {CHAT} and {QUESTIONS}")
    cases = []
    for folder in folders:
        chat, probing = _read_json(folder / CHAT), _read_json(folder / QUESTIONS)
        cases.append(load_chat(folder.name, chat, probing))
    return cases


def _load_samples(path: Path) -> list[Case]:
    samples = _read_json(path)
    if is_longmemeval(samples):
        return load_longmemeval(samples)
    if is_locomo(samples):
        return load_locomo(samples)
    raise BadInput(
        f"{path}: not a set of questions; needed is a JSON list of LoCoMo's samples "
        "(with `conversation` and `qa`) or of LongMemEval's (with `haystack_sessions`), "
        "or a folder of BEAM's chats"
    )


def _read_json(path: Path) -> Any:
    data = path.read_bytes()
    try:
        return json.decode(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (DecodeError, UnicodeDecodeError) as exc:
        raise BadInput(f"{path}: not JSON: {exc}") from exc
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise BadInput(f"{path}: not a whole gzip file: {exc}") from exc
