"""Replay the corpus of the fuzzer: `python -m tests.fuzz` looks for new inputs."""

import pytest

from tests.fuzz.__main__ import NAMES
from tests.fuzz.corpus import read_corpus
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_of_the_corpus_breaks_its_target(target: str) -> None:
    inputs = read_corpus(target)
    assert inputs
    for data in inputs:
        TARGETS[target](data)


def test_the_command_knows_every_target() -> None:
    assert tuple(TARGETS) == NAMES
