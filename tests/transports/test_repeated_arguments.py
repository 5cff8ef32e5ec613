"""Arguments that are repeated in headers: a request whose header and body differ is refused."""

import json
from typing import Annotated, Any

import pytest
from msgspec import UNSET, Meta, Raw, Struct

from polymnia.errors import ProtocolError
from polymnia.transports.http.guard import (
    HEADER_MISMATCH,
    check_repeated_arguments,
    repeated_arguments,
)
from polymnia.transports.http.request import CONNECTION, RECORD, Request
from polymnia.transports.request_log import RequestRecord


class Place(Struct, frozen=True):
    city: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "City"})] = ""


class Routed(Struct, frozen=True):
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})] = ""
    floor: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Floor"})] = 0
    urgent: Annotated[bool, Meta(extra_json_schema={"x-mcp-header": "Urgent"})] = False
    # Numbers have several spellings, so clients repeat none.
    share: Annotated[float, Meta(extra_json_schema={"x-mcp-header": "Share"})] = 0.0
    place: Place = Place()
    note: str = ""


class FakeConnection:
    peer = ("127.0.0.1", 1)


class Plain(Struct, frozen=True):
    region: str = ""


def request(*headers: tuple[str, str]) -> Request:
    raw = [(f"mcp-param-{name}".encode(), value.encode("latin-1")) for name, value in headers]

    async def never(*_: Any) -> Any:
        raise AssertionError("the body must not be read")

    scope = {"method": "POST", "path": "/", "query_string": b"", "headers": raw}
    return Request(
        {**scope, CONNECTION: FakeConnection(), RECORD: RequestRecord(client="")}, never, never
    )


def agree(arguments: Any, *headers: tuple[str, str]) -> bool:
    try:
        check_repeated_arguments(request(*headers), Routed, Raw(json.dumps(arguments).encode()))
    except ProtocolError as exc:
        assert exc.code == HEADER_MISMATCH
        return False
    return True


def test_only_arguments_with_one_spelling_are_repeated() -> None:
    assert [argument.header for argument in repeated_arguments(Routed)] == [
        "Mcp-Param-Region",
        "Mcp-Param-Floor",
        "Mcp-Param-Urgent",
        "Mcp-Param-City",
    ]


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, []),
        (None, []),
        ({"region": None}, []),
        ({"note": "x", "share": 0.5}, []),
        ({"region": "eu"}, [("region", "eu")]),
        ({"region": "eu"}, [("region", " \teu ")]),
        ({"region": "é"}, [("region", "=?base64?w6k=?=")]),
        ({"region": "w6k="}, [("region", "w6k=")]),
        ({"region": "=?base64?w6k="}, [("region", "=?base64?w6k=")]),
        ({"region": "=?base64?="}, [("region", "=?base64?=")]),
        ({"floor": 42}, [("floor", "42")]),
        ({"floor": 42}, [("floor", "42.0")]),
        ({"floor": 42.0}, [("floor", "42")]),
        ({"floor": -(2**70)}, [("floor", str(-(2**70)))]),
        ({"urgent": True}, [("urgent", "true")]),
        ({"urgent": False}, [("urgent", "false")]),
        ({"place": {"city": "Rome"}}, [("city", "Rome")]),
        ({"region": ["eu"]}, []),
        ({}, [("other", "x")]),
    ],
)
def test_matching_headers_pass(arguments: Any, headers: list[tuple[str, str]]) -> None:
    assert agree(arguments, *headers)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, []),
        ({"region": "eu"}, [("region", "us")]),
        ({"region": "eu"}, [("region", "EU")]),
        ({"region": "eu"}, [("region", "eu"), ("region", "eu")]),
        ({"region": "é"}, [("region", "=?base64?w6k?=")]),
        ({"region": "é"}, [("region", "=?base64?w6!k=?=")]),
        ({"region": "é"}, [("region", "=?base64?w6l=?=")]),
        ({"region": ["eu"]}, [("region", "eu")]),
        ({}, [("region", "eu")]),
        (None, [("region", "eu")]),
        ({"floor": 42}, [("floor", "42.5")]),
        ({"floor": 42}, [("floor", "4.2e1")]),
        ({"urgent": True}, [("urgent", "True")]),
        ({"place": {"city": "Rome"}}, []),
        ({"place": "Rome"}, [("city", "Rome")]),
    ],
)
def test_mismatching_headers_are_refused(arguments: Any, headers: list[tuple[str, str]]) -> None:
    assert not agree(arguments, *headers)


def test_headers_that_repeat_no_argument_are_ignored() -> None:
    check_repeated_arguments(request(("region", "eu")), Plain, Raw(b"{}"))


def test_a_call_without_arguments_has_none_to_repeat() -> None:
    check_repeated_arguments(request(), Routed, UNSET)


def test_arguments_that_are_no_object_are_left_to_the_tool() -> None:
    check_repeated_arguments(request(("region", "eu")), Routed, Raw(b"[1]"))
