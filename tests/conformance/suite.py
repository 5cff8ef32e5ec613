"""A conformance suite as a command: the scenarios that it lists, and its findings."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.install import node_of

SERVER = (sys.executable, "-m", "tests.conformance.server")

JSON = dict[str, Any]

_LISTED = re.compile(r"^ +- (?P<scenario>\S+) \[(?P<revisions>[^\]]+)\]$", re.MULTILINE)
_SAVED = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
# Every scenario is also judged by this; it says nothing of what the scenario is about.
_SCHEMA = "wire-schema-valid"
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Suite:
    """One version of the suite, run for one revision."""

    package: str
    revision: str
    options: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.package} at {self.revision}"

    def listed(self, judges: Path) -> set[str]:
        """Return the server scenarios that the suite lists for the revision."""
        said = self._run(judges, "list", "--server").stdout
        return {
            match["scenario"]
            for match in _LISTED.finditer(said)
            if self.revision in match["revisions"].split(",")
        }

    def findings(self, judges: Path, url: str, directory: Path) -> dict[str, "Finding"]:
        """Run the suite and return its findings by scenario; its exit status does not matter."""
        done = self._run(
            judges, "server", "--url", url, *self.options, "--output-dir", str(directory)
        )
        assert "=== SUMMARY ===" in done.stdout, done.stdout + done.stderr
        return {
            _scenario(path): Finding(json.loads((path / "checks.json").read_text()))
            for path in directory.iterdir()
        }

    def _run(self, judges: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        script = judges / "node_modules" / self.package / "dist" / "index.js"
        command = (node_of(judges), str(script), *arguments)
        return subprocess.run(
            command, cwd=judges, capture_output=True, encoding="utf-8", timeout=_TIMEOUT_S
        )


class Finding:
    """The checks of one scenario."""

    def __init__(self, checks: list[JSON]) -> None:
        self._checks = checks

    @property
    def complaints(self) -> list[str]:
        """Return the failures and the warnings."""
        return [
            _describe(check) for check in self._checks if check["status"] in ("FAILURE", "WARNING")
        ]

    @property
    def is_passed(self) -> bool:
        """Tell whether at least one check passed and none failed or warned."""
        checked = [
            check
            for check in self._checks
            if check["status"] == "SUCCESS" and check["id"] != _SCHEMA
        ]
        return bool(checked) and not self.complaints

    @property
    def violates_the_schema(self) -> bool:
        """Tell whether a message violated the schema of the protocol."""
        return any(
            check["id"] == _SCHEMA and check["status"] == "FAILURE" for check in self._checks
        )


def _scenario(directory: Path) -> str:
    found = _SAVED.fullmatch(directory.name)
    assert found, directory
    return found["scenario"]


def _describe(check: JSON) -> str:
    return f"{check['status']} {check['id']}: {check.get('errorMessage') or check['description']}"
