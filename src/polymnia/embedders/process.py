"""The shared embedder process, as its clients see it: one process per user holds the model for all.

Texts go in and vectors come out, over a Unix socket in a private directory. The process keeps no
data, opens no store and uses no network. The first client that needs it starts it; it ends after
some idle minutes (`__main__.py`). Its socket is named after the package's version and the model, so
an upgrade never talks to an old process.

A message is a length (4 bytes, big-endian) and that many bytes of MessagePack. The process sends
every client a `Greeting` once its model is loaded, and a `EmbedReply` for each `EmbedRequest`.
"""

import logging
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import DecodeError, Struct, msgpack

from polymnia import __version__
from polymnia.disk.lock import file_lock
from polymnia.embedders.base import LOCAL, MULTILINGUAL, Embedder, model_fingerprint
from polymnia.errors import EmbedderError, StoreBusy

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

logger = logging.getLogger(__name__)

# Change it with the messages.
PROTOCOL = 1
# A process that says nothing for this long is given up. Loading the model takes some seconds on a
# busy machine.
REPLY_TIMEOUT_S = 30.0
MAX_MESSAGE_BYTES = 1 << 28
_LENGTH_BYTES = 4
# A socket's name may have 104 bytes on macOS and 108 on Linux, with the final zero.
_MAX_PATH_BYTES = 103
_BACKLOG = 64

Message = TypeVar("Message", bound=Struct)


class Greeting(Struct, array_like=True):
    """Who the process is and which model it holds."""

    version: str
    pid: int
    identity: str
    dimension: int
    batch_size: int


class EmbedRequest(Struct, array_like=True):
    """Texts to embed."""

    texts: Sequence[str]
    asking: bool


class EmbedReply(Struct, array_like=True):
    """Vectors as little-endian float32, one after another, or why there are none."""

    packed: bytes = b""
    problem: str = ""


class ProcessLost(Exception):
    """The process cannot be reached or started, or does not speak our language."""


def can_share(url: str) -> bool:
    """Return True if a process can hold this embedder's model for all of a user's servers."""
    has_model = url.partition(":")[0] in (LOCAL, MULTILINGUAL, "onnx")
    # A frozen application is not a Python that could run our module.
    is_python = bool(sys.executable) and not getattr(sys, "frozen", False)
    return has_model and is_python and sys.platform != "win32"


def open_shared(url: str, directory: Path, load: Callable[[], Embedder]) -> Embedder:
    """Return the embedder in the shared process, or load it here if there can be none.

    Raise EmbedderError if that fails too.
    """
    try:
        return ProcessEmbedder(url, socket_path(url, directory), load)
    except (ProcessLost, OSError) as exc:
        logger.info("loading the model in this process: %s", exc)
        return load()


def socket_path(url: str, directory: Path) -> Path:
    """Return the socket of the process for this version and model, in a private directory.

    Raise OSError if there can be no such directory.
    """
    identity = f"{PROTOCOL}\n{__version__}\n{url}\n{model_fingerprint(url)}"
    name = f"embedder-{sha256(identity.encode()).hexdigest()[:16]}.socket"
    if len(os.fsencode(directory / name)) > _MAX_PATH_BYTES:
        directory = Path(f"/tmp/polymnia-{os.getuid()}")  # checked below
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(f"{directory} is not a directory of this user")
    if status.st_mode & 0o077:
        directory.chmod(0o700)
    return directory / name


def ask_running(url: str, directory: Path, text: str, *, timeout: float) -> tuple[str, bytes]:
    """Return the model's identity and the vector of a question, from a process that runs already.

    `timeout` bounds each step in seconds. Raise ProcessLost or OSError if no process answers in
    time, EmbedderError if its model fails.
    """
    with _connect(socket_path(url, directory), timeout) as connection:
        try:
            greeting = receive_message(connection, Greeting)
            return greeting.identity, _ask(connection, EmbedRequest([text], True))
        except (EOFError, DecodeError) as exc:
            raise ProcessLost(f"the process has ended ({exc})") from exc


def start_process(url: str, directory: Path) -> None:
    """Start the process unless it runs, without waiting for its model.

    Raise ProcessLost, OSError.
    """
    _reach(socket_path(url, directory), url).close()


class ProcessEmbedder:
    """The model in the shared process. If the process fails, this process loads the model.

    Every request has a connection of its own, so a batch of passages does not delay a question.
    """

    def __init__(self, url: str, path: Path, load: Callable[[], Embedder]) -> None:
        """Raise ProcessLost, OSError."""
        self._url = url
        self._path = path
        self._load = load
        self._fallback: Embedder | None = None
        self._fallback_lock = threading.Lock()
        self._connecting: list[None] = []  # one for each thread that waits for a greeting
        greeting, _ = self._request(None)
        self.pid = greeting.pid
        self.identity = greeting.identity
        self.dimension = greeting.dimension
        self.batch_size = greeting.batch_size

    @property
    def is_loading(self) -> bool:
        """True while a process is started again, or the model is loaded here."""
        return bool(self._connecting) or self._fallback_lock.locked()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        if self._fallback is None:
            try:
                _, packed = self._request(EmbedRequest(texts, asking))
                import numpy as np  # a hook asks the process without numpy, which is slow to load

                return np.frombuffer(packed, "<f4").reshape(len(texts), self.dimension)
            except (ProcessLost, OSError) as exc:
                logger.info("loading the model in this process: %s", exc)
        with self._fallback_lock:
            if self._fallback is None:
                self._fallback = self._load()
        return self._fallback.embed(texts, asking=asking)

    def _request(self, request: EmbedRequest | None) -> tuple[Greeting, bytes]:
        """Return what the process says of itself and, for a request, packed vectors.

        Raise EmbedderError, ProcessLost, OSError.
        """
        problem: Exception | None = None
        for _ in range(2):  # if it has just ended, start another one: nothing is lost
            try:
                connection, greeting = self._connect()
                with connection:
                    if greeting.version != __version__:
                        raise ProcessLost(f"the process is of version {greeting.version}")
                    return greeting, _ask(connection, request) if request else b""
            except (ConnectionError, EOFError, DecodeError) as exc:
                problem = exc
        raise ProcessLost(f"the process has ended ({problem})") from problem

    def _connect(self) -> tuple[socket.socket, Greeting]:
        """Return a connection to the process, which has loaded its model."""
        self._connecting.append(None)
        try:
            connection = _reach(self._path, self._url)
            try:
                return connection, receive_message(connection, Greeting)
            except BaseException:
                connection.close()
                raise
        finally:
            self._connecting.pop()


def _ask(connection: socket.socket, request: EmbedRequest) -> bytes:
    """Return the packed vectors. Raise EmbedderError, EOFError, DecodeError, OSError."""
    send_message(connection, request)
    reply = receive_message(connection, EmbedReply)
    if reply.problem:
        raise EmbedderError(reply.problem)
    return reply.packed


def _reach(path: Path, url: str) -> socket.socket:
    """Return a connection to the process. Start the process if there is none."""
    with suppress(FileNotFoundError, ConnectionRefusedError):
        return _connect(path)
    try:
        with file_lock(path):
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return _connect(path)  # another client was first
            path.unlink(missing_ok=True)
            _start(path, url)
            return _connect(path)
    except StoreBusy as exc:
        raise ProcessLost("another client has been starting the process for too long") from exc


def _connect(path: Path, timeout: float | None = None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout or REPLY_TIMEOUT_S)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _start(path: Path, url: str) -> None:
    """Start the process.

    We listen on its socket and hand it over, so that clients can connect before it runs.
    """
    import subprocess  # most programs find a process that runs

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_BACKLOG)
        descriptor = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "polymnia.embedders", str(descriptor), str(path), url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # It outlives this process, so it gets neither its variables, which may hold secrets,
            # nor its terminal.
            env={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            start_new_session=True,
            pass_fds=[descriptor],
        )
    # No other thread would collect its exit status.
    threading.Thread(target=process.wait, name="polymnia-embedder-exit", daemon=True).start()


def send_message(connection: socket.socket, message: Struct) -> None:
    """Send one message. Raise OSError."""
    data = msgpack.encode(message)
    connection.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def receive_message(connection: socket.socket, kind: type[Message]) -> Message:
    """Return the next message. Raise EOFError at the end, DecodeError, OSError."""
    length = int.from_bytes(_receive_bytes(connection, _LENGTH_BYTES), "big")
    if length > MAX_MESSAGE_BYTES:
        raise DecodeError(f"a message of {length} bytes")
    return msgpack.decode(_receive_bytes(connection, length), type=kind)


def _receive_bytes(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            raise EOFError("the connection was closed")
        data += part
    return bytes(data)
