"""The log: lines with a time, the fields of a request, as text or JSON.

Warnings that must be seen.
"""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from polymnia.log_lines import JsonFormatter, TextFormatter
from tests.processes import polymnia_command

FIELDS: dict[str, Any] = {
    "request_id": 7,
    "client": "192.0.2.7",
    "token": "ci",
    "tool": "open_nodes",
    "duration_ms": 1.5,
}
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}"


def record(message: str = "done", **extra: Any) -> logging.LogRecord:
    return logging.getLogger("polymnia.test").makeRecord(
        "polymnia.test", logging.INFO, __file__, 1, message, (), None, extra=extra
    )


def test_a_text_line_has_time_level_message_and_the_fields_of_a_request() -> None:
    line = TextFormatter().format(record(**FIELDS))
    expected = (
        " polymnia: INFO: done request_id=7 client=192.0.2.7 token=ci "
        "tool=open_nodes duration_ms=1.5"
    )
    assert re.fullmatch(TIME + re.escape(expected), line)


def test_a_json_line_has_the_same() -> None:
    entry = json.loads(JsonFormatter().format(record("ünïcode", **FIELDS)))
    assert re.fullmatch(TIME, entry.pop("time"))
    assert entry == {"level": "info", "logger": "polymnia.test", "message": "ünïcode", **FIELDS}


def test_a_line_without_a_request_has_no_fields() -> None:
    assert TextFormatter().format(record()).endswith(" polymnia: INFO: done")


def test_a_traceback_is_part_of_the_json_object() -> None:
    made = record()
    try:
        raise ValueError("wrong")
    except ValueError:
        made.exc_info = sys.exc_info()
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert "ValueError: wrong" in json.loads(line)["traceback"]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "memory.jsonl"
    path.write_text('{"type":"entity","name":"A","entityType":"t","observations":[]}\nnot JSON\n')
    return path


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = polymnia_command(*arguments)
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_the_log_of_a_command_has_the_chosen_format(damaged: Path) -> None:
    done = run_command("stats", "--store", str(damaged), POLYMNIA_LOG_FORMAT="json")
    entry = json.loads(done.stderr)
    assert (done.returncode, entry["level"], "line 2" in entry["message"]) == (0, "warning", True)


def test_a_check_reports_a_problem_once(damaged: Path) -> None:
    done = run_command("doctor", "--store", str(damaged))
    assert (done.returncode, done.stderr, done.stdout.count("line 2")) == (1, "", 1)


@pytest.mark.parametrize("transport", ["tcp", "http"])
def test_an_insecure_server_warns_when_it_starts(tmp_path: Path, transport: str) -> None:
    command = polymnia_command("serve", "--transport", transport, "--bind", "0.0.0.0:0")
    command += ["--insecure", "--log-format", "json", "--store", str(tmp_path / "memory.db")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        messages = [json.loads(server.stderr.readline())["message"] for _ in range(2)]
        server.terminate()
        server.stderr.read()
    assert any(
        message.startswith("INSECURE: anyone who can reach 0.0.0.0:0 may read, change")
        for message in messages
    )
