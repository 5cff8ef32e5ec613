"""The other SDKs and the judges, fetched once into a cache directory and kept there between runs."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
JUDGES = Path(__file__).parent / "judges"
SDK_V1 = "mcp>=1.20,<2"


def python_with_sdk_v1(cache: Path) -> Path:
    """The interpreter of a virtual environment that holds the first official SDK."""
    wanted = f"{SDK_V1} on {sys.version}"
    home = _kept(cache / f"sdk-v1-{_digest(wanted)}", _install_sdk_v1)
    return _interpreter(home)


def node_packages(cache: Path) -> Path:
    """A directory with our scripts beside the npm packages that `package.json` pins."""
    home = _npm(cache, "node", SCRIPTS / "package.json")
    for script in SCRIPTS.glob("*.mjs"):  # a module finds its packages beside itself, not where it is run
        shutil.copy(script, home)
    return home


def judges(cache: Path) -> Path:
    """A directory with the conformance suites and the Inspector, and a Node that is new enough for them."""
    return _npm(cache, "judges", JUDGES / "package.json")


def node() -> str:
    return _program("node")


def node_of(home: Path) -> str:
    """The Node that was installed among the packages."""
    return str(home / "node_modules" / ".bin" / "node")


def _npm(cache: Path, name: str, manifest: Path) -> Path:
    """The directory of the packages that the manifest pins."""
    wanted = manifest.read_text(encoding="utf-8")
    return _kept(cache / f"{name}-{_digest(wanted)}", lambda home: _install_node_packages(home, manifest))


def _install_sdk_v1(home: Path) -> None:
    venv.create(home, with_pip=True)
    _fetch([str(_interpreter(home)), "-m", "pip", "install", "--quiet", "--retries", "1", SDK_V1], home)


def _install_node_packages(home: Path, manifest: Path) -> None:
    home.mkdir()
    shutil.copy(manifest, home)
    quiet = ("--loglevel", "error", "--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries", "1")
    _fetch([_program("npm"), "install", *quiet], home)


def _kept(home: Path, install: Callable[[Path], None]) -> Path:
    """The directory, installed beside its place and then moved there: it is whole or it is not there."""
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            draft = Path(scratch) / home.name
            install(draft)
            _move_unless_there(draft, home)
    return home


def _move_unless_there(draft: Path, home: Path) -> None:
    try:
        draft.rename(home)
    except OSError:
        if not home.exists():  # otherwise another test process was first, and its copy is as good
            raise


def _fetch(command: Sequence[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        _do_without(f"could not fetch {directory.name}: {' '.join(done.stdout.split())[:300]}")


def _program(name: str) -> str:
    return shutil.which(name) or _do_without(f"{name} is not on the PATH")


def _do_without(reason: str) -> NoReturn:
    """Skip where a developer lacks the network or Node; fail where all of it must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _interpreter(home: Path) -> Path:
    return home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
