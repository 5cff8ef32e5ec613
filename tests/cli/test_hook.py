"""`polymnia hook`: whatever happens, its status is 0 and it says what went wrong on standard error only."""

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from msgspec.json import encode

from tests.hooks.sessions import append, sent, turn
from tests.processes import TIMEOUT_S

# Runs the command with another limit, so that a slow machine gives nothing up.
_PATIENT = "import sys; from polymnia.cli import hook, main; hook.MAX_SECONDS = 100.0; sys.exit(main.main(sys.argv[1:]))"


def hook(
    home: Path, event: str, data: bytes, *options: str, patient: bool = True
) -> subprocess.CompletedProcess[bytes]:
    places = {
        name: str(home) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA")
    }
    return subprocess.run(
        [
            sys.executable,
            *(("-c", _PATIENT) if patient else ("-m", "polymnia")),
            "hook",
            event,
            *options,
        ],
        input=data,
        env={**os.environ, **places},
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b"7",
        b'{"cwd": 7, "transcript_path": {}}',
        b"[" * 100_000,
        b'{"cwd": "\xff"}',
        b"\xff",
    ],
)
@pytest.mark.parametrize("event", ["SessionStart", "Stop"])
def test_any_input_is_harmless(event: str, data: bytes, tmp_path: Path) -> None:
    done = hook(tmp_path, event, data, "--store", str(tmp_path / "memory.db"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("event", ["SessionStart", "Stop"])
def test_a_directory_that_no_system_can_have_is_ignored(event: str, tmp_path: Path) -> None:
    store = str(tmp_path / "workspaces") + "/"
    transcript = append(tmp_path / "5e55.jsonl", turn("user", "hello"))
    hook(tmp_path, "Stop", sent(tmp_path, transcript), "--store", store)
    append(transcript, turn("assistant", "good morning", 1))
    data = encode({"cwd": "a\0b", "transcript_path": str(transcript)})
    done = hook(tmp_path, event, data, "--store", store)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_unknown_event_does_not_stop_the_agent(tmp_path: Path) -> None:
    done = hook(tmp_path, "Later", b"{}")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"there is nothing to do for the event 'Later'" in done.stderr


@pytest.mark.parametrize("event", ["SessionStart", "Stop"])
def test_a_store_that_cannot_be_opened_does_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"this is no database" * 100)
    transcript = append(tmp_path / "5e55.jsonl", turn("user", "hello"))
    done = hook(tmp_path, event, sent(tmp_path, transcript), "--store", str(tmp_path / "memory.db"))
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"polymnia: ")


def test_a_locked_store_is_given_up_and_used_at_the_next_event(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    transcript = append(tmp_path / "5e55.jsonl", turn("user", "hello"))
    hook(tmp_path, "Stop", sent(tmp_path, transcript), "--store", str(store))
    append(transcript, turn("assistant", "good morning", 1))
    other = apsw.Connection(str(store))
    other.execute("BEGIN IMMEDIATE")
    done = hook(tmp_path, "Stop", sent(tmp_path, transcript), "--store", str(store), patient=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"gave up" in done.stderr
    other.execute("ROLLBACK")
    other.close()
    hook(tmp_path, "Stop", sent(tmp_path, transcript), "--store", str(store))
    started = hook(tmp_path, "SessionStart", sent(tmp_path), "--store", str(store))
    assert b"assistant: good morning" in started.stdout
