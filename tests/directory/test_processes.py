"""Check that processes that share a data directory lose no acknowledged write."""

import subprocess
import sys
from pathlib import Path

from tests.directory.directories import names_in, opened, write
from tests.directory.kill import PROJECTS, Expected, run_once
from tests.processes import TIMEOUT_S

WRITER = """
import sys
from polymnia.engine.graph import entities
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import StoreError, WorkspaceArchived
from polymnia.model import EntityDraft
from polymnia.stores.directory.catalogue import DirectoryCatalogue

workspaces = Workspaces(DirectoryCatalogue(sys.argv[1]))
refused = 0
for number in range(int(sys.argv[2])):
    name = f"{sys.argv[3]}{number}"
    try:
        entities.create(workspaces.memory("p"), [EntityDraft(name, "x")], by="writer")
    except (StoreError, WorkspaceArchived):
        refused += 1
        continue
    print(name, flush=True)
workspaces.close()
print("refused", refused, file=sys.stderr)
"""
WRITES = 400


def test_archiving_and_restoring_a_project_loses_no_acknowledged_write(tmp_path: Path) -> None:
    workspaces = opened(tmp_path / "data")
    workspaces.create("p")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "data"), str(WRITES), letter],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for letter in "ab"
    ]
    acknowledged = {
        writer.stdout.readline().strip() for writer in writers if writer.stdout is not None
    }
    rounds = 0
    while rounds < 5 or any(writer.poll() is None for writer in writers):
        workspaces.archive("p")
        workspaces.restore("p")
        write(workspaces.memory("p"), f"main{rounds}")
        acknowledged.add(f"main{rounds}")
        rounds += 1
    for writer in writers:
        output, errors = writer.communicate(timeout=TIMEOUT_S)
        assert writer.returncode == 0, errors
        acknowledged |= set(output.split())
    found = names_in(workspaces, "p")
    assert acknowledged - set(found) == set()
    assert workspaces.memory("p").store.check() == []
    workspaces.close()


def test_a_project_can_be_archived_while_another_process_has_it_open(tmp_path: Path) -> None:
    workspaces = opened(tmp_path / "data")
    workspaces.create("p")
    script = WRITER.replace("workspaces.close()", "sys.stdin.readline(); workspaces.close()")
    arguments = [sys.executable, "-c", script, str(tmp_path / "data"), "3", "x"]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        for _ in range(3):
            other.stdout.readline()
        project = workspaces.archive("p").id
        assert [path.name for path in (tmp_path / "data" / "archive").iterdir()] == [
            f"{project}.db"
        ]
        assert list((tmp_path / "data" / "projects").iterdir()) == []
        workspaces.restore("p")
        write(workspaces.memory("p"), "after")
        other.communicate("\n", timeout=TIMEOUT_S)  # the other process closes its old file only now
    assert names_in(workspaces, "p") == ["x0", "x1", "x2", "after"]
    workspaces.close()


def test_killing_a_process_loses_no_project_and_no_acknowledged_write(tmp_path: Path) -> None:
    expected = {name: Expected() for name in PROJECTS}
    wrong = [item for seed in range(6) for item in run_once(tmp_path / "data", expected, seed)]
    assert wrong == []
