"""The shared embedder process.

`process.py` starts it: `python -m polymnia.embedders FD PATH URL`.
"""

import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic

from msgspec import DecodeError

from polymnia import __version__
from polymnia.disk.lock import file_lock
from polymnia.embedders.base import Embedder, open_embedder
from polymnia.embedders.process import (
    EmbedReply,
    EmbedRequest,
    Greeting,
    receive_message,
    send_message,
)
from polymnia.errors import EmbedderError

# The process ends after this long without a request.
IDLE_EXIT_S = 300.0


class EmbedderService:
    """Answers the requests of all clients with one model, each client on its own thread.

    The model itself lets questions go before passages.
    """

    def __init__(
        self, listener: socket.socket, path: Path, embedder: Embedder, *, idle: float = IDLE_EXIT_S
    ) -> None:
        self._listener = listener
        self._path = path
        self._inode = path.stat().st_ino
        self._embedder = embedder
        self._idle = idle
        self._lock = threading.Lock()
        self._running = 0
        self._used_at = monotonic()

    def run(self) -> None:
        """Serve until there was no request for some minutes."""
        while True:
            while (seconds := self._seconds_left()) > 0:
                self._accept(seconds)
            self._remove_socket()
            # A client may have connected just before: it is served, and no other can follow it.
            if not self._accept(0):
                return

    def _seconds_left(self) -> float:
        with self._lock:
            if self._running:
                return self._idle
            return self._used_at + self._idle - monotonic()

    def _accept(self, timeout: float) -> bool:
        self._listener.settimeout(timeout)
        try:
            connection, _ = self._listener.accept()
        except (TimeoutError, BlockingIOError):
            return False
        connection.settimeout(None)
        with self._lock:
            self._used_at = monotonic()
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        return True

    def _remove_socket(self) -> None:
        """Remove the socket, unless another process has put its own there."""
        with file_lock(self._path), suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()

    def _serve(self, connection: socket.socket) -> None:
        embedder = self._embedder
        greeting = Greeting(
            version=__version__,
            pid=os.getpid(),
            identity=embedder.identity,
            dimension=embedder.dimension,
            batch_size=embedder.batch_size,
        )
        with connection, suppress(OSError, EOFError, DecodeError):  # the client is gone
            send_message(connection, greeting)
            while True:
                request = receive_message(connection, EmbedRequest)
                with self._lock:
                    self._running += 1
                try:
                    reply = self._embed(request)
                finally:
                    with self._lock:
                        self._running -= 1
                        self._used_at = monotonic()
                send_message(connection, reply)

    def _embed(self, request: EmbedRequest) -> EmbedReply:
        try:
            vectors = self._embedder.embed(request.texts, asking=request.asking)
        except EmbedderError as exc:
            return EmbedReply(problem=str(exc))
        return EmbedReply(vectors.astype("<f4").tobytes())


def main() -> None:
    """Load the model, then serve. Clients that are connected already wait for the greeting."""
    descriptor, path, url = sys.argv[1:]
    embedder = open_embedder(url)
    os.chdir("/")  # keep no directory of the first client in use
    if embedder is not None:
        EmbedderService(socket.socket(fileno=int(descriptor)), Path(path), embedder).run()


if __name__ == "__main__":
    main()
    # Threads may still be inside the model: ending the interpreter under them would abort.
    os._exit(0)
