"""Resources, prompts and completions: what clients list, read and fill in."""

import re
from typing import Any

from polymnia.dialects.base import Message, Prompt, ResourceTemplate
from polymnia.dialects.content import contents
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import Complete, CompletionReference, GetPrompt, Listing, ReadResource
from polymnia.mcp.tools import TextContent, refuse_cursor

# The code in revisions with a handshake; the stateless ones use invalid params.
_NOT_FOUND = -32002
# The protocol's bound on one answer.
_MAX_COMPLETIONS = 100


def list_resources(exchange: Exchange, params: Listing) -> dict[str, Any]:
    """Return the resources with fixed addresses, and those of this client."""
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
    """Return the URI templates of the resources."""
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


def read_resource(exchange: Exchange, params: ReadResource) -> dict[str, Any]:
    """Return the content at an address. Raise ProtocolError if there is none."""
    data, mime_type = _read(exchange, params.uri)
    return {"contents": [contents(params.uri, mime_type, data)]}


def list_prompts(exchange: Exchange, params: Listing) -> dict[str, Any]:
    """Return the prompts and their arguments."""
    refuse_cursor(params)
    return {"prompts": [_describe_prompt(prompt) for prompt in exchange.dialect.prompts]}


def get_prompt(exchange: Exchange, params: GetPrompt) -> dict[str, Any]:
    """Return a prompt with its blanks filled in. Raise InvalidParams if a required argument is missing."""
    prompt = _find_prompt(exchange, params.name)
    given = params.arguments or {}
    missing = [each.name for each in prompt.arguments if each.required and each.name not in given]
    if missing:
        raise InvalidParams(f"the prompt {prompt.name} needs {', '.join(missing)}")
    rendered = prompt.render(exchange.call(), given)
    messages = [Message(rendered)] if isinstance(rendered, str) else rendered
    return {
        "description": prompt.description,
        "messages": [_prompt_message(each) for each in messages],
    }


def complete(exchange: Exchange, params: Complete) -> dict[str, Any]:
    """Return values that an argument of a prompt or template may have."""
    source = _find_reference(exchange, params.ref)
    values: list[str] = []
    if source.complete is not None:
        values = list(source.complete(exchange.call(), params.argument.name, params.argument.value))
    shown = values[:_MAX_COMPLETIONS]
    return {
        "completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
    }


def require_possible(exchange: Exchange, uri: str) -> None:
    """Raise ProtocolError if no resource can ever have that address."""
    dialect = exchange.dialect
    own = dialect.own_resources(exchange.client) if dialect.own_resources is not None else ()
    is_listed = any(each.uri == uri for each in (*dialect.resources, *own))
    if not is_listed and not any(_follows(uri, each.uri_template) for each in dialect.templates):
        raise _not_found(exchange, uri)


def _follows(uri: str, template: str) -> bool:
    """Return True if an address has the form of a template."""
    pattern = "".join(
        ".*" if part.startswith("{?") else ".+" if part.startswith("{") else re.escape(part)
        for part in re.split(r"(\{[^}]*\})", template)
    )
    return re.fullmatch(pattern, uri, re.DOTALL) is not None


def _read(exchange: Exchange, uri: str) -> tuple[str | bytes, str]:
    for resource in exchange.dialect.resources:
        if resource.uri == uri:
            return resource.read(exchange.call()), resource.mime_type
    for template in exchange.dialect.templates:
        data = template.read(exchange.call(), uri)
        if data is not None:
            return data, template.mime_type
    raise _not_found(exchange, uri)


def _not_found(exchange: Exchange, uri: str) -> ProtocolError:
    message, about = f"Resource not found: {uri}", {"uri": uri}
    return (
        InvalidParams(message, about)
        if exchange.is_stateless
        else ProtocolError(_NOT_FOUND, message, about)
    )


def _find_prompt(exchange: Exchange, name: str) -> Prompt:
    for prompt in exchange.dialect.prompts:
        if prompt.name == name:
            return prompt
    raise InvalidParams(f"Unknown prompt: {name}")


def _prompt_message(message: Message) -> dict[str, Any]:
    content = message.content
    return {
        "role": message.role,
        "content": TextContent(content) if isinstance(content, str) else content,
    }


def _find_reference(exchange: Exchange, ref: CompletionReference) -> Prompt | ResourceTemplate:
    if ref.type == "ref/prompt":
        return _find_prompt(exchange, ref.name)
    if ref.type == "ref/resource":
        for template in exchange.dialect.templates:
            if template.uri_template == ref.uri:
                return template
        raise InvalidParams(f"Unknown resource template: {ref.uri}")
    raise InvalidParams(f"ref.type: expected ref/prompt or ref/resource, got {ref.type}")


def _describe_prompt(prompt: Prompt) -> dict[str, Any]:
    arguments = [
        {"name": each.name, "description": each.description, "required": each.required}
        for each in prompt.arguments
    ]
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments,
    }
