"""Sentence transformers in ONNX, run on one core: from a package or from a directory."""

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import DecodeError, json

from polymnia.embedders.base import (
    EMBEDDED_FORM,
    MINILM_SHA256,
    MODEL_FILES,
    POOLING_FILE,
    PROMPTS_FILE,
    WEIGHTS,
)
from polymnia.embedders.turns import Turns
from polymnia.embedders.wordpiece import WordPiece, read_vocabulary
from polymnia.errors import EmbedderError

# Since version 1.31, merely importing onnxruntime writes a device id and reports to its makers. It
# asks for this variable when it is loaded.
os.putenv("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

# Tokens in one run, padding included. More are not faster and take more memory.
_MAX_BATCH_TOKENS = 512
_MAX_TOKENS = 512
_MINILM_MAX_TOKENS = 256

# The tokens of a text, in parts that the model can take.
Tokenize = Callable[[str], list[list[int]]]
# The most parts of a long text that count: some 6,000 words with the local model.
_MAX_PARTS = 32


class _NativeCalls:
    """The calls into onnxruntime that run, in all threads.

    The interpreter must not end during one: it ends its daemon threads where they return to Python,
    and unwinding the C++ below them aborts the process. So it waits for them, a fraction of a
    second, and lets no other one begin.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._is_over = False

    def __enter__(self) -> None:
        with self._changed:
            if self._is_over:
                raise EmbedderError("the program is ending")
            self._running += 1

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.wait_for(lambda: not self._running)


_native_calls = _NativeCalls()
atexit.register(_native_calls.finish)


class OnnxEmbedder:
    """A model and its tokenizer.

    The vector of a text is that of its first token, or the mean of all tokens. That of a text which
    is longer than the model takes is the mean of its parts'. Only the first part of a question
    counts, because a client waits for it.
    """

    batch_size = 32

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        tokenize: Tokenize,
        *,
        name: str,
        use_first_token: bool = False,
        prompts: Any = None,
    ) -> None:
        self._session = session
        self._turns = Turns()
        self._input_names = {argument.name for argument in session.get_inputs()}
        self._tokenize = tokenize
        self._use_first_token = use_first_token
        prompts = prompts or {}
        self._question_prompt: str = prompts.get("query", "")
        self._text_prompt: str = prompts.get("document", "") or prompts.get("passage", "")
        self.dimension = int(self._run([[0, 0]]).shape[1])
        prompted = f"{self._question_prompt}/{self._text_prompt}"
        # Former versions read the first part of a text only: their vectors are made again.
        self.identity = f"{name}/{self.dimension}/{prompted}/parts/{EMBEDDED_FORM}"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        prompt = self._question_prompt if asking else self._text_prompt
        max_parts = 1 if asking else _MAX_PARTS
        parts: list[list[int]] = []
        owners: list[int] = []
        for owner, text in enumerate(texts):
            for part in self._tokenize(prompt + text)[:max_parts]:
                parts.append(part)
                owners.append(owner)
        sums = np.zeros((len(texts), self.dimension), np.float32)
        for rows in split_by_tokens(list(map(len, parts)), _MAX_BATCH_TOKENS):
            with self._turns.take(asking=asking):
                vectors = self._run([parts[row] for row in rows])
            np.add.at(sums, [owners[row] for row in rows], vectors)
        if len(parts) == len(texts):
            return sums
        return _normalize(sums)

    def _run(self, tokens: Sequence[Sequence[int]]) -> "Vectors":
        width = max(map(len, tokens))
        ids = np.zeros((len(tokens), width), np.int64)
        mask = np.zeros((len(tokens), width), np.int64)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            inputs = {name: known[name] for name in self._input_names}
            with _native_calls:
                states, *_ = self._session.run(None, inputs)
        except (onnxruntime.capi.onnxruntime_pybind11_state.Fail, KeyError) as exc:
            raise EmbedderError(f"the model failed ({exc}); is it a sentence transformer?") from exc
        return _pool(np.asarray(states, np.float32), mask, use_first_token=self._use_first_token)


def split_by_tokens(counts: Sequence[int], limit: int) -> list[list[int]]:
    """Divide texts, given by their token counts, into batches of up to `limit` tokens.

    Padding counts. Texts of similar length are together, so that little is computed for padding. A
    longer text is a batch of its own.
    """
    batches: list[list[int]] = []
    for row in sorted(range(len(counts)), key=counts.__getitem__):
        if not batches or (len(batches[-1]) + 1) * counts[row] > limit:
            batches.append([])
        batches[-1].append(row)
    return batches


def open_session(model: Path) -> onnxruntime.InferenceSession:
    """Load a model to run on one thread. Raise EmbedderError."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The arena would never give back the memory of the largest run.
    options.enable_cpu_mem_arena = False
    try:
        with _native_calls:
            return onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
    except onnxruntime.capi.onnxruntime_pybind11_state.NoSuchFile as exc:
        raise EmbedderError(f"there is no model {model}; check the path") from exc
    except (
        onnxruntime.capi.onnxruntime_pybind11_state.Fail,
        onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf,
        onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph,
    ) as exc:
        raise EmbedderError(f"{model} is not a model that can be run ({exc})") from exc


def open_minilm() -> OnnxEmbedder:
    """Load all-MiniLM-L6-v2 from its package, without the network.

    Raise EmbedderError if the installed weights are not the expected ones.
    """
    model = _weights()
    with model.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if digest != MINILM_SHA256:
        raise EmbedderError(f"{model} is not the expected model; install its package again")
    pieces = WordPiece(read_vocabulary(), max_tokens=_MINILM_MAX_TOKENS)
    return OnnxEmbedder(open_session(model), pieces.parts, name="all-MiniLM-L6-v2-int8")


def _weights() -> Path:
    """Return the file with the weights, which come with an extra.

    Raise ImportError. The package is not imported: its file is checked, its code is not.
    """
    for package in WEIGHTS:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent / "model.onnx"
    raise ModuleNotFoundError(name=WEIGHTS[-1])


def open_directory(directory: str) -> OnnxEmbedder:
    """Load the sentence transformer in a directory. Raise EmbedderError.

    The directory has model.onnx (or onnx/model.onnx) and tokenizer.json.
    """
    root = Path(directory)
    model = next((root / name for name in MODEL_FILES if (root / name).is_file()), None)
    if model is None:
        raise EmbedderError(
            f"{root} has no model.onnx; export a sentence transformer to ONNX there"
        )
    pooling = _read_pooling(root / POOLING_FILE)
    name = f"onnx:{root.resolve().name}:{model.stat().st_size}"
    return OnnxEmbedder(
        open_session(model),
        _tokenizer(root / "tokenizer.json"),
        # Directories without the file, or with the mean, keep their vectors.
        name=name if pooling == "mean" else f"{name}:{pooling}",
        use_first_token=pooling == "cls",
        prompts=_read(root / PROMPTS_FILE).get("prompts"),
    )


def _read_pooling(path: Path) -> str:
    """Return how the vectors of tokens become one: `mean`, also without the file, or `cls`.

    Raise EmbedderError for another pooling: with the mean, such a model finds little.
    """
    settings = _read(path)
    pooling = str(settings.get("pooling_mode", ""))  # since sentence-transformers 5.3
    for key, is_used in settings.items():
        if key.startswith("pooling_mode_") and is_used is True:
            kind = key.removeprefix("pooling_mode_").partition("_token")[0]
            pooling = f"{pooling}+{kind}" if pooling else kind
    if pooling not in ("", "mean", "cls"):
        raise EmbedderError(
            f"{path} asks for the pooling {pooling!r}, which is not built in; "
            "choose a model with `mean` or `cls`"
        )
    return pooling or "mean"


def _tokenizer(path: Path) -> Tokenize:
    if not path.is_file():
        raise EmbedderError(f"{path} is missing; it comes with the model")
    settings = _read(path)
    model = settings.get("model") or {}
    if model.get("type") != "WordPiece":
        return _other_tokenizer(path)
    vocabulary = sorted(model["vocab"], key=model["vocab"].get)
    max_tokens = (settings.get("truncation") or {}).get("max_length") or _MAX_TOKENS
    lower = bool((settings.get("normalizer") or {}).get("lowercase", True))
    return WordPiece(vocabulary, max_tokens=min(max_tokens, _MAX_TOKENS), lower=lower).parts


def _other_tokenizer(path: Path) -> Tokenize:
    try:
        from tokenizers import Tokenizer  # only if the user has installed it
    except ImportError as exc:
        raise EmbedderError(
            f"{path} is not WordPiece; `pip install tokenizers` reads the other kinds"
        ) from exc
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)

    def tokenize(text: str) -> list[list[int]]:
        encoding = tokenizer.encode(text)
        return [list(part.ids) for part in (encoding, *encoding.overflowing)]

    return tokenize


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return json.decode(path.read_bytes(), type=dict[str, Any])
    except DecodeError as exc:
        raise EmbedderError(
            f"{path} is not a JSON object ({exc}); copy it from the model again"
        ) from exc


def _pool(states: Any, mask: Any, *, use_first_token: bool) -> "Vectors":
    """Return one vector of length one for each text, from those of its tokens."""
    if states.ndim == 2:  # the model has pooled already
        pooled = states
    elif use_first_token:
        pooled = states[:, 0]
    else:
        pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return _normalize(pooled)


def _normalize(vectors: Any) -> "Vectors":
    """Return the vectors with length one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
