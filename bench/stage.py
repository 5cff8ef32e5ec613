"""A stage: one server on one store of one size, ready to be measured."""

import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from time import time_ns

from bench import dataset as data
from bench.client import Session, open_session
from bench.dataset import Dataset
from bench.pipe import Launch
from bench.servers import STORE, Server, clean_environment
from polymnia.stores import open_store
from polymnia.stores.contract import Store


class Stage:
    """A server's store, the session on it, and the random choices made for it.

    The seed of the choices is the size, so that all servers are asked alike.
    """

    def __init__(self, server: Server, size: int, home: Path) -> None:
        self.server = server
        self.size = size
        self.home = home
        self.rng = Random(size)
        self._store = home / "store" / server.file
        self._session: Session | None = None
        self._direct: Store | None = None
        self._numbers = count(1)
        self.loaded_at = 0  # microseconds since 1970
        self.import_seconds = 0.0  # of processor time
        self.dataset_bytes = 0

    @property
    def title(self) -> str:
        """The name that errors use."""
        return f"{self.server.title} ({self.size:,} entities)"

    def load(self, dataset: Dataset) -> None:
        """Put the dataset into the store. An empty one leaves no file."""
        self._store.parent.mkdir(parents=True)
        before = children_seconds()
        if dataset.size and self.server.load is not None:
            self.server.load(dataset.path, self._store)
        self.import_seconds = children_seconds() - before
        self.dataset_bytes = dataset.path.stat().st_size
        self.loaded_at = time_ns() // 1000

    def start(self) -> Session:
        """Return a new session, which the caller closes."""
        server, store = self.server, str(self._store)
        variables = {k: v.replace(STORE, store) for k, v in server.variables.items()}
        launch = Launch(
            title=self.title,
            command=[part.replace(STORE, store) for part in server.command],
            environment={**clean_environment(), **variables},
            log=self.home / "stderr.txt",
        )
        return open_session(launch)

    def session(self) -> Session:
        """Return the session that the rows share. Start it if necessary."""
        if self._session is None:
            self._session = self.start()
        return self._session

    def direct(self) -> Store:
        """Return the store itself, opened in this process beside the server."""
        if self._direct is None:
            self._direct = open_store(str(self._store))
        return self._direct

    def close(self) -> None:
        """End the shared session and close the store."""
        if self._session is not None:
            self._session.close()
        if self._direct is not None:
            self._direct.close()

    def stored_bytes(self) -> int:
        """Return the size of the store on disk, side files included."""
        files = self._store.parent.rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())

    def pick(self) -> int:
        """Return the number of a random entity of the dataset."""
        return self.rng.randrange(self.size)

    def new_number(self) -> int:
        """Return a number that was not returned before, for names that must be new."""
        return next(self._numbers)


@contextmanager
def open_stages(
    servers: Sequence[Server], sizes: Sequence[int], home: Path, say: Callable[[str], None]
) -> Iterator[tuple[Stage, ...]]:
    """Open a loaded stage for each size and server. Their sessions end with the block."""
    with ExitStack() as stack:
        stages = []
        for size in sizes:
            folder = home / str(size)
            folder.mkdir(parents=True)
            dataset = data.write_dataset(size, folder / "dataset.jsonl")
            for server in [server for server in servers if server.can_hold(size)]:
                stage = Stage(server, size, folder / server.name)
                stack.callback(stage.close)
                say(f"loading {stage.title}")
                stage.load(dataset)
                stages.append(stage)
        yield tuple(stages)


def children_seconds() -> float:
    """Return the processor time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
