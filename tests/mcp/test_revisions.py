"""Every revision of the protocol.

Its handshake, and each method's result checked by the official types.
"""

from typing import Any

import pytest
from mcp_types.methods import (
    CACHEABLE_METHODS,
    SERVER_RESULTS,
    parse_server_result,
    serialize_server_result,
)

from polymnia import __version__
from polymnia.mcp.methods import METHODS
from tests.mcp.conversation import (
    HANDSHAKE,
    JSON,
    LATEST,
    PREFIX,
    REVISIONS,
    SERVER_INFO,
    STATELESS,
    Client,
    envelope,
    new_server,
)
from tests.mcp.dialect import ENTITY_TEMPLATE, NAMES_URI, entity_uri, only_tools

METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_VERSION = -32601, -32602, -32022

# Something to ask of every method there is, and what makes the answers of some of them differ.
QUESTIONS: dict[str, list[JSON]] = {
    "initialize": [
        {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    ],
    "server/discover": [{}],
    "ping": [{}],
    "tools/list": [{}],
    "tools/call": [
        {"name": "measure", "arguments": {"howMany": 3}},
        {"name": "measure", "arguments": {"howMany": 300}},
        {"name": "nothing"},
        {"name": "refuse"},
        {"name": "count", "arguments": {"steps": 2}},
    ],
    "resources/list": [{}],
    "resources/templates/list": [{}],
    "resources/read": [{"uri": NAMES_URI}, {"uri": entity_uri("Ada")}],
    "resources/subscribe": [{"uri": NAMES_URI}],
    "resources/unsubscribe": [{"uri": NAMES_URI}],
    "prompts/list": [{}],
    "prompts/get": [{"name": "greeting", "arguments": {"name": "Ada"}}, {"name": "plain"}],
    "completion/complete": [
        {
            "ref": {"type": "ref/prompt", "name": "greeting"},
            "argument": {"name": "name", "value": "A"},
        },
        {"ref": {"type": "ref/prompt", "name": "plain"}, "argument": {"name": "any", "value": ""}},
        {
            "ref": {"type": "ref/resource", "uri": ENTITY_TEMPLATE},
            "argument": {"name": "many", "value": "x"},
        },
    ],
    "logging/setLevel": [{"level": "debug"}],
}
LATER = "subscriptions/listen"  # answered when its stream ends

ANSWERED = [
    pytest.param(method, revision, question, id=f"{method} {number} in {revision}")
    for method, revision in SERVER_RESULTS
    if method != LATER
    for number, question in enumerate(QUESTIONS[method], 1)
]
ALL_METHODS = sorted({method for method, _ in SERVER_RESULTS})
STATELESS_METHODS = {method for method, revision in SERVER_RESULTS if revision == STATELESS}


@pytest.fixture(params=REVISIONS)
def client(request: pytest.FixtureRequest) -> Client:
    """A client of each revision."""
    return speaking(request.param)


@pytest.fixture
def stateless() -> Client:
    return speaking(STATELESS)


def speaking(revision: str) -> Client:
    client = Client(revision=revision)
    client.call("remember", name="Ada")
    client.told()
    return client


@pytest.mark.parametrize(("method", "revision", "question"), ANSWERED)
def test_every_result_is_what_the_official_types_say(
    method: str, revision: str, question: JSON
) -> None:
    result = speaking(revision).result(method, **question)
    parse_server_result(method, revision, result)
    assert serialize_server_result(method, revision, result) == result, (
        "something in it has no place there"
    )


def test_the_methods_are_those_of_the_protocol() -> None:
    assert sorted(METHODS) == ALL_METHODS


@pytest.mark.parametrize("requested", HANDSHAKE)
def test_the_revision_asked_for_is_the_one_agreed_on(requested: str) -> None:
    assert Client(greet=False).initialize(requested)["protocolVersion"] == requested


@pytest.mark.parametrize(
    "requested", ["2024-10-07", "2025-04-01", STATELESS, "2099-01-01", "", "x", "1.0"]
)
def test_for_an_unknown_revision_the_newest_with_a_handshake_is_offered(requested: str) -> None:
    assert Client(greet=False).initialize(requested)["protocolVersion"] == LATEST


@pytest.mark.parametrize(
    "params", [{}, {"protocolVersion": None}, {"protocolVersion": 20251125}, {"clientInfo": {}}]
)
def test_a_handshake_without_a_revision_is_refused(params: JSON) -> None:
    assert Client(greet=False).error("initialize", **params)["code"] == INVALID_PARAMS


def test_a_second_handshake_counts() -> None:
    client = Client(revision="2024-11-05")
    client.initialize(LATEST)
    assert "structuredContent" in client.call("measure", howMany=3)


def test_initialize_returns_server_info_and_instructions() -> None:
    result = Client(greet=False).initialize(LATEST)
    assert result["serverInfo"] == {
        "name": "test-server",
        "version": "7.0",
        "title": f"Polymnia {__version__}",
    }
    assert result["instructions"] == "Try everything."


EVERYTHING = {
    "tools": {},
    "logging": {},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "completions": {},
}


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
@pytest.mark.parametrize("bare", [True, False])
def test_capabilities_list_only_what_the_dialect_has(method: str, bare: bool) -> None:
    server = new_server(only_tools()) if bare else new_server()
    client = Client(server, LATEST if method == "initialize" else STATELESS, greet=False)
    result = client.result(method, **QUESTIONS[method][0])
    assert result["capabilities"] == ({"tools": {}, "logging": {}} if bare else EVERYTHING)


@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list", "prompts/list"])
def test_features_the_dialect_lacks_are_empty_lists(method: str) -> None:
    result = Client(new_server(only_tools())).result(method)
    assert list(result.values()) == [[]]


@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
def test_every_list_is_complete_so_any_cursor_is_refused(client: Client, method: str) -> None:
    assert "nextCursor" not in client.result(method, cursor=None)
    assert client.error(method, cursor="2")["code"] == INVALID_PARAMS


def test_structured_content_begins_with_the_revision_that_has_it(client: Client) -> None:
    result = client.call("measure", howMany=3)
    expected = {"howMany": 3, "tone": "calm"} if client.revision >= "2025-06-18" else None
    assert result.get("structuredContent") == expected


def test_a_tool_has_an_output_schema_where_it_has_structured_content(client: Client) -> None:
    (described,) = [
        tool for tool in client.result("tools/list")["tools"] if tool["name"] == "measure"
    ]
    assert ("outputSchema" in described) == (
        "structuredContent" in client.call("measure", howMany=3)
    )


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "nope"}, INVALID_PARAMS),
        ("prompts/get", {"name": "nope"}, INVALID_PARAMS),
        ("prompts/get", {"name": "greeting", "arguments": {}}, INVALID_PARAMS),
        ("prompts/get", {"name": "greeting", "arguments": {"name": 5}}, INVALID_PARAMS),
        (
            "completion/complete",
            {"ref": {"type": "ref/x"}, "argument": {"name": "name", "value": ""}},
            INVALID_PARAMS,
        ),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "nope"},
                "argument": {"name": "name", "value": ""},
            },
            INVALID_PARAMS,
        ),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "nope"},
                "argument": {"name": "name", "value": ""},
            },
            INVALID_PARAMS,
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "greeting"}},
            INVALID_PARAMS,
        ),
        ("resources/read", {}, INVALID_PARAMS),
        ("nope", {}, METHOD_NOT_FOUND),
    ],
)
def test_refusals_are_the_same_in_every_revision(
    client: Client, method: str, params: JSON, code: int
) -> None:
    assert client.error(method, **params)["code"] == code


@pytest.mark.parametrize(
    ("method", "params", "sentence"),
    [
        ("resources/read", {"uri": entity_uri("Nobody")}, "nobody is called Nobody"),
        (
            "prompts/get",
            {"name": "greeting", "arguments": {"name": "Nobody"}},
            "there is no greeting for Nobody",
        ),
    ],
)
def test_a_refusal_of_a_resource_or_prompt_is_an_invalid_params_error(
    client: Client, method: str, params: JSON, sentence: str
) -> None:
    assert client.error(method, **params) == {"code": INVALID_PARAMS, "message": sentence}


@pytest.mark.parametrize("uri", ["test://nope", "test://", ""])
def test_a_resource_that_is_not_there_has_the_code_of_its_revision(
    client: Client, uri: str
) -> None:
    expected = INVALID_PARAMS if client.revision == STATELESS else -32002
    error = client.error("resources/read", uri=uri)
    assert (error["code"], error["data"]) == (expected, {"uri": uri})


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {"cursor": None}),
        ("prompts/get", {"name": "plain", "arguments": None}),
        ("tools/list", {"_meta": {"progressToken": None}}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "greeting", "title": None},
                "argument": {"name": "name", "value": ""},
                "context": None,
            },
        ),
    ],
)
def test_null_is_as_good_as_absent_where_the_official_types_say_so(
    client: Client, method: str, params: JSON
) -> None:
    client.result(method, **params)


def test_completions_are_those_that_fit() -> None:
    ref = {"type": "ref/prompt", "name": "greeting"}
    result = speaking(LATEST).result(
        "completion/complete", ref=ref, argument={"name": "name", "value": "Ad"}
    )
    assert result == {"completion": {"values": ["Ada"], "total": 1, "hasMore": False}}


def test_at_most_a_hundred_completions_are_returned() -> None:
    ref = {"type": "ref/resource", "uri": ENTITY_TEMPLATE}
    result = speaking(LATEST).result(
        "completion/complete", ref=ref, argument={"name": "many", "value": "x"}
    )
    completion = result["completion"]
    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (
        100,
        250,
        True,
    )


def test_a_prompt_is_filled_in() -> None:
    result = speaking(LATEST).result(
        "prompts/get", name="greeting", arguments={"name": "Ada", "tone": "loudly"}
    )
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Greet Ada loudly."}}
    ]


def test_a_resource_is_read_with_its_kind() -> None:
    result = speaking(LATEST).result("resources/read", uri=entity_uri("Ada"))
    assert result["contents"] == [
        {"uri": entity_uri("Ada"), "mimeType": "text/plain", "text": "Ada"}
    ]


@pytest.mark.parametrize(
    ("method", "revision"), [result for result in SERVER_RESULTS if result[1] in HANDSHAKE]
)
def test_results_of_a_handshake_carry_nothing_of_the_stateless_revision(
    method: str, revision: str
) -> None:
    result = speaking(revision).result(method, **QUESTIONS[method][0])
    assert not {"resultType", "_meta", "ttlMs", "cacheScope"} & set(result)


@pytest.mark.parametrize("method", sorted(STATELESS_METHODS - {LATER}))
def test_stateless_results_say_that_they_are_complete_and_who_made_them(
    stateless: Client, method: str
) -> None:
    result = stateless.result(method, **QUESTIONS[method][0])
    assert result["resultType"] == "complete"
    assert result["_meta"][SERVER_INFO]["name"] == "test-server"


@pytest.mark.parametrize("method", sorted(STATELESS_METHODS - {LATER}))
def test_stateless_results_that_may_be_kept_say_for_how_long(
    stateless: Client, method: str
) -> None:
    result = stateless.result(method, **QUESTIONS[method][0])
    assert {"ttlMs", "cacheScope"} & set(result) == (
        {"ttlMs", "cacheScope"} if method in CACHEABLE_METHODS else set()
    )


@pytest.mark.parametrize("method", ["resources/list", "resources/read"])
def test_results_that_a_write_may_change_must_not_be_cached(stateless: Client, method: str) -> None:
    result = stateless.result(method, **QUESTIONS[method][0])
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_discovery_lists_revisions_capabilities_and_instructions(stateless: Client) -> None:
    result = stateless.result("server/discover")
    assert STATELESS in result["supportedVersions"]
    assert result["instructions"] == "Try everything."


@pytest.mark.parametrize("method", sorted(set(ALL_METHODS) - STATELESS_METHODS))
def test_handshake_methods_do_not_exist_for_stateless_clients(
    stateless: Client, method: str
) -> None:
    assert stateless.error(method, **QUESTIONS[method][0])["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("method", sorted(set(ALL_METHODS) - STATELESS_METHODS))
def test_a_handshake_method_is_refused_before_its_params_are_checked(
    stateless: Client, method: str
) -> None:
    assert stateless.error(method)["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("method", ["server/discover", LATER])
def test_a_stateless_method_without_its_meta_says_what_is_missing(
    method: str, revision: str
) -> None:
    error = Client(revision=revision).error(method, notifications={})
    assert error["code"] == INVALID_PARAMS
    assert f"{PREFIX}protocolVersion" in error["message"]
    assert f"{PREFIX}clientCapabilities" in error["message"]


def ask_with(meta: Any, method: str = "tools/list", **params: Any) -> JSON:
    """The error of a request with that `_meta`, from a client that never greeted."""
    return Client(greet=False).error(method, **params, _meta=meta)


@pytest.mark.parametrize(
    ("meta", "culprit"),
    [
        (envelope(clientCapabilities=None), "clientCapabilities"),
        ({f"{PREFIX}protocolVersion": None, **envelope(protocolVersion=None)}, "version"),
        (envelope(protocolVersion=20260728), "version"),
        (envelope(clientInfo={}), "clientInfo"),
        (envelope(clientInfo="me"), "clientInfo"),
    ],
)
def test_an_incomplete_meta_is_refused_by_the_missing_key(meta: JSON, culprit: str) -> None:
    error = ask_with(meta)
    assert error["code"] == INVALID_PARAMS
    assert culprit in error["message"]


def test_a_stateless_client_need_not_say_who_it_is() -> None:
    client = Client(greet=False)
    params = {"name": "whoami", "_meta": envelope(clientInfo=None)}
    assert client.result("tools/call", **params)["content"][0]["text"] == "unknown client"


@pytest.mark.parametrize("requested", [*HANDSHAKE, "2026-07-27", "2099-01-01", ""])
def test_an_unsupported_version_is_refused_with_those_that_are(requested: str) -> None:
    error = ask_with(envelope(protocolVersion=requested))
    assert error["code"] == UNSUPPORTED_VERSION
    assert error["data"]["requested"] == requested
    assert STATELESS in error["data"]["supported"]


@pytest.mark.parametrize(
    ("method", "params"), [("tools/call", {}), ("server/later", {}), ("tools/list", {"cursor": 5})]
)
def test_an_unsupported_version_is_reported_first(method: str, params: JSON) -> None:
    assert (
        ask_with(envelope(protocolVersion="2099-01-01"), method, **params)["code"]
        == UNSUPPORTED_VERSION
    )


def test_a_refused_revision_lists_those_with_a_handshake() -> None:
    error = ask_with(envelope(protocolVersion="2099-01-01"), "server/discover")
    assert LATEST in error["data"]["supported"]


def test_both_eras_share_one_connection() -> None:
    client = Client(revision="2024-11-05")
    before = client.call("measure", howMany=3)
    between = client.result(
        "tools/call", name="measure", arguments={"howMany": 3}, _meta=envelope()
    )
    after = client.call("measure", howMany=3)
    assert ("structuredContent" in between, between["resultType"]) == (True, "complete")
    assert before == after == {"content": [{"type": "text", "text": "measured"}]}


def test_each_era_names_its_client_in_the_change_log() -> None:
    client = Client()
    stateless = client.result("tools/call", name="whoami", _meta=envelope())
    assert stateless["content"][0]["text"] == "stateless 2"
    assert client.text("whoami") == "handshaker 1"


def test_before_a_handshake_the_newest_revision_applies() -> None:
    assert "structuredContent" in Client(greet=False).call("measure", howMany=3)
