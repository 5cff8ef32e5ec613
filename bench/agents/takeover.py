"""`python -m bench.agents.takeover`: two years of transcripts, taken over and given back.

It writes sessions of four programs in their own formats, runs `polymnia install --import` in the
background, answers hooks and stores a fact meanwhile, and takes everything back with `--undo`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

from bench.servers import POLYMNIA, clean_environment

TURNS = 100_000
TURNS_OF_A_SESSION = 50
PROJECTS = ("shop", "api", "notes", "infra")
DAYS = 730
_START = datetime(2024, 11, 1, 9, tzinfo=UTC)
# How often the hooks are run while the import works.
_PAUSE_S = 0.05
MAX_SECONDS = 900


class Machine:
    """A home directory with projects and the transcripts of four programs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            **clean_environment(),
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "POLYMNIA_SHARE_EMBEDDER": "false",
        }
        for project in PROJECTS:
            (home / "work" / project / ".git").mkdir(parents=True)

    def write_transcripts(self, turns: int) -> int:
        """Write sessions of all programs and return their size in bytes."""
        writers = (_claude_code, _codex, _copilot, _gemini)
        sessions = -(-turns // TURNS_OF_A_SESSION)
        size = 0
        for number in range(sessions):
            project = PROJECTS[number % len(PROJECTS)]
            count = min(TURNS_OF_A_SESSION, turns - number * TURNS_OF_A_SESSION)
            began = _START + timedelta(days=DAYS * number / sessions)
            session = _Session(number, str(self.home / "work" / project), began, count)
            path, lines = writers[number // len(PROJECTS) % len(writers)](session)
            file = self.home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
            size += file.stat().st_size
        return size

    def run(self, *words: str, given: bytes = b"") -> tuple[str, float]:
        """Run a command in a project, and return what it prints and its seconds."""
        began = perf_counter()
        done = subprocess.run(
            [*POLYMNIA, *words],
            input=given,
            cwd=self.home / "work" / PROJECTS[0],
            env=self.environment,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode(), perf_counter() - began

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command in a project."""
        return subprocess.Popen(
            [*POLYMNIA, *words],
            cwd=self.home / "work" / PROJECTS[0],
            env=self.environment,
            stdout=subprocess.DEVNULL,
        )

    def count_facts(self) -> int:
        """Return how many facts all workspaces hold."""
        facts = 0
        for workspace in json.loads(self.run("workspace", "list", "--json")[0]):
            stats, _ = self.run("stats", "--json", "--workspace", workspace["name"])
            facts += json.loads(stats)["facts"]
        return facts


class _Session:
    """One session: its number, directory, beginning, and what is said in it."""

    def __init__(self, number: int, directory: str, began: datetime, turns: int) -> None:
        self.id = f"{number:08x}-0000-4000-8000-{number:012x}"
        self.directory = directory
        self.began = began
        self._number = number
        self._turns = turns

    def turns(self) -> Iterator[tuple[str, str, str]]:
        """Yield speaker, text and time of each turn."""
        for turn in range(self._turns):
            service, steps = (self._number + turn) % 97, turn % 13
            text = (
                f"Session {self._number}, turn {turn}: the deployment of service {service} "
                f"needs {steps} steps, and the reason is written down in its runbook."
            )
            yield ("user", "assistant")[turn % 2], text, self.time(turn)

    def time(self, turn: int = 0) -> str:
        return (self.began + timedelta(seconds=20 * turn)).isoformat().replace("+00:00", "Z")


_Lines = tuple[str, list[dict[str, Any]]]


def _claude_code(session: _Session) -> _Lines:
    lines = []
    for number, (speaker, text, at) in enumerate(session.turns()):
        message = {"role": speaker, "content": [{"type": "text", "text": text}]}
        line = {"type": speaker, "sessionId": session.id, "cwd": session.directory}
        lines.append(
            {**line, "uuid": f"{session.id}-{number}", "timestamp": at, "message": message}
        )
    folder = session.directory.replace("/", "-")
    return f".claude/projects/{folder}/{session.id}.jsonl", lines


def _codex(session: _Session) -> _Lines:
    meta = {"id": session.id, "timestamp": session.time(), "cwd": session.directory}
    lines: list[dict[str, Any]] = [
        {"timestamp": session.time(), "type": "session_meta", "payload": meta}
    ]
    for speaker, text, at in session.turns():
        block = {"type": "input_text" if speaker == "user" else "output_text", "text": text}
        payload = {"type": "message", "role": speaker, "content": [block]}
        lines.append({"timestamp": at, "type": "response_item", "payload": payload})
    day = session.began.strftime("%Y/%m/%d")
    return f".codex/sessions/{day}/rollout-{session.id}.jsonl", lines


def _copilot(session: _Session) -> _Lines:
    start: dict[str, Any] = {"sessionId": session.id, "startTime": session.time()}
    start |= {"producer": "copilot-agent", "context": {"cwd": session.directory}}
    lines = [{"type": "session.start", "data": start, "id": "0", "timestamp": session.time()}]
    for number, (speaker, text, at) in enumerate(session.turns(), 1):
        key = f"{session.id}-{number}"
        data = {"messageId": key, "content": text}
        lines.append({"type": f"{speaker}.message", "data": data, "id": key, "timestamp": at})
    return f".copilot/session-state/{session.id}/events.jsonl", lines


def _gemini(session: _Session) -> _Lines:
    lines: list[dict[str, Any]] = [
        {"sessionId": session.id, "projectHash": "0", "startTime": session.time(), "kind": "main"}
    ]
    for number, (speaker, text, at) in enumerate(session.turns()):
        message = {"id": f"{session.id}-{number}", "timestamp": at}
        if speaker == "user":
            lines.append({**message, "type": "user", "content": [{"text": text}]})
        else:
            lines.append({**message, "type": "gemini", "content": text})
    project = session.directory.rpartition("/")[2]
    return f".gemini/tmp/{project}/chats/session-{session.id}.jsonl", lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if something was lost or stayed behind."""
    options = _parser().parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="takeover-", dir=options.cache.resolve()) as folder:
        machine = Machine(Path(folder))
        size = machine.write_transcripts(options.turns)
        print(f"{options.turns:,} turns, {size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}")
        seconds, waits = _import_in_background(machine)
        taken = machine.count_facts() - 1  # the fact that was stored meanwhile
        print(f"import: {seconds:.1f} s, {taken:,} facts")
        for name, values in waits.items():
            if values:
                print(f"meanwhile {name}: {len(values)} times, at most {max(values) * 1000:.0f} ms")
        again, seconds = machine.run("install", "--import")
        print(f"again: {seconds:.1f} s, {again.splitlines()[-2]}")
        _, seconds = machine.run("install", "--import", "--undo")
        left = machine.count_facts() - 1
        print(f"undo: {seconds:.1f} s, {left:,} facts stayed")
    is_whole = taken == options.turns and left == 0
    print("met" if is_whole else "MISSED: turns were lost, or stayed behind")
    return 0 if is_whole else 1


def _import_in_background(machine: Machine) -> tuple[float, dict[str, list[float]]]:
    """Return how long the import took, and how long others waited while it ran."""
    given = {"cwd": str(machine.home / "work" / PROJECTS[0]), "session_id": "first"}
    event = json.dumps(given).encode()
    steps: dict[str, Callable[[], float]] = {
        "SessionStart": lambda: machine.run("hook", "SessionStart", given=event)[1],
        "remember": lambda: machine.run("remember", "deployment", "We deploy on Fridays")[1],
    }
    waits: dict[str, list[float]] = {name: [] for name in steps}
    began = perf_counter()
    with machine.start("install", "--import") as importing:
        while not waits["remember"] or importing.poll() is None:
            for name, step in steps.items():
                waits[name].append(step())
            sleep(_PAUSE_S)
            if perf_counter() - began > MAX_SECONDS:
                importing.terminate()
    return perf_counter() - began, waits


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.agents.takeover", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="default: %(default)s")
    parser.add_argument(
        "--cache", type=Path, default=Path(".bench-cache"), help="where the files go"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
