"""Check the benchmark of servers that search by meaning, and the claims it makes, in short form."""

import sys

import pytest

from bench import meaning


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_servers_answer_by_meaning_and_end_with_status_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = ["--rounds", "1", "--loop", "3", "--busy", "2", "--questions", "6"]
    assert meaning.main(short) == 0
    printed = capsys.readouterr().out
    assert "3 servers, 2 busy processes: 0 failed" in printed
    assert "6 questions, process killed amid them: 0 lost" in printed
    assert f"memory of server {meaning.SERVERS}" in printed
