"""A server that is killed loses nothing it has acknowledged and leaves nothing half done."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.durability.graphs import create, names_at, opened, problems_at
from tests.durability.kill import run

# A process that dies at the nth call of a function of the operating system, while it creates one more entity.
_DIE_AT = """
import os, sys
from pathlib import Path
from tests.durability.graphs import create, opened

path, function, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
real = getattr(os, function)

def deadly(*arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
    return real(*arguments)

setattr(os, function, deadly)
with opened(path) as memory:
    create(memory, "second")
"""
_PROJECT = Path(__file__).parents[2]
# Every step of replacing a file: force the new one, put it in its place, force the directory.
_STEPS = [("fsync", 1), ("replace", 1), ("fsync", 2)]


@pytest.mark.parametrize("seed", range(6))
def test_what_was_acknowledged_survives_a_kill(path: Path, seed: int) -> None:
    run(path, seed)


@pytest.mark.parametrize(("function", "call"), _STEPS)
def test_a_file_that_was_being_replaced_is_the_old_one_or_the_new_one(tmp_path: Path, function: str, call: int) -> None:
    path = _killed_while_writing(tmp_path, function, call)
    assert names_at(path) in (["first"], ["first", "second"])
    assert problems_at(path) == []


@pytest.mark.parametrize(("function", "call"), _STEPS)
def test_the_next_write_clears_away_what_a_killed_one_left(tmp_path: Path, function: str, call: int) -> None:
    path = _killed_while_writing(tmp_path, function, call)
    with opened(path) as memory:
        create(memory, "third")
    assert {each.name for each in tmp_path.iterdir()} <= {"memory.jsonl", "memory.jsonl.lock"}


def _killed_while_writing(directory: Path, function: str, call: int) -> Path:
    path = directory / "memory.jsonl"
    with opened(path) as memory:
        create(memory, "first")
    command = [sys.executable, "-c", _DIE_AT, str(path), function, str(call)]
    ended = subprocess.run(command, cwd=_PROJECT, check=False)
    assert ended.returncode != 0
    return path
