"""`polymnia hook`: its status is always 0, and it says what went wrong on standard error
only.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import apsw
import pytest
from msgspec.json import encode

from tests.groups import mostly_matrix
from tests.hooks.sessions import append, sent, turn
from tests.processes import TIMEOUT_S, polymnia_command

# Runs the command with another limit, so that a slow machine gives nothing up.
_PATIENT = (
    "import sys; from polymnia.cli import hook, main; "
    "hook.MAX_SECONDS = hook.MAX_PROMPT_SECONDS = 100.0; main.run_and_exit()"
)


RULE = "Every database migration needs a rollback script"
EVENTS_OF_A_SESSION = ["SessionStart", "UserPromptSubmit", "Stop"]


def hook(
    home: Path,
    event: str,
    data: bytes,
    *options: str,
    patient: bool = True,
    command: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a hook with a home of its own, by another command if one is given."""
    names = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA")
    places = {name: str(home) for name in names}
    usual = polymnia_command()
    if patient:
        usual = [sys.executable, "-c", _PATIENT]
    return subprocess.run(
        [*(command or usual), "hook", event, *options],
        input=data,
        env={**os.environ, "POLYMNIA_EMBEDDER": "none", **places, **(variables or {})},
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
@pytest.mark.parametrize(
    "event", mostly_matrix(EVENTS_OF_A_SESSION, unmarked=EVENTS_OF_A_SESSION[:1])
)
def test_any_input_is_harmless(event: str, data: bytes, tmp_path: Path) -> None:
    done = hook(tmp_path, event, data, "--store", str(tmp_path / "memory.db"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
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


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
def test_a_store_that_cannot_be_opened_does_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"this is no database" * 100)
    transcript = append(tmp_path / "5e55.jsonl", turn("user", "hello"))
    fields = _fields(tmp_path, transcript)
    done = hook(tmp_path, event, fields, "--store", str(tmp_path / "memory.db"))
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


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
def test_wrong_options_do_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    finished = hook(tmp_path, event, b"{}", "--nonsense", patient=False)
    assert (finished.returncode, finished.stdout) == (0, b"")


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
def test_a_wrong_settings_file_does_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    (tmp_path / "polymnia").mkdir()
    (tmp_path / "polymnia" / "config.toml").write_text("store = [", "utf-8")
    finished = hook(tmp_path, event, b"{}", patient=False)
    assert (finished.returncode, finished.stdout) == (0, b"")
    assert b"config.toml" in finished.stderr


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
def test_a_defect_does_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import polymnia.hooks.events as events\nevents._parse = lambda data: 1 / 0\n", "utf-8"
    )
    (tmp_path / "home").mkdir()
    variables = {"PYTHONPATH": str(tmp_path)}
    finished = hook(tmp_path / "home", event, b"{}", patient=False, variables=variables)
    assert (finished.returncode, finished.stdout) == (0, b"")
    assert b"ZeroDivisionError" in finished.stderr


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
def test_a_full_disk_does_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    store = _remembered(tmp_path)
    fields = _fields(tmp_path, append(tmp_path / "5e56.jsonl", turn("user", "a new turn")))
    # No file may grow, as on a disk without space.
    command = [
        sys.executable,
        "-c",
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {_PATIENT}",
    ]
    finished = hook(tmp_path, event, fields, "--store", store, command=command)
    assert finished.returncode == 0
    if event == "Stop":  # the others only read
        assert (finished.stdout, finished.stderr[:10]) == (b"", b"polymnia: ")


@pytest.mark.parametrize("event", EVENTS_OF_A_SESSION)
def test_a_place_without_permission_does_not_stop_the_agent(event: str, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("Windows has other permissions")
    setpriv = shutil.which("setpriv")
    prefix: list[str] = []
    if os.geteuid() == 0:
        if setpriv is None:
            pytest.skip("the superuser may read everything, and setpriv is not on the PATH")
        prefix = [setpriv, "--bounding-set", "-dac_override,-dac_read_search"]
    store = _remembered(tmp_path)
    fields = _fields(tmp_path, tmp_path / "5e55.jsonl")
    tmp_path.chmod(0o000)
    command = [*prefix, sys.executable, "-c", _PATIENT]
    finished = hook(tmp_path, event, fields, "--store", store, command=command)
    tmp_path.chmod(0o700)
    assert (finished.returncode, finished.stdout) == (0, b"")


def test_a_prompt_reads_a_store_that_somebody_else_has_locked(tmp_path: Path) -> None:
    store = _remembered(tmp_path)
    other = apsw.Connection(store)
    other.execute("BEGIN IMMEDIATE")
    fields = _fields(tmp_path, tmp_path / "5e55.jsonl")
    finished = hook(tmp_path, "UserPromptSubmit", fields, "--store", store)
    other.close()
    assert (finished.returncode, finished.stderr) == (0, b"")
    assert RULE.encode() in finished.stdout


def _remembered(home: Path) -> str:
    """Store a session with a rule in it. Return the store."""
    store = str(home / "memory.db")
    lines = [turn("user", f"thing {number} weighs {number} grams", number) for number in range(30)]
    transcript = append(home / "5e55.jsonl", turn("user", RULE), *lines)
    assert hook(home, "Stop", sent(home, transcript), "--store", store).returncode == 0
    return store


def _fields(home: Path, transcript: Path) -> bytes:
    fields = {"session_id": "other", "cwd": str(home), "transcript_path": str(transcript)}
    return encode(
        fields | {"prompt": "write every rollback script that a database migration needs"}
    )
