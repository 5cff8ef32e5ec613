"""A server with the demo memory and tokens of every kind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from polymnia.auth.authenticator import tokens_of
from polymnia.cli.demo import MAIN, fill
from polymnia.model import Capability
from tests.transports.running import Running


class Ui:
    """A running server: where it is, and the tokens by which to log in."""

    def __init__(self, store: str, server: Running) -> None:
        self.store = store
        self.server = server
        self.origin = f"http://127.0.0.1:{server.port}"

    def token(
        self, name: str, can: Capability = "admin", *, only: tuple[str, ...] | None = None
    ) -> str:
        """Create a token. From the first one on, every client needs one."""
        tokens = tokens_of(self.store)
        assert tokens is not None
        return tokens.create(name, can=can, workspaces=only)


@contextmanager
def demo_server(
    directory: Path, *flags: str, prepare: Callable[[str], None] = lambda store: None
) -> Iterator[Ui]:
    """Serve the demo memory, which is created in the directory.

    `prepare` gets the store's URL before that.
    """
    fill(directory)
    prepare(f"{directory}/")
    with Running(f"{directory}/", "--workspace", MAIN, *flags, dialect="native") as server:
        yield Ui(f"{directory}/", server)
