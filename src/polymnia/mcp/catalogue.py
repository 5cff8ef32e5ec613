"""Resources, prompts and completions: what clients list, read and fill in."""

import re
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from polymnia.dialects.base import Prompt, PromptMessage, Resource, ResourceTemplate
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp.params import Complete, GetPrompt, Listing, ReadResource
from polymnia.mcp.request import Request
from polymnia.mcp.tools import TextContent, refuse_cursor


class Contents(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The contents of a resource: text or bytes."""

    uri: str
    mime_type: str
    text: str | UnsetType = UNSET
    blob: bytes | UnsetType = UNSET


def list_resources(request: Request, params: Listing) -> dict[str, Any]:
    """Return the resources with fixed addresses, and those of this client."""
    refuse_cursor(params)
    resources = []
    for resource in _listed_resources(request):
        resources.append({"uri": resource.uri, **_describe(resource)})
    return {"resources": resources}


def list_templates(request: Request, params: Listing) -> dict[str, Any]:
    """Return the URI templates of the resources."""
    refuse_cursor(params)
    templates = []
    for template in request.dialect.templates:
        templates.append({"uriTemplate": template.uri_template, **_describe(template)})
    return {"resourceTemplates": templates}


def read_resource(request: Request, params: ReadResource) -> dict[str, Any]:
    """Return the content at an address. Raise ProtocolError if there is none."""
    uri = params.uri
    for resource in request.dialect.resources:
        if resource.uri == uri:
            return {"contents": [_contents(uri, resource.mime_type, resource.read(request))]}
    for template in request.dialect.templates:
        data = template.read(request, uri)
        if data is not None:
            return {"contents": [_contents(uri, template.mime_type, data)]}
    raise _not_found(request, uri)


def _contents(uri: str, mime_type: str, data: str | bytes) -> Contents:
    if isinstance(data, bytes):
        return Contents(uri, mime_type, blob=data)
    return Contents(uri, mime_type, data)


def list_prompts(request: Request, params: Listing) -> dict[str, Any]:
    """Return the prompts and their arguments."""
    refuse_cursor(params)
    prompts = []
    for prompt in request.dialect.prompts:
        prompts.append(
            {
                "name": prompt.name,
                "title": prompt.title,
                "description": prompt.description,
                "arguments": prompt.arguments,
            }
        )
    return {"prompts": prompts}


def get_prompt(request: Request, params: GetPrompt) -> dict[str, Any]:
    """Return a prompt with its blanks filled in.

    Raise InvalidParams if a required argument is missing.
    """
    prompt = _find_prompt(request, params.name)
    arguments = params.arguments or {}
    required = [argument.name for argument in prompt.arguments if argument.required]
    missing = [name for name in required if name not in arguments]
    if missing:
        raise InvalidParams(f"the prompt {prompt.name} needs {', '.join(missing)}")
    rendered = prompt.render(request, arguments)
    if isinstance(rendered, str):
        rendered = [PromptMessage(rendered)]
    messages = []
    for message in rendered:
        content: Any = message.content
        if isinstance(content, str):
            content = TextContent(content)
        messages.append({"role": message.role, "content": content})
    return {"description": prompt.description, "messages": messages}


def complete(request: Request, params: Complete) -> dict[str, Any]:
    """Return values that an argument of a prompt or template may have."""
    ref = params.ref
    source: Prompt | ResourceTemplate
    if ref.type == "ref/prompt":
        source = _find_prompt(request, ref.name)
    elif ref.type == "ref/resource":
        for source in request.dialect.templates:
            if source.uri_template == ref.uri:
                break
        else:
            raise InvalidParams(f"Unknown resource template: {ref.uri}")
    else:
        raise InvalidParams(f"ref.type: expected ref/prompt or ref/resource, got {ref.type}")
    values: list[str] = []
    if source.complete is not None:
        values = list(source.complete(request, params.argument.name, params.argument.value))
    page = values[:100]  # the protocol's bound on one answer
    has_more = len(values) > len(page)
    return {"completion": {"values": page, "total": len(values), "hasMore": has_more}}


def require_possible(request: Request, uri: str) -> None:
    """Raise ProtocolError if no resource can ever have that address."""
    if any(resource.uri == uri for resource in _listed_resources(request)):
        return
    for template in request.dialect.templates:
        # `{name}` stands for some text, `{?name}` for a query or nothing.
        pattern = re.escape(template.uri_template)
        pattern = re.sub(r"\\\{\\\?.*?\\\}", ".*", pattern)
        pattern = re.sub(r"\\\{.*?\\\}", ".+", pattern)
        if re.fullmatch(pattern, uri, re.DOTALL):
            return
    raise _not_found(request, uri)


def _listed_resources(request: Request) -> list[Resource]:
    dialect = request.dialect
    resources = list(dialect.resources)
    if dialect.own_resources is not None:
        resources += dialect.own_resources(request.client)
    return resources


def _describe(resource: Resource | ResourceTemplate) -> dict[str, str]:
    return {
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
    }


def _not_found(request: Request, uri: str) -> ProtocolError:
    message = f"Resource not found: {uri}"
    if request.is_stateless:
        return InvalidParams(message, {"uri": uri})
    return ProtocolError(-32002, message, {"uri": uri})  # the code in revisions with a handshake


def _find_prompt(request: Request, name: str) -> Prompt:
    for prompt in request.dialect.prompts:
        if prompt.name == name:
            return prompt
    raise InvalidParams(f"Unknown prompt: {name}")
