"""Sentence transformers exported to ONNX, on one core: `onnx:DIR` with model.onnx and tokenizer.json."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from msgspec import DecodeError, json

from polymnia.embedders.wordpiece import WordPiece
from polymnia.errors import EmbedderError

if TYPE_CHECKING:
    from polymnia.embedders.base import Vectors

# So many texts at once: more does not go faster and takes memory.
_BATCH = 16
_LONGEST = 512

Cut = Callable[[str], list[int]]


class OnnxEmbedder:
    """A session and how text is cut for it."""

    def __init__(
        self, session: onnxruntime.InferenceSession, cut: Cut, *, name: str, first: bool = False, prompts: Any = None
    ) -> None:
        self._session = session
        self._inputs = {each.name for each in session.get_inputs()}
        self._cut = cut
        self._first = first
        self._asking: str = (prompts or {}).get("query", "")
        self._telling: str = (prompts or {}).get("document", "") or (prompts or {}).get("passage", "")
        self.dimension = int(self._run([[0, 0]]).shape[1])
        self.identity = f"{name}/{self.dimension}/{self._asking}/{self._telling}"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Vectors":
        prompt = self._asking if asking else self._telling
        cut = [self._cut(prompt + text) for text in texts]
        found = np.zeros((len(texts), self.dimension), np.float32)
        # Texts of one length together: nothing is computed for padding.
        order = sorted(range(len(cut)), key=lambda place: len(cut[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            found[places] = self._run([cut[place] for place in places])
        return found

    def _run(self, cut: Sequence[Sequence[int]]) -> "Vectors":
        width = max(map(len, cut))
        ids = np.zeros((len(cut), width), np.int64)
        mask = np.zeros((len(cut), width), np.int64)
        for row, numbers in enumerate(cut):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (states, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        except (onnxruntime.capi.onnxruntime_pybind11_state.Fail, KeyError) as exc:
            raise EmbedderError(f"the model failed ({exc}); is it a sentence transformer?") from exc
        return _pooled(np.asarray(states, np.float32), mask, first=self._first)


def open_session(model: Path) -> onnxruntime.InferenceSession:
    """The model, on one thread. Raises EmbedderError."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NoSuchFile as exc:
        raise EmbedderError(f"there is no model {model}") from exc
    except (
        onnxruntime.capi.onnxruntime_pybind11_state.Fail,
        onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf,
        onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph,
    ) as exc:
        raise EmbedderError(f"{model} is not a model that can be run ({exc})") from exc


def open_directory(directory: str) -> OnnxEmbedder:
    """The sentence transformer in the directory: model.onnx (or onnx/model.onnx) and tokenizer.json.

    Raises EmbedderError.
    """
    place = Path(directory)
    model = next((path for path in (place / "model.onnx", place / "onnx" / "model.onnx") if path.is_file()), None)
    if model is None:
        raise EmbedderError(f"{place} has no model.onnx; export a sentence transformer to ONNX there")
    pooling = _read(place / "1_Pooling" / "config.json")
    prompts = _read(place / "config_sentence_transformers.json").get("prompts")
    return OnnxEmbedder(
        open_session(model),
        _tokenizer(place / "tokenizer.json"),
        name=f"onnx:{place.resolve().name}:{model.stat().st_size}",
        first=bool(pooling.get("pooling_mode_cls_token")),
        prompts=prompts,
    )


def _tokenizer(path: Path) -> Cut:
    if not path.is_file():
        raise EmbedderError(f"{path} is missing; it comes with the model")
    described = _read(path)
    model = described.get("model") or {}
    if model.get("type") != "WordPiece":
        return _other_tokenizer(path)
    vocabulary = sorted(model["vocab"], key=model["vocab"].get)
    longest = (described.get("truncation") or {}).get("max_length") or _LONGEST
    lower = bool((described.get("normalizer") or {}).get("lowercase", True))
    return WordPiece(vocabulary, longest=min(longest, _LONGEST), lower=lower).ids


def _other_tokenizer(path: Path) -> Cut:
    try:
        from tokenizers import Tokenizer  # only where the user has it
    except ImportError as exc:
        raise EmbedderError(f"{path} is not WordPiece; `pip install tokenizers` reads the other kinds") from exc
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_LONGEST)
    return lambda text: list(tokenizer.encode(text).ids)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return json.decode(path.read_bytes(), type=dict[str, Any])
    except DecodeError as exc:
        raise EmbedderError(f"{path} is not what it should be ({exc})") from exc


def _pooled(states: Any, mask: Any, *, first: bool) -> "Vectors":
    """One vector of length one for each text, from those of its pieces."""
    if states.ndim == 2:  # the model pools by itself
        pooled = states
    elif first:
        pooled = states[:, 0]
    else:
        pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return np.asarray(pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12), np.float32)
