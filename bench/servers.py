"""The servers: how each is installed, filled and started."""

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
# Those with the graph catalogue, and those with the reference catalogue.
FOLLOWERS = (GRAPH, LOG)
SPEAKERS = (SQLITE, JSONL, NPM, FLOOR)

REFERENCE = "@modelcontextprotocol/server-memory"
REFERENCE_VERSION = "2026.8.31"  # pinned, so that ratios of two runs can be compared
POLYMNIA = (sys.executable, "-m", "polymnia")
# No settings file, and no model in the background.
POLYMNIA_VARIABLES = {"POLYMNIA_CONFIG": os.devnull, "POLYMNIA_EMBEDDER": "none"}

# What reads or writes a whole memory at once is not measured beyond this many entities.
WHOLE_MEMORY_LIMIT = 200_000

STORE = "{store}"

Load = Callable[[Path, Path], None]


@dataclass(frozen=True, slots=True)
class Server:
    """A server and how to start it.

    STORE in its command and variables stands for the path of its store.

    `load` fills that store, a file called `file`, from a dataset. A server without `load` keeps
    nothing and sends constant replies.
    """

    name: str
    title: str
    file: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    load: Load | None = None
    max_size: int | None = None  # entities

    def can_hold(self, size: int) -> bool:
        """Return True if the server is measured with that many entities."""
        return self.max_size is None or size <= self.max_size


def open_servers(
    names: Sequence[str], *, cache: Path, polymnia: Sequence[str]
) -> tuple[Server, ...]:
    """Return the named servers, ready to start. Raise BenchError if one cannot be installed."""
    makers: Mapping[str, Callable[[], Server]] = {
        SQLITE: lambda: polymnia_sqlite(polymnia),
        JSONL: lambda: polymnia_jsonl(polymnia),
        NPM: lambda: npm_reference(cache),
        FLOOR: bare_floor,
        GRAPH: lambda: polymnia_graph(polymnia, GRAPH, "memory.db"),
        LOG: lambda: polymnia_graph(polymnia, LOG, "memory.mcpmem", WHOLE_MEMORY_LIMIT),
    }
    return tuple(makers[name]() for name in names)


def polymnia_sqlite(polymnia: Sequence[str]) -> Server:
    """Return Polymnia on SQLite, filled by its own import command."""
    return Server(
        name=SQLITE,
        title="polymnia on SQLite",
        file="memory.db",
        command=serve(polymnia),
        variables=POLYMNIA_VARIABLES,
        load=load_by_import(polymnia),
    )


def polymnia_graph(
    polymnia: Sequence[str], name: str, file: str, max_size: int | None = None
) -> Server:
    """Return Polymnia's graph catalogue, on SQLite or on the binary log."""
    return Server(
        name=name,
        title=f"polymnia's graph catalogue on {file}",
        file=file,
        command=serve(polymnia, "graph"),
        variables=POLYMNIA_VARIABLES,
        load=load_by_import(polymnia),
        max_size=max_size,
    )


def load_by_import(polymnia: Sequence[str]) -> Load:
    """Return a function that fills a store by `polymnia import`, once for all servers with that
    kind of store.
    """

    def load(dataset: Path, store: Path) -> None:
        filled = dataset.with_suffix(store.suffix)
        if not filled.exists():
            run([*polymnia, "import", str(dataset), "--store", str(filled)])
        copy(filled, store)

    return load


def polymnia_jsonl(polymnia: Sequence[str]) -> Server:
    """Return Polymnia on the reference server's own file."""
    return Server(
        name=JSONL,
        title="polymnia on JSONL",
        file="memory.jsonl",
        command=serve(polymnia),
        variables=POLYMNIA_VARIABLES,
        load=copy,
        max_size=WHOLE_MEMORY_LIMIT,
    )


def npm_reference(cache: Path) -> Server:
    """Return the reference server, installed into the cache if it is not there yet."""
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
        max_size=WHOLE_MEMORY_LIMIT,
    )


def bare_floor() -> Server:
    """Return the bare loop; it keeps nothing."""
    script = str(Path(__file__).with_name("floor.py"))
    return Server(
        name=FLOOR,
        title="the floor",
        file="none",
        command=(sys.executable, script),
        max_size=WHOLE_MEMORY_LIMIT,
    )


def clean_environment() -> dict[str, str]:
    """Return the caller's environment without the settings of memory servers.

    Python may write bytecode: an installed program has it.
    """
    foreign = ("MEMORY_", "POLYMNIA_", "PYTHONDONTWRITEBYTECODE")
    return {k: v for k, v in os.environ.items() if not k.startswith(foreign)}


def install_reference(package: Path, cache: Path) -> None:
    """Install the pinned version into the cache. Raise BenchError."""
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
    """Return the version in the cache; None if there is none."""
    manifest = package / "package.json"
    if not manifest.exists():
        return None
    return str(json.loads(manifest.read_bytes())["version"])


def serve(polymnia: Sequence[str], dialect: str = "reference") -> Sequence[str]:
    """Return the command that serves this dialect."""
    return (*polymnia, "serve", "--dialect", dialect, "--store", STORE)


def copy(dataset: Path, store: Path) -> None:
    """Fill a store that has the dataset's own format."""
    shutil.copyfile(dataset, store)


def run(command: Sequence[str]) -> None:
    """Run a command to its end. Raise BenchError with its output if it fails."""
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
