"""The servers: how each is installed, given its data and started."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError

SQLITE, JSONL, NPM, FLOOR = "sqlite", "jsonl", "npm", "floor"
GRAPH, LOG = "graph", "log"
SERVER_NAMES = (SQLITE, JSONL, NPM, FLOOR, GRAPH, LOG)
OURS = (SQLITE, JSONL)
# Those that speak the graph catalogue, and those that speak the reference one.
FOLLOWERS = (GRAPH, LOG)
SPEAKERS = (SQLITE, JSONL, NPM, FLOOR)

REFERENCE = "@modelcontextprotocol/server-memory"
REFERENCE_VERSION = "2026.8.31"  # pinned, so that ratios of two runs can be compared
POLYMNIA = (sys.executable, "-m", "polymnia")

STORE = "{store}"

Load = Callable[[Path, Path], None]


@dataclass(frozen=True, slots=True)
class Server:
    """A peer: STORE in its command and variables stands for the path of its store.

    `load` fills that store, a file called `file`, from a dataset. One without `load`
    keeps nothing, and its replies are canned.
    """

    name: str
    title: str
    file: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    load: Load | None = None


def open_servers(names: Sequence[str], *, cache: Path, polymnia: Sequence[str]) -> tuple[Server, ...]:
    """The named servers, ready to start. Raises BenchError if one cannot be had."""
    makers: Mapping[str, Callable[[], Server]] = {
        SQLITE: lambda: polymnia_sqlite(polymnia),
        JSONL: lambda: polymnia_jsonl(polymnia),
        NPM: lambda: npm_reference(cache),
        FLOOR: bare_floor,
        GRAPH: lambda: polymnia_graph(polymnia, GRAPH, "memory.db"),
        LOG: lambda: polymnia_graph(polymnia, LOG, "memory.mcpmem"),
    }
    return tuple(makers[name]() for name in names)


def polymnia_sqlite(polymnia: Sequence[str]) -> Server:
    """Polymnia on SQLite, filled by its own import command."""
    return Server(
        name=SQLITE,
        title="polymnia on SQLite",
        file="memory.db",
        command=serve(polymnia),
        load=importing(polymnia),
    )


def polymnia_graph(polymnia: Sequence[str], name: str, file: str) -> Server:
    """Polymnia's graph catalogue, on SQLite or on the binary log."""
    return Server(
        name=name,
        title=f"polymnia's graph catalogue on {file}",
        file=file,
        command=serve(polymnia, "graph"),
        load=importing(polymnia),
    )


def importing(polymnia: Sequence[str]) -> Load:
    """Filling a store by Polymnia's own import command."""

    def load(dataset: Path, store: Path) -> None:
        run([*polymnia, "import", str(dataset), "--store", str(store)])

    return load


def polymnia_jsonl(polymnia: Sequence[str]) -> Server:
    """Polymnia on the reference server's own file."""
    return Server(
        name=JSONL,
        title="polymnia on JSONL",
        file="memory.jsonl",
        command=serve(polymnia),
        load=copy,
    )


def npm_reference(cache: Path) -> Server:
    """The reference server, installed into the cache when it is not there yet."""
    package = cache / "node_modules" / REFERENCE
    install_reference(package, cache)
    script = str(package / "dist" / "index.js")
    return Server(
        name=NPM,
        title="the npm reference server",
        file="memory.jsonl",
        command=("node", script),
        variables={"MEMORY_FILE_PATH": STORE},
        load=copy,
    )


def bare_floor() -> Server:
    """The bare loop; it keeps nothing."""
    script = str(Path(__file__).with_name("floor.py"))
    return Server(
        name=FLOOR,
        title="the floor",
        file="none",
        command=(sys.executable, script),
    )


def clean_environment() -> dict[str, str]:
    """The caller's environment without the settings of memory servers."""
    foreign = ("MEMORY_", "POLYMNIA_")
    return {k: v for k, v in os.environ.items() if not k.startswith(foreign)}


def install_reference(package: Path, cache: Path) -> None:
    """Make sure of the pinned version in the cache."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise BenchError(
            "The npm reference server needs Node.js (node and npm on the PATH); "
            "install it, or leave that server out with --servers sqlite,jsonl,floor."
        )
    if installed_version(package) == REFERENCE_VERSION:
        return
    cache.mkdir(parents=True, exist_ok=True)
    wanted = f"{REFERENCE}@{REFERENCE_VERSION}"
    run(["npm", "install", "--prefix", str(cache), "--no-audit", "--no-fund", wanted])


def installed_version(package: Path) -> str | None:
    """The version in the cache, if any."""
    manifest = package / "package.json"
    if not manifest.exists():
        return None
    return str(json.loads(manifest.read_bytes())["version"])


def serve(polymnia: Sequence[str], dialect: str = "reference") -> Sequence[str]:
    """The command of a Polymnia that speaks this catalogue."""
    return (*polymnia, "serve", "--dialect", dialect, "--store", STORE)


def copy(dataset: Path, store: Path) -> None:
    """For servers whose store is the dataset's own format."""
    shutil.copyfile(dataset, store)


def run(command: Sequence[str]) -> None:
    """Run a command to its end. Raises BenchError with what it said if it failed."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-600:]
        raise BenchError(f"`{' '.join(command)}` failed: {said}")
