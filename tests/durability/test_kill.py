"""Check that a killed server loses no acknowledged write and leaves no half-finished one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.durability.graphs import create, names_at, opened, problems_at
from tests.durability.kill import run

# A process that creates an entity and kills itself at the nth call of a function in `os`.
_DIE_AT = """
import os, sys
from pathlib import Path
from tests.durability.graphs import create, opened

path, function, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
real = getattr(os, function)

def kill_or_call(*arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
    return real(*arguments)

setattr(os, function, kill_or_call)
with opened(path) as memory:
    create(memory, "second")
"""
_PROJECT = Path(__file__).parents[2]
# The steps that replace a file: sync the new file, rename it, sync the directory.
_STEPS = [("fsync", 1), ("replace", 1), ("fsync", 2)]


@pytest.mark.parametrize("seed", range(6))
def test_acknowledged_writes_survive_a_kill(path: Path, seed: int) -> None:
    run(path, seed)


@pytest.mark.parametrize(("function", "call"), _STEPS)
def test_a_kill_while_a_file_is_replaced_leaves_the_old_or_the_new_file(
    tmp_path: Path, function: str, call: int
) -> None:
    path = _kill_while_writing(tmp_path, function, call)
    assert names_at(path) in (["first"], ["first", "second"])
    assert problems_at(path) == []


@pytest.mark.parametrize(("function", "call"), _STEPS)
def test_the_next_write_removes_the_files_of_a_killed_write(
    tmp_path: Path, function: str, call: int
) -> None:
    path = _kill_while_writing(tmp_path, function, call)
    with opened(path) as memory:
        create(memory, "third")
    assert {file.name for file in tmp_path.iterdir()} <= {"memory.jsonl", "memory.jsonl.lock"}


def _kill_while_writing(directory: Path, function: str, call: int) -> Path:
    path = directory / "memory.jsonl"
    with opened(path) as memory:
        create(memory, "first")
    command = [sys.executable, "-c", _DIE_AT, str(path), function, str(call)]
    ended = subprocess.run(command, cwd=_PROJECT, check=False)
    assert ended.returncode != 0
    return path
