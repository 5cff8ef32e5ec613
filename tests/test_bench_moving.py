"""Check the benchmark of imports and exports on a small memory."""

import pytest

from bench import moving


def test_every_command_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert moving.main(["--entities", "50", "--turns", "100", "--files", "20"]) == 0
    printed = capsys.readouterr().out.splitlines()
    measured = [
        line.partition(":")[0] for line in printed if " of processor time, peak memory " in line
    ]
    assert measured == [
        "import memory.jsonl",
        "export document",
        "import document",
        "import chats",
        "export folder",
        "sync folder",
        "import folder",
    ]
    assert len([line for line in printed if line.endswith((": met", ": missed"))]) == 3
