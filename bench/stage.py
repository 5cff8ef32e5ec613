"""The stage: one server on one store of one size, ready to be measured."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random

from bench import dataset as data
from bench.client import Session, open_session
from bench.dataset import Dataset
from bench.pipe import Launch
from bench.servers import STORE, Server, clean_environment


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
        self._numbers = count(1)
        self._unread: list[int] = []

    @property
    def title(self) -> str:
        """How an error names it."""
        return f"{self.server.title} ({self.size:,} entities)"

    def load(self, dataset: Dataset) -> None:
        """Put the dataset into the store; an empty one leaves no file at all."""
        self._store.parent.mkdir(parents=True)
        if dataset.size and self.server.load is not None:
            self.server.load(dataset.path, self._store)

    def start(self) -> Session:
        """A new session, which the caller closes."""
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
        """The session that the rows share, started when first asked for."""
        if self._session is None:
            self._session = self.start()
        return self._session

    def close(self) -> None:
        """End the shared session."""
        if self._session is not None:
            self._session.close()

    def stored_bytes(self) -> int:
        """What the store takes on disk, side files included."""
        files = self._store.parent.rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())

    def pick(self) -> int:
        """The number of a random entity of the dataset."""
        return self.rng.randrange(self.size)

    def pick_unread(self) -> int:
        """The number of a random entity that was not picked this way before, until all have been."""
        if not self._unread:
            self._unread = self.rng.sample(range(self.size), self.size)
        return self._unread.pop()

    def new_number(self) -> int:
        """A number not given before, for names that must be new."""
        return next(self._numbers)


@contextmanager
def open_stages(
    servers: Sequence[Server], sizes: Sequence[int], home: Path, say: Callable[[str], None]
) -> Iterator[tuple[Stage, ...]]:
    """A stage for each size and server, loaded; their sessions end with the block."""
    with ExitStack() as stack:
        stages = []
        for size in sizes:
            folder = home / str(size)
            folder.mkdir(parents=True)
            dataset = data.write_dataset(size, folder / "dataset.jsonl")
            for server in servers:
                stage = Stage(server, size, folder / server.name)
                stack.callback(stage.close)
                say(f"loading {stage.title}")
                stage.load(dataset)
                stages.append(stage)
        yield tuple(stages)
