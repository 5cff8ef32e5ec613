"""`resources/list`, `resources/templates/list` and `resources/read`."""

from typing import Any

from polymnia.dialects.content import contents
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import Listing, OneResource
from polymnia.mcp.tools import refuse_cursor

# What revisions with a handshake answer; the stateless ones say invalid params.
_NOT_FOUND = -32002


def list_resources(exchange: Exchange, params: Listing) -> dict[str, Any]:
    refuse_cursor(params)
    dialect = exchange.dialect
    own = dialect.own_resources(exchange.client) if dialect.own_resources is not None else ()
    return {
        "resources": [
            {
                "uri": each.uri,
                "name": each.name,
                "title": each.title,
                "description": each.description,
                "mimeType": each.mime_type,
            }
            for each in (*dialect.resources, *own)
        ]
    }


def list_templates(exchange: Exchange, params: Listing) -> dict[str, Any]:
    refuse_cursor(params)
    return {
        "resourceTemplates": [
            {
                "uriTemplate": each.uri_template,
                "name": each.name,
                "title": each.title,
                "description": each.description,
                "mimeType": each.mime_type,
            }
            for each in exchange.dialect.templates
        ]
    }


def read_resource(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    data, mime_type = _read(exchange, params.uri)
    return {"contents": [contents(params.uri, mime_type, data)]}


def _read(exchange: Exchange, uri: str) -> tuple[str | bytes, str]:
    for resource in exchange.dialect.resources:
        if resource.uri == uri:
            return resource.read(exchange.call()), resource.mime_type
    for template in exchange.dialect.templates:
        data = template.read(exchange.call(), uri)
        if data is not None:
            return data, template.mime_type
    message, about = f"Resource not found: {uri}", {"uri": uri}
    raise InvalidParams(message, about) if exchange.stateless else ProtocolError(_NOT_FOUND, message, about)
