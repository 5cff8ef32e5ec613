"""The tools, resources and prompts that the conformance suites ask a server under test to have."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from msgspec import Meta, Struct

from polymnia.dialects.base import (
    Call,
    Dialect,
    Prompt,
    PromptArgument,
    PromptMessage,
    Reply,
    Resource,
    ResourceTemplate,
    catalogue,
    tool,
)
from polymnia.errors import BadInput, MissingCapability
from polymnia.mcp.catalogue import Contents
from tests.conformance.asking import ASKING_PROMPT, ASKING_TOOLS, NAME

# One red pixel, and no sound at all.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
SILENCE = bytes.fromhex(
    "524946462400000057415645666d74201000000001000100401f0000803e0000020010006461746100000000"
)


class Image(Struct, frozen=True, tag_field="type", tag="image", rename="camel"):
    data: bytes
    mime_type: str


class Audio(Struct, frozen=True, tag_field="type", tag="audio", rename="camel"):
    data: bytes
    mime_type: str


class Embedded(Struct, frozen=True, tag_field="type", tag="resource"):
    resource: Contents


class Nothing(Struct, frozen=True):
    pass


class Person(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    name: str = ""
    address: Annotated[dict[str, str], Meta(extra_json_schema={"$ref": "#/$defs/address"})] = {}
    contact_method: str = ""
    phone: str = ""
    email: str = ""


_ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
_VOCABULARY: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"address": _ADDRESS},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
}
# A type with words of JSON Schema around it is no class for the type checker, but it is one to the
# decoder.
DescribedPerson = cast(type[Struct], Annotated[Person, Meta(extra_json_schema=_VOCABULARY)])


@tool(Nothing, needs="read")
def test_simple_text(call: Call, arguments: Nothing) -> Reply:
    """Give a text"""
    return Reply("This is a simple text response for testing.")


@tool(Nothing, needs="read")
def test_image_content(call: Call, arguments: Nothing) -> Reply:
    """Give an image"""
    return Reply("", shown=(Image(PIXEL, "image/png"),))


@tool(Nothing, needs="read")
def test_audio_content(call: Call, arguments: Nothing) -> Reply:
    """Give a sound"""
    return Reply("", shown=(Audio(SILENCE, "audio/wav"),))


@tool(Nothing, needs="read")
def test_embedded_resource(call: Call, arguments: Nothing) -> Reply:
    """Give a resource"""
    text = "This is an embedded resource content."
    return Reply("", shown=(Embedded(Contents("test://embedded-resource", "text/plain", text)),))


@tool(Nothing, needs="read")
def test_multiple_content_types(call: Call, arguments: Nothing) -> Reply:
    """Give a text, an image and a resource"""
    data = Contents(
        "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
    )
    return Reply("Multiple content types test:", shown=(Image(PIXEL, "image/png"), Embedded(data)))


@tool(Nothing, needs="read")
def test_tool_with_logging(call: Call, arguments: Nothing) -> Reply:
    """Log three times on the way"""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        call.log("info", text)
    return Reply("Logged three times.")


@tool(Nothing, needs="read")
def test_logging_tool(call: Call, arguments: Nothing) -> Reply:
    """Log at every level, whoever listens"""
    call.log("debug", "something small")
    call.log("emergency", "something great")
    return Reply("Logged.")


@tool(Nothing, needs="read")
def test_tool_with_progress(call: Call, arguments: Nothing) -> Reply:
    """Report progress on the way"""
    for done in (0, 50, 100):
        call.progress(done, 100, None)
    return Reply("Done.")


@tool(Nothing, needs="read")
def test_error_handling(call: Call, arguments: Nothing) -> Reply:
    """Fail"""
    raise BadInput("This tool intentionally returns an error for testing")


@tool(Nothing, needs="read")
def test_streaming_elicitation(call: Call, arguments: Nothing) -> Reply:
    """Ask for a name after a notification: without a handshake, the stream carries no request"""
    call.log("info", "A name is needed")
    call.progress(1, 1, None)
    return Reply(f"Hello, {(call.ask(NAME).content or {}).get('name')}!")


@tool(Nothing, needs="read")
def test_missing_capability(call: Call, arguments: Nothing) -> Reply:
    """Work only for clients that offer sampling"""
    if not call.client.declares("sampling"):
        raise MissingCapability("sampling")
    return Reply("The client offers sampling.")


@tool(Nothing, needs="read")
def test_reconnection(call: Call, arguments: Nothing) -> Reply:
    """Answer with a stream that ends with the answer"""
    call.log("warning", "The answer comes on this stream")
    return Reply("Nobody had to reconnect.")


@tool(DescribedPerson, needs="read")
def json_schema_2020_12_tool(call: Call, arguments: Person) -> Reply:
    """Tool with JSON Schema 2020-12 features"""
    return Reply(arguments.name)


def _unmoved(*_: Any) -> bool:
    return False


TEXT = Resource(
    uri="test://static-text",
    name="static-text",
    title="Text",
    description="A text that never changes",
    mime_type="text/plain",
    read=lambda call: "This is the content of the static text resource.",
    touched_by=_unmoved,
)
BINARY = Resource(
    uri="test://static-binary",
    name="static-binary",
    title="Image",
    description="An image that never changes",
    mime_type="image/png",
    read=lambda call: PIXEL,
    touched_by=_unmoved,
)
WATCHED = Resource(
    uri="test://watched-resource",
    name="watched-resource",
    title="Watched",
    description="A text to subscribe to",
    mime_type="text/plain",
    read=lambda call: "Nothing has happened yet.",
    touched_by=_unmoved,
)


def _read_numbered(call: Call, uri: str) -> str | None:
    before, after = "test://template/", "/data"
    if not (uri.startswith(before) and uri.endswith(after)):
        return None
    number = uri.removeprefix(before).removesuffix(after)
    return f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'


NUMBERED = ResourceTemplate(
    uri_template="test://template/{id}/data",
    name="numbered",
    title="Numbered",
    description="Data by its number",
    read=_read_numbered,
    touched=lambda client, change, uri: False,
)


def _with_arguments(call: Call, given: Mapping[str, str]) -> str:
    return f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"


def _with_resource(call: Call, given: Mapping[str, str]) -> Sequence[PromptMessage]:
    resource = Contents(
        given["resourceUri"], "text/plain", "Embedded resource content for testing."
    )
    return PromptMessage(Embedded(resource)), PromptMessage(
        "Please process the embedded resource above."
    )


def _with_image(call: Call, given: Mapping[str, str]) -> Sequence[PromptMessage]:
    return PromptMessage(Image(PIXEL, "image/png")), PromptMessage(
        "Please analyze the image above."
    )


def _completed(call: Call, argument: str, value: str) -> Sequence[str]:
    return [place for place in ("paris", "park", "party", "porto") if place.startswith(value)]


PROMPTS = (
    Prompt(
        name="test_simple_prompt",
        title="Simple",
        description="A text",
        render=lambda call, given: "This is a simple prompt for testing.",
    ),
    Prompt(
        name="test_prompt_with_arguments",
        title="With arguments",
        description="A text with two blanks",
        arguments=tuple(
            PromptArgument(name=name, description="A word", required=True)
            for name in ("arg1", "arg2")
        ),
        render=_with_arguments,
        complete=_completed,
    ),
    Prompt(
        name="test_prompt_with_embedded_resource",
        title="With a resource",
        description="A resource and what to do with it",
        arguments=(PromptArgument(name="resourceUri", description="Which", required=True),),
        render=_with_resource,
    ),
    Prompt(
        name="test_prompt_with_image",
        title="With an image",
        description="An image and what to do with it",
        render=_with_image,
    ),
)

CONFORMING = Dialect(
    name="conformance",
    server_name="conformance",
    server_version="1",
    instructions="For the conformance suites.",
    tools=catalogue(
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_tool_with_logging,
        test_logging_tool,
        test_tool_with_progress,
        test_error_handling,
        test_streaming_elicitation,
        test_missing_capability,
        test_reconnection,
        json_schema_2020_12_tool,
        *ASKING_TOOLS,
    ),
    resources=(TEXT, BINARY, WATCHED),
    templates=(NUMBERED,),
    prompts=(*PROMPTS, ASKING_PROMPT),
)
