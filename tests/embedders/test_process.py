"""The shared embedder process.

Private, started once, of the right version, and never missed when it is gone.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from polymnia import __version__
from polymnia.embedders import open_embedder, process
from polymnia.embedders.__main__ import EmbedderService
from polymnia.embedders.base import Embedder
from polymnia.embedders.process import (
    EmbedReply,
    EmbedRequest,
    Greeting,
    ProcessEmbedder,
    ask_running,
    open_shared,
    receive_message,
    send_message,
    socket_path,
    start_process,
)
from polymnia.embedders.turns import Turns
from polymnia.errors import EmbedderError
from tests.embedders.bag import BagEmbedder
from tests.processes import TIMEOUT_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows shares no process")

# `python -m bench.meaning --questions 1000` asks more.
QUESTIONS = 200


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a short name, as a socket needs it."""
    return tmp_path_factory.mktemp("run") / "polymnia"


@pytest.fixture
def shared(directory: Path) -> Iterator[ProcessEmbedder]:
    """The local model in a real process, which ends with the test."""
    embedder = open_process(directory)
    yield embedder
    end(directory)


def open_process(directory: Path) -> ProcessEmbedder:
    embedder = open_embedder("local", share_in=directory)
    assert isinstance(embedder, ProcessEmbedder)
    return embedder


def end(directory: Path) -> None:
    os.kill(open_process(directory).pid, signal.SIGKILL)


def never() -> Embedder:
    raise AssertionError("the model was loaded in this process")


class Service:
    """A service with a model of few words on a thread."""

    def __init__(self, path: Path, embedder: Embedder, *, idle: float = TIMEOUT_S) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        self.service = EmbedderService(listener, path, embedder, idle=idle)
        self.thread = threading.Thread(target=self.service.run, daemon=True)
        self.thread.start()


def test_the_process_gives_the_vectors_of_the_model(shared: ProcessEmbedder) -> None:
    local = open_embedder("local")
    assert local is not None
    texts = ["She adopted a puppy", "Interest rates went up", ""]
    assert np.array_equal(shared.embed(texts), local.embed(texts))
    assert shared.embed([]).shape == (0, 384)
    assert shared.identity == local.identity
    assert (shared.dimension, shared.batch_size) == (local.dimension, local.batch_size)


def test_the_directory_and_the_socket_belong_to_the_user_alone(
    shared: ProcessEmbedder, directory: Path
) -> None:
    path = socket_path("local", directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    directory.chmod(0o755)
    socket_path("local", directory)
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_is_not_the_users_own_is_not_used(directory: Path, tmp_path: Path) -> None:
    directory.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="not a directory of this user"):
        socket_path("local", directory)
    assert isinstance(open_shared("local", directory, BagEmbedder), BagEmbedder)


def test_a_directory_with_a_long_name_is_replaced(tmp_path: Path) -> None:
    path = socket_path("local", tmp_path / ("x" * 120))
    assert path.parent == Path(f"/tmp/polymnia-{os.getuid()}")


def test_clients_that_start_at_once_share_one_process(directory: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        embedders = list(pool.map(open_process, [directory] * 4))
    assert len({embedder.pid for embedder in embedders}) == 1
    end(directory)


def test_the_process_has_none_of_the_servers_variables(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    monkeypatch.setenv("POLYMNIA_EMBEDDER_KEY", "a secret")
    pid = open_process(directory).pid
    variables = Path(f"/proc/{pid}/environ")
    if not variables.exists():
        pytest.skip("this system shows no variables of processes")
    assert b"PYTHONPATH" in variables.read_bytes()
    assert b"secret" not in variables.read_bytes()
    end(directory)


def test_another_version_or_model_has_another_socket(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"one")
    paths = {socket_path("local", tmp_path), socket_path(f"onnx:{tmp_path}", tmp_path)}
    (tmp_path / "model.onnx").write_bytes(b"another")
    paths.add(socket_path(f"onnx:{tmp_path}", tmp_path))
    monkeypatch.setattr(process, "__version__", "0.0.0")
    paths.add(socket_path("local", tmp_path))
    assert len(paths) == 4


def test_a_process_of_another_version_is_not_used(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    path = socket_path("local", directory)
    Service(path, BagEmbedder())
    monkeypatch.setattr(process, "__version__", "0.0.0")
    monkeypatch.setattr(process, "socket_path", lambda url, directory: path)
    own = BagEmbedder()
    assert open_shared("local", directory, lambda: own) is own


def test_a_process_that_cannot_be_started_is_replaced_by_the_model_itself(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    own = BagEmbedder()
    for executable in ("/does/not/exist", "/bin/false"):
        monkeypatch.setattr(sys, "executable", executable)
        assert open_shared("local", directory, lambda: own) is own


def test_a_process_that_does_not_answer_is_replaced_by_the_model_itself(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    monkeypatch.setattr(process, "REPLY_TIMEOUT_S", 0.05)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_path("local", directory)))
        listener.listen()
        own = BagEmbedder()
        assert open_shared("local", directory, lambda: own) is own


def test_killing_the_process_loses_no_answer(shared: ProcessEmbedder) -> None:
    expected = shared.embed(["tea"], asking=True)
    first = shared.pid
    for number in range(QUESTIONS):
        if number == QUESTIONS // 2:
            os.kill(first, signal.SIGKILL)
        assert np.array_equal(shared.embed(["tea"], asking=True), expected)


def test_a_process_that_ends_for_good_is_replaced_by_the_model_itself(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    class Last(BagEmbedder):
        """Ends the connection with its first request."""

        def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
            raise EOFError

    path = socket_path("local", directory)
    Service(path, Last())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    embedder = open_shared("local", directory, BagEmbedder)
    assert isinstance(embedder, ProcessEmbedder)
    path.unlink()
    assert np.array_equal(embedder.embed(["puppy"]), BagEmbedder().embed(["puppy"]))
    assert not embedder.is_loading


def test_an_error_of_the_model_reaches_the_client(directory: Path) -> None:
    class Failing(BagEmbedder):
        def embed(self, texts: Sequence[str], *, asking: bool = False) -> NDArray[np.float32]:
            raise EmbedderError("the model failed")

    Service(socket_path("local", directory), Failing())
    embedder = open_shared("local", directory, never)
    with pytest.raises(EmbedderError, match="the model failed"):
        embedder.embed(["puppy"])


def test_an_idle_process_removes_its_socket_and_ends(directory: Path) -> None:
    path = socket_path("local", directory)
    service = Service(path, BagEmbedder(), idle=0.0)
    service.thread.join(TIMEOUT_S)
    assert not service.thread.is_alive()
    assert not path.exists()


def test_a_process_leaves_the_socket_of_its_successor(directory: Path) -> None:
    path = socket_path("local", directory)
    service = Service(path, BagEmbedder(), idle=0.2)
    path.unlink()
    path.write_bytes(b"")
    service.thread.join(TIMEOUT_S)
    assert path.exists()


def test_a_message_that_is_none_ends_the_connection(directory: Path) -> None:
    path = socket_path("local", directory)
    Service(path, BagEmbedder())
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(TIMEOUT_S)
        client.connect(str(path))
        assert receive_message(client, Greeting).version == __version__
        client.sendall(b"\xff\xff\xff\xff")
        assert client.recv(1) == b""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(TIMEOUT_S)
        client.connect(str(path))
        receive_message(client, Greeting)
        send_message(client, EmbedRequest(["puppy"], asking=True))
        assert (
            receive_message(client, EmbedReply).packed == BagEmbedder().embed(["puppy"]).tobytes()
        )


def run_in_thread(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_passages_wait_for_questions_and_questions_for_nothing() -> None:
    turns = Turns()
    order: list[str] = []

    def passages() -> None:
        with turns.take(asking=False):
            order.append("passages")

    with turns.take(asking=False):
        with turns.take(asking=True):  # beside a run over passages
            waiting = run_in_thread(passages)
        order.append("question")
    waiting.join(TIMEOUT_S)
    with turns.take(asking=True):
        waiting = run_in_thread(passages)
        order.append("question")
    waiting.join(TIMEOUT_S)
    assert order == ["question", "passages", "question", "passages"]


def test_a_question_starts_no_process(directory: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ask_running("local", directory, "hello", timeout=TIMEOUT_S)


def test_a_question_without_numpy_has_the_same_vector(directory: Path) -> None:
    start_process("local", directory)
    identity, vector = ask_running("local", directory, "hello there", timeout=TIMEOUT_S)
    shared = open_process(directory)
    expected = shared.embed(["hello there"], asking=True)[0]
    end(directory)
    assert identity == shared.identity
    assert np.array_equal(np.frombuffer(vector, "<f4"), expected)
