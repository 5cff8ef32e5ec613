"""Check the chat models: the protocols of Ollama and OpenAI against a real server."""

from collections.abc import Iterator

import pytest

from polymnia.chat import open_chat_model
from polymnia.errors import ChatModelError, SettingsError
from tests.chat_server import ChatServer, serve_chat


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serve_chat() as server:
        yield server


@pytest.mark.parametrize(("kind", "below"), [("ollama", ""), ("ollama", "/"), ("openai", "/v1")])
def test_a_model_answers_without_its_thoughts(server: ChatServer, kind: str, below: str) -> None:
    model = open_chat_model(f"{kind}:small@{server.url}{below}", key="secret")
    assert model.complete("Be brief.", "facts") == "Draft: facts"
    (asked,) = server.asked
    assert (asked["model"], asked["stream"]) == ("small", False)
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert server.keys == ["Bearer secret"]


def test_the_error_of_a_model_that_fails_names_the_server(server: ChatServer) -> None:
    with pytest.raises(ChatModelError, match=r"refused the request \(404\): no such model"):
        open_chat_model(f"ollama:missing@{server.url}").complete("", "")
    with pytest.raises(ChatModelError, match="cannot be reached"):
        open_chat_model("ollama:small@http://127.0.0.1:1").complete("", "")


@pytest.mark.parametrize(
    "garbage", [b"", b"<html>", b"[]", b'{"choices": []}', b'{"message": {"content": null}}']
)
@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_a_reply_that_is_no_answer_is_an_error(
    server: ChatServer, kind: str, garbage: bytes
) -> None:
    server.garbage = garbage
    with pytest.raises(ChatModelError, match="did not return an answer"):
        open_chat_model(f"{kind}:small@{server.url}").complete("", "")


@pytest.mark.parametrize("url", ["gpt", "ollama:", "ollama:@http://x", "local"])
def test_the_error_for_an_unknown_chat_model_lists_the_known_ones(url: str) -> None:
    with pytest.raises(SettingsError, match="ollama:MODEL"):
        open_chat_model(url)
