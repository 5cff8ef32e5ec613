"""Install the other SDKs, the conformance suites, the Inspector and axe-core once, into a cache
directory.
"""

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

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = Path(__file__).parent / "scripts"
JUDGES = Path(__file__).parent / "judges"
CLIENTS = Path(__file__).parent / "clients"
MCPJAM = Path(__file__).parent / "mcpjam"
WEB = Path(__file__).parent.parent / "web"
SDK_V1 = "mcp>=1.20,<2"
FASTMCP = "fastmcp==4.1.2"
FRAMEWORKS = ROOT / "packages" / "polymnia-frameworks"


def python_with_sdk_v1(cache: Path) -> Path:
    """Return the interpreter of a virtual environment with version 1 of the official SDK."""
    wanted = f"{SDK_V1} on {sys.version}"
    home = _kept(
        cache / f"sdk-v1-{_digest(wanted)}", lambda home: _install_python_package(home, SDK_V1)
    )
    return _interpreter(home)


def python_with_fastmcp(cache: Path) -> Path:
    """Return the interpreter of a virtual environment with fastmcp, which has its own client."""
    wanted = f"{FASTMCP} on {sys.version}"
    home = _kept(
        cache / f"fastmcp-{_digest(wanted)}", lambda home: _install_python_package(home, FASTMCP)
    )
    return _interpreter(home)


def python_with_frameworks(cache: Path) -> Path:
    """Return the interpreter of a virtual environment with Polymnia and agent frameworks."""
    manifests = [folder / "pyproject.toml" for folder in (ROOT, FRAMEWORKS)]
    wanted = "\n".join(manifest.read_text("utf-8") for manifest in manifests) + sys.version
    home = _kept(cache / f"frameworks-{_digest(wanted)}", _install_frameworks)
    return _interpreter(home)


def _install_frameworks(home: Path) -> None:
    # uv installs these hundred packages in a third of pip's time.
    uv = [sys.executable, "-m", "uv"]
    _fetch([*uv, "venv", "--quiet", "--python", sys.executable, str(home)], home.parent)
    install = [*uv, "pip", "install", "--quiet", "--python", str(_interpreter(home))]
    _fetch([*install, "--editable", str(ROOT), "--editable", f"{FRAMEWORKS}[test]"], home.parent)


def node_packages(cache: Path) -> Path:
    """Return a directory with our scripts and the npm packages that `package.json` pins."""
    return _scripts(cache, "node", SCRIPTS)


def mcpjam(cache: Path) -> Path:
    """Return a directory with MCPJam's checks, and our script that runs them."""
    return _scripts(cache, "mcpjam", MCPJAM)


def judges(cache: Path) -> Path:
    """Return a directory with the conformance suites, the Inspector and a Node that is new enough
    for them.
    """
    return _npm(cache, "judges", JUDGES / "package.json")


def client_programs(cache: Path) -> Path:
    """Return a directory with the programs of MCP clients, and with tools that check what we
    publish.
    """
    return _scripts(cache, "clients", CLIENTS)


def axe(cache: Path) -> Path:
    """Return the script of axe-core, which finds accessibility violations on a page."""
    return _npm(cache, "web", WEB / "package.json") / "node_modules" / "axe-core" / "axe.min.js"


def node() -> str:
    return program("node")


def program(*names: str) -> str:
    """Return the path of the first of these programs that is there."""
    return next(filter(None, map(shutil.which, names)), None) or _do_without(
        f"{names[0]} is not on the PATH"
    )


def node_of(home: Path) -> str:
    """Return the Node that was installed with the packages."""
    return str(home / "node_modules" / ".bin" / "node")


def _scripts(cache: Path, name: str, folder: Path) -> Path:
    """Return a directory with the scripts of a folder and the packages that it pins."""
    home = _npm(cache, name, folder / "package.json")
    # A module finds its packages beside itself, not where it is run.
    for script in folder.glob("*.mjs"):
        shutil.copy(script, home)
    return home


def _npm(cache: Path, name: str, manifest: Path) -> Path:
    """Return the directory with the packages that the manifest pins."""
    wanted = manifest.read_text(encoding="utf-8")
    return _kept(
        cache / f"{name}-{_digest(wanted)}", lambda home: _install_node_packages(home, manifest)
    )


def _install_python_package(home: Path, package: str) -> None:
    venv.create(home, with_pip=True)
    _fetch(
        [str(_interpreter(home)), "-m", "pip", "install", "--quiet", "--retries", "1", package],
        home,
    )


def _install_node_packages(home: Path, manifest: Path) -> None:
    home.mkdir()
    shutil.copy(manifest, home)
    quiet = (
        "--loglevel",
        "error",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--fetch-retries",
        "1",
    )
    _fetch([program("npm"), "install", *quiet], home)


def _kept(home: Path, install: Callable[[Path], None]) -> Path:
    """Return the directory.

    Install it under another name and rename it, so that it is complete or missing.
    """
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
    done = subprocess.run(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        _do_without(f"could not fetch {directory.name}: {' '.join(done.stdout.split())[:300]}")


def _do_without(reason: str) -> NoReturn:
    """Skip the test, or fail it where CI is set.

    A developer may lack Node or a network, the gate may not.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _interpreter(home: Path) -> Path:
    return home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
