"""Content other than text.

Images, audio and resources in the results of tools, resources and prompts.
"""

from base64 import b64encode
from typing import Any

import pytest
from mcp_types.methods import parse_server_result

from polymnia.errors import MissingCapability
from tests.conformance.dialect import CONFORMING, PIXEL, SILENCE
from tests.mcp.conversation import HANDSHAKE, JSON, STATELESS, Client, new_server

# The oldest revision knows no sound.
WITH_SOUND = (*HANDSHAKE[1:], STATELESS)

IMAGE = {"type": "image", "data": b64encode(PIXEL).decode(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": b64encode(SILENCE).decode(), "mimeType": "audio/wav"}


def resource(uri: str, kind: str, text: str) -> JSON:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


def text(content: str) -> JSON:
    return {"type": "text", "text": content}


@pytest.fixture(params=WITH_SOUND)
def client(request: pytest.FixtureRequest) -> Client:
    return Client(new_server(CONFORMING), request.param)


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        ("test_simple_text", [text("This is a simple text response for testing.")]),
        ("test_image_content", [IMAGE]),
        ("test_audio_content", [AUDIO]),
        (
            "test_embedded_resource",
            [
                resource(
                    "test://embedded-resource",
                    "text/plain",
                    "This is an embedded resource content.",
                )
            ],
        ),
        (
            "test_multiple_content_types",
            [
                text("Multiple content types test:"),
                IMAGE,
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    '{"test":"data","value":123}',
                ),
            ],
        ),
    ],
)
def test_other_content_follows_the_text_of_a_tool_or_replaces_it(
    client: Client, tool: str, content: Any
) -> None:
    result = client.call(tool)
    parse_server_result("tools/call", client.revision, result)
    assert result["content"] == content


def test_bytes_are_read_as_a_blob(client: Client) -> None:
    result = client.result("resources/read", uri="test://static-binary")
    parse_server_result("resources/read", client.revision, result)
    blob = b64encode(PIXEL).decode()
    assert result["contents"] == [
        {"uri": "test://static-binary", "mimeType": "image/png", "blob": blob}
    ]


def test_a_prompt_may_be_several_messages(client: Client) -> None:
    result = client.result("prompts/get", name="test_prompt_with_image")
    parse_server_result("prompts/get", client.revision, result)
    said = [(message["role"], message["content"]) for message in result["messages"]]
    assert said == [("user", IMAGE), ("user", text("Please analyze the image above."))]


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, None, [], "sampling"])
def test_a_tool_names_the_client_capability_it_lacks(capabilities: Any) -> None:
    client = Client(new_server(CONFORMING), STATELESS)
    declared = {"io.modelcontextprotocol/clientCapabilities": capabilities}
    error = client.error("tools/call", name="test_missing_capability", _meta=declared)
    assert (error["code"], error["data"]) == (
        MissingCapability.CODE,
        {"requiredCapabilities": {"sampling": {}}},
    )


def test_capabilities_of_a_stateless_request_apply_to_it_alone() -> None:
    client = Client(new_server(CONFORMING), STATELESS)
    declared: JSON = {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}
    result = client.result("tools/call", name="test_missing_capability", _meta=declared)
    assert result["content"] == [text("The client offers sampling.")]
    assert (
        client.error("tools/call", name="test_missing_capability")["code"] == MissingCapability.CODE
    )


def test_capabilities_of_initialize_apply_from_then_on() -> None:
    client = Client(new_server(CONFORMING), greet=False)
    assert (
        client.error("tools/call", name="test_missing_capability")["code"] == MissingCapability.CODE
    )
    client.result("initialize", protocolVersion=client.revision, capabilities={"sampling": {}})
    assert client.text("test_missing_capability") == "The client offers sampling."
