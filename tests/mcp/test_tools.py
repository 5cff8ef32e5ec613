"""Tools over the protocol: their schemas, errors in arguments, and failures."""

import json
import logging
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta, Struct

from polymnia.arguments import MAX_MISTAKES, json_schema
from polymnia.dialects import DIALECTS, open_dialect
from tests.mcp.catalogue import golden, listed
from tests.mcp.conversation import JSON, REVISIONS, Client
from tests.mcp.dialect import SECRET, Gate, one_of_everything

CATALOGUES = {"test": one_of_everything(Gate()), **{name: open_dialect(name) for name in DIALECTS}}


def refusal(client: Client, **arguments: Any) -> str:
    """What the model reads when `measure` is called like this; it must not be a success."""
    result = client.call("measure", **{"howMany": 3, **arguments})
    assert result["isError"] is True
    assert "structuredContent" not in result
    (content,) = result["content"]
    text: str = content["text"]
    return text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"howMany": 0}, "howMany: expected an integer >= 1"),
        ({"howMany": 11}, "howMany: expected an integer <= 10"),
        ({"howMany": 10**30}, "howMany: expected an integer <= 10"),
        ({"howMany": "3"}, "howMany: expected an integer, got a string"),
        ({"howMany": 3.5}, "howMany: expected an integer, got a number"),
        ({"howMany": True}, "howMany: expected an integer, got a boolean"),
        ({"howMany": None}, "howMany: expected an integer, got null"),
        ({"howMany": [3]}, "howMany: expected an integer, got an array"),
        ({"howMany": {}}, "howMany: expected an integer, got an object"),
        ({"ratio": 0}, "ratio: expected a number > 0.0"),
        ({"ratio": "1"}, "ratio: expected a number, got a string"),
        ({"tone": 5}, "tone: expected a string, got a number"),
        ({"step": "1"}, "step: expected an integer, got a string"),
        ({"code": ""}, "code: expected a string of length >= 1"),
        ({"code": "abcd"}, "code: expected a string of length <= 3"),
        ({"code": "A"}, "code: expected a string matching regex '^[a-z]*$'"),
        ({"note": 5}, "note: expected a string or null, got a number"),
        ({"box": 5}, "box: expected an object or null, got a number"),
        ({"box": {}}, "box.width: required, but missing"),
        ({"box": {"width": 0}}, "box.width: expected an integer >= 1"),
        ({"box": {"width": 1, "depth": 2}}, "box.depth: there is no such argument"),
        ({"boxes": {}}, "boxes: expected an array, got an object"),
        ({"boxes": [{"width": 1}, {"label": "x"}]}, "boxes[1].width: required, but missing"),
        (
            {"boxes": [{"width": 1, "label": 5}]},
            "boxes[0].label: expected a string or null, got a number",
        ),
        ({"boxes": [{"width": 1, "depth": 2}]}, "boxes[0].depth: there is no such argument"),
        ({"matrix": [1]}, "matrix[0]: expected an array, got a number"),
        ({"matrix": [[1], [2, "x"]]}, "matrix[1][1]: expected an integer, got a string"),
        ({"matrix": [[], [], []]}, "matrix: expected an array of length <= 2"),
        ({"really": 1}, "really: expected true or false, got a number"),
        ({"really": "true"}, "really: expected true or false, got a string"),
        ({"sizes": {"a": "x"}}, "sizes[...]: expected an integer, got a string"),
        ({"pair": [1]}, "pair: expected an array of length 2"),
        ({"pair": [1, 2]}, "pair[1]: expected a string, got a number"),
        ({"howmany": 3}, "howmany: there is no such argument"),
    ],
)
def test_a_wrong_argument_is_named_with_what_was_expected(
    client: Client, arguments: JSON, sentence: str
) -> None:
    assert refusal(client, **arguments) == sentence


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"tone": "shrill"}, "'shrill'"),
        ({"step": 3}, "3"),
        ({"tone": "it's"}, "it's"),
    ],
)
def test_an_invalid_choice_is_named(client: Client, arguments: JSON, value: str) -> None:
    sentence = refusal(client, **arguments)
    assert sentence.startswith(f"{next(iter(arguments))}: ")
    assert value in sentence


@pytest.mark.parametrize(
    ("arguments", "choices"), [({"tone": "shrill"}, ("calm", "loud")), ({"step": 3}, ("1", "2"))]
)
def test_the_error_for_an_invalid_choice_lists_the_choices(
    client: Client, arguments: JSON, choices: tuple[str, ...]
) -> None:
    sentence = refusal(client, **arguments)
    assert all(choice in sentence for choice in choices)


def test_a_wrong_key_is_named_with_its_place(client: Client) -> None:
    assert refusal(client, sizes={"abc": 1}) == "sizes: expected a string of length <= 2"


def test_every_mistake_is_named(client: Client) -> None:
    mistakes = refusal(client, howMany=0, tone="shrill", volume=3)
    assert mistakes.split("; ") == [
        "volume: there is no such argument",
        "howMany: expected an integer >= 1",
        "tone: 'shrill' is not one of calm, loud",
    ]


def test_every_mistake_within_an_argument_is_named(client: Client) -> None:
    assert refusal(client, matrix=[["x"], [1, None]], pair=[1]).split("; ") == [
        "matrix[0][0]: expected an integer, got a string",
        "matrix[1][1]: expected an integer, got null",
        "pair: expected an array of length 2",
    ]


def test_a_bounded_number_of_mistakes_is_named(client: Client) -> None:
    mistakes = refusal(client, matrix=[["x"] * 30]).split("; ")
    assert (len(mistakes), mistakes[-1]) == (
        MAX_MISTAKES + 1,
        f"and {30 - MAX_MISTAKES} more mistakes",
    )


@pytest.mark.parametrize("arguments", [{}, {"arguments": {}}, {"arguments": None}])
def test_arguments_may_be_left_out_where_none_are_needed(client: Client, arguments: JSON) -> None:
    result = client.result("tools/call", name="nothing", **arguments)
    assert result == {"content": [{"type": "text", "text": "nothing"}]}


@pytest.mark.parametrize("arguments", [{}, {"arguments": {}}, {"arguments": None}])
def test_arguments_left_out_where_some_are_needed_are_missing(
    client: Client, arguments: JSON
) -> None:
    result = client.result("tools/call", name="measure", **arguments)
    assert (result["isError"], result["content"][0]["text"]) == (
        True,
        "howMany: required, but missing",
    )


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [([], "an array"), ("x", "a string"), (5, "a number"), (True, "a boolean")],
)
def test_arguments_that_are_no_object_are_refused(
    client: Client, arguments: Any, kind: str
) -> None:
    result = client.result("tools/call", name="nothing", arguments=arguments)
    assert (result["isError"], result["content"][0]["text"]) == (
        True,
        f"arguments: expected an object, got {kind}",
    )


def test_unknown_arguments_are_ignored_where_the_tool_does_not_forbid_them(client: Client) -> None:
    assert client.text("nothing", something="else") == "nothing"


def test_nothing_happens_when_arguments_are_wrong(client: Client) -> None:
    client.call("remember", name=5)
    client.call("remember")
    assert client.result("resources/read", uri="test://names")["contents"][0]["text"] == ""


def test_all_kinds_of_arguments_are_taken(client: Client) -> None:
    result = client.call(
        "measure",
        howMany=10,
        ratio=2,
        tone="loud",
        step=2,
        code="abc",
        note=None,
        box={"width": 1, "label": None},
        boxes=[{"width": 2}],
        matrix=[[1, 2], []],
        really=True,
        sizes={"a": 1, "": 2},
        pair=[1, "x"],
    )
    assert result == {
        "content": [{"type": "text", "text": "measured"}],
        "structuredContent": {"howMany": 10, "tone": "loud"},
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_refusal_of_a_tool_is_a_result_the_model_reads(revision: str) -> None:
    result = Client(revision=revision).call("refuse")
    assert result["isError"] is True
    assert result["content"] == [
        {"type": "text", "text": "that cannot be done; try something else"}
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_note_follows_the_reply(revision: str) -> None:
    content = Client(revision=revision).call("footnote")["content"]
    assert content == [
        {"type": "text", "text": "the answer"},
        {"type": "text", "text": "and a note"},
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_tool_is_an_error_of_the_protocol(revision: str) -> None:
    error = Client(revision=revision).error("tools/call", name="nope", arguments={})
    assert error == {"code": -32602, "message": "Unknown tool: nope"}


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({}, "name: required, but missing"),
        ({"name": None}, "name: expected a string, got null"),
        ({"name": ["nothing"]}, "name: expected a string, got an array"),
    ],
)
def test_a_call_without_a_name_is_an_error_of_the_protocol(
    client: Client, params: JSON, sentence: str
) -> None:
    assert client.error("tools/call", **params) == {"code": -32602, "message": sentence}


def test_an_error_in_params_names_its_path(client: Client) -> None:
    error = client.error("prompts/get", name="plain", arguments="x")
    assert error["message"].startswith("arguments: expected an object")


@pytest.fixture
def unheard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, logger="polymnia"):
        yield caplog


def test_an_unexpected_failure_is_reported_without_its_details(
    client: Client, unheard: pytest.LogCaptureFixture
) -> None:
    reply = client.ask("tools/call", name="explode")
    assert reply["error"]["code"] == -32603
    assert SECRET not in json.dumps(reply)
    assert SECRET in unheard.text


def test_after_an_unexpected_failure_the_next_call_is_answered(client: Client) -> None:
    client.ask("tools/call", name="explode")
    assert client.text("nothing") == "nothing"


SCHEMAS = [
    pytest.param(tool[kind], id=f"{name} {tool['name']} {kind}")
    for name, dialect in CATALOGUES.items()
    for tool in listed(dialect)["tools"]
    for kind in ("inputSchema", "outputSchema")
    if kind in tool
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_is_valid_json_schema(schema: JSON) -> None:
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_is_one_object_with_nothing_to_look_up(schema: JSON) -> None:
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$schema"} & set(schema)
    assert not {"$ref", "$defs", "definitions"} & set(_keywords(schema))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_choice_of_texts_has_a_type(schema: JSON) -> None:
    """Some clients insist on one."""
    texts = [
        node
        for node in _objects(schema)
        if isinstance(node.get("enum"), list) and isinstance(node["enum"][0], str)
    ]
    assert [node for node in texts if node.get("type") != "string"] == []


def _keywords(node: Any) -> Iterator[str]:
    for value in _objects(node):
        yield from value


def _objects(node: Any) -> Iterator[JSON]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from _objects(child)


GOOD: list[JSON] = [
    {"howMany": 3},
    {
        "howMany": 1,
        "note": None,
        "box": None,
        "boxes": [{"width": 1, "label": "x"}],
        "matrix": [[1]],
        "pair": [1, "x"],
    },
]
BAD: list[JSON] = [
    {},
    {"howMany": 0},
    {"howMany": "3"},
    {"howMany": 3, "tone": "shrill"},
    {"howMany": 3, "step": 3},
    {"howMany": 3, "boxes": [{}]},
    {"howMany": 3, "boxes": [{"width": 1, "depth": 1}]},
    {"howMany": 3, "matrix": [["x"]]},
    {"howMany": 3, "pair": [1]},
    {"howMany": 3, "more": 1},
]


@pytest.mark.parametrize("arguments", GOOD + BAD)
def test_the_schema_and_the_tool_agree_on_what_is_right(client: Client, arguments: JSON) -> None:
    (schema,) = [
        tool["inputSchema"]
        for tool in listed(CATALOGUES["test"])["tools"]
        if tool["name"] == "measure"
    ]
    accepted = "isError" not in client.call("measure", **arguments)
    assert Draft202012Validator(schema).is_valid(arguments) == accepted == (arguments in GOOD)


class Inner(Struct):
    """What only we read."""

    title: str
    description: str


class Outer(Struct):
    """What only we read."""

    inner: Annotated[Inner, Meta(description="for the client")]
    sizes: Annotated[dict[str, int], Meta(description="for the client")]
    count: Annotated[int, Meta(description="for the client")]


def test_a_schema_says_nothing_of_our_own_names_and_docstrings() -> None:
    assert "What only we read" not in json.dumps(json_schema(Outer))
    assert "Inner" not in json.dumps(json_schema(Outer))


def test_a_schema_keeps_arguments_that_are_called_title_and_description() -> None:
    assert set(json_schema(Outer)["properties"]["inner"]["properties"]) == {"title", "description"}


@pytest.mark.parametrize("name", ["count", "inner", "sizes"])
def test_a_schema_keeps_what_an_argument_says_to_clients(name: str) -> None:
    assert json_schema(Outer)["properties"][name]["description"] == "for the client"


def test_a_tool_is_described_with_all_that_clients_ask_for() -> None:
    described = {tool["name"]: tool for tool in listed(CATALOGUES["test"])["tools"]}
    assert described["forget"] == {
        "name": "forget",
        "title": "Forget",
        "description": "Delete an entity",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_catalogue_is_the_one_its_clients_know(name: str) -> None:
    expected = json.loads(golden(name).read_text("utf-8"))
    assert listed(CATALOGUES[name]) == expected, f"run python -m tests.mcp.catalogue {name}"
