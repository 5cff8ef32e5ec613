"""Resources, prompts and completions: what clients list, read and fill in."""

import re
from typing import Any

from polymnia.dialects.base import Prompt, PromptMessage, Resource, ResourceTemplate
from polymnia.dialects.content import contents
from polymnia.errors import InvalidParams, ProtocolError
from polymnia.mcp.params import Complete, CompletionReference, GetPrompt, Listing, ReadResource
from polymnia.mcp.request import Request
from polymnia.mcp.tools import TextContent, refuse_cursor

# The code in revisions with a handshake; the stateless ones use invalid params.
_NOT_FOUND = -32002
# The protocol's bound on one answer.
_MAX_COMPLETIONS = 100


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
    data, mime_type = _read(request, params.uri)
    return {"contents": [contents(params.uri, mime_type, data)]}


def list_prompts(request: Request, params: Listing) -> dict[str, Any]:
    """Return the prompts and their arguments."""
    refuse_cursor(params)
    return {"prompts": [_describe_prompt(prompt) for prompt in request.dialect.prompts]}


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
    messages = prompt.render(request, arguments)
    if isinstance(messages, str):
        messages = [PromptMessage(messages)]
    return {
        "description": prompt.description,
        "messages": [_prompt_message(message) for message in messages],
    }


def complete(request: Request, params: Complete) -> dict[str, Any]:
    """Return values that an argument of a prompt or template may have."""
    source = _find_reference(request, params.ref)
    values: list[str] = []
    if source.complete is not None:
        values = list(source.complete(request, params.argument.name, params.argument.value))
    has_more = len(values) > _MAX_COMPLETIONS
    page = values[:_MAX_COMPLETIONS]
    return {"completion": {"values": page, "total": len(values), "hasMore": has_more}}


def require_possible(request: Request, uri: str) -> None:
    """Raise ProtocolError if no resource can ever have that address."""
    if any(resource.uri == uri for resource in _listed_resources(request)):
        return
    templates = request.dialect.templates
    if not any(_matches(uri, template.uri_template) for template in templates):
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


def _matches(uri: str, template: str) -> bool:
    """Return True if an address has the form of a template."""
    pattern = ""
    for part in re.split(r"(\{[^}]*\})", template):
        if part.startswith("{?"):
            pattern += ".*"
        elif part.startswith("{"):
            pattern += ".+"
        else:
            pattern += re.escape(part)
    return re.fullmatch(pattern, uri, re.DOTALL) is not None


def _read(request: Request, uri: str) -> tuple[str | bytes, str]:
    for resource in request.dialect.resources:
        if resource.uri == uri:
            return resource.read(request), resource.mime_type
    for template in request.dialect.templates:
        data = template.read(request, uri)
        if data is not None:
            return data, template.mime_type
    raise _not_found(request, uri)


def _not_found(request: Request, uri: str) -> ProtocolError:
    message = f"Resource not found: {uri}"
    if request.is_stateless:
        return InvalidParams(message, {"uri": uri})
    return ProtocolError(_NOT_FOUND, message, {"uri": uri})


def _find_prompt(request: Request, name: str) -> Prompt:
    for prompt in request.dialect.prompts:
        if prompt.name == name:
            return prompt
    raise InvalidParams(f"Unknown prompt: {name}")


def _prompt_message(message: PromptMessage) -> dict[str, Any]:
    content = message.content
    if isinstance(content, str):
        return {"role": message.role, "content": TextContent(content)}
    return {"role": message.role, "content": content}


def _find_reference(request: Request, ref: CompletionReference) -> Prompt | ResourceTemplate:
    if ref.type == "ref/prompt":
        return _find_prompt(request, ref.name)
    if ref.type != "ref/resource":
        raise InvalidParams(f"ref.type: expected ref/prompt or ref/resource, got {ref.type}")
    for template in request.dialect.templates:
        if template.uri_template == ref.uri:
            return template
    raise InvalidParams(f"Unknown resource template: {ref.uri}")


def _describe_prompt(prompt: Prompt) -> dict[str, Any]:
    arguments = []
    for argument in prompt.arguments:
        arguments.append(
            {
                "name": argument.name,
                "description": argument.description,
                "required": argument.required,
            }
        )
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments,
    }
