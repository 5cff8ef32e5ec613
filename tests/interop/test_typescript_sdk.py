"""Check the official TypeScript SDKs.

Version 1, and the packages of version 2, which speak both eras.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from . import claims, install
from .server import NewPlace
from .transcript import Transcript, Watch, play_with, watch_with
from .typescript_sdk import CLIENTS, TypeScriptClient


@pytest.fixture(scope="module", params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> TypeScriptClient:
    chosen: TypeScriptClient = request.param
    return chosen


@pytest.fixture(scope="module")
def script(client: TypeScriptClient, node_packages: Path) -> tuple[str, str]:
    return install.node(), str(node_packages / f"{client.script}.mjs")


@pytest.fixture(scope="module")
def transcript(
    script: tuple[str, str], client: TypeScriptClient, new_place: NewPlace
) -> Transcript:
    return play_with(script, new_place(), client.mode)


@pytest.fixture(scope="module")
def watch(script: tuple[str, str], client: TypeScriptClient, new_place: NewPlace) -> Watch:
    return watch_with(script, new_place(), client.mode)


def test_the_client_negotiates_its_newest_revision(
    transcript: Transcript, client: TypeScriptClient
) -> None:
    assert transcript.revision == client.revision


@pytest.mark.parametrize("claim", claims.ABOUT_A_CONVERSATION)
def test_a_conversation(claim: Callable[[Transcript], None], transcript: Transcript) -> None:
    claim(transcript)


@pytest.mark.parametrize("claim", claims.ABOUT_A_SUBSCRIPTION)
def test_a_subscription(claim: Callable[[Watch], None], watch: Watch) -> None:
    claim(watch)
