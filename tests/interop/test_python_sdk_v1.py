"""Check version 1 of the official Python SDK, in its own virtual environment."""

from collections.abc import Callable
from pathlib import Path

import pytest

from . import claims
from .install import SCRIPTS
from .server import NewPlace, Place, polymnia
from .transcript import Transcript, Watch, play_with, watch_with

NEWEST = "2025-11-25"
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")


@pytest.fixture(scope="module")
def script(python_with_sdk_v1: Path) -> tuple[str, str]:
    return str(python_with_sdk_v1), str(SCRIPTS / "sdk_v1.py")


@pytest.fixture(scope="module")
def transcript(script: tuple[str, str], new_place: NewPlace) -> Transcript:
    return play_with(script, new_place(), NEWEST)


@pytest.fixture(scope="module")
def watch(script: tuple[str, str], new_place: NewPlace) -> Watch:
    return watch_with(script, new_place(), NEWEST)


@pytest.fixture(scope="module", params=OLDER)
def older(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def older_transcript(
    script: tuple[str, str], older: str, tmp_path_factory: pytest.TempPathFactory
) -> Transcript:
    return play_with(
        script, Place("stdio", polymnia(tmp_path_factory.mktemp("store") / "memory.jsonl")), older
    )


@pytest.mark.parametrize("claim", claims.ABOUT_A_CONVERSATION)
def test_a_conversation(claim: Callable[[Transcript], None], transcript: Transcript) -> None:
    claim(transcript)


@pytest.mark.parametrize("claim", claims.ABOUT_A_SUBSCRIPTION)
def test_a_subscription(claim: Callable[[Watch], None], watch: Watch) -> None:
    claim(watch)


def test_the_newest_revision_is_negotiated(transcript: Transcript) -> None:
    assert transcript.revision == NEWEST


def test_an_older_revision_is_negotiated(older: str, older_transcript: Transcript) -> None:
    assert older_transcript.revision == older


def test_an_older_revision_gets_the_same_text(older_transcript: Transcript) -> None:
    claims.every_reply_has_the_text_of_the_reference(older_transcript)
