"""`prompts/list`, `prompts/get` and `completion/complete`."""

from typing import Any

from polymnia.dialects.base import Message, Prompt, ResourceTemplate
from polymnia.errors import InvalidParams
from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import Complete, CompletionReference, GetPrompt, Listing
from polymnia.mcp.tools import TextContent, refuse_cursor

# The protocol's bound on one answer.
_MOST_COMPLETIONS = 100


def list_prompts(exchange: Exchange, params: Listing) -> dict[str, Any]:
    refuse_cursor(params)
    return {"prompts": [_described(prompt) for prompt in exchange.dialect.prompts]}


def get_prompt(exchange: Exchange, params: GetPrompt) -> dict[str, Any]:
    prompt = _prompt(exchange, params.name)
    given = params.arguments or {}
    missing = [each.name for each in prompt.arguments if each.required and each.name not in given]
    if missing:
        raise InvalidParams(f"the prompt {prompt.name} needs {', '.join(missing)}")
    rendered = prompt.render(exchange.call(), given)
    messages = [Message(rendered)] if isinstance(rendered, str) else rendered
    return {"description": prompt.description, "messages": [_said(each) for each in messages]}


def complete(exchange: Exchange, params: Complete) -> dict[str, Any]:
    source = _completed(exchange, params.ref)
    values: list[str] = []
    if source.complete is not None:
        values = list(source.complete(exchange.call(), params.argument.name, params.argument.value))
    shown = values[:_MOST_COMPLETIONS]
    return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}


def _prompt(exchange: Exchange, name: str) -> Prompt:
    for prompt in exchange.dialect.prompts:
        if prompt.name == name:
            return prompt
    raise InvalidParams(f"Unknown prompt: {name}")


def _said(message: Message) -> dict[str, Any]:
    content = message.content
    return {"role": message.role, "content": TextContent(content) if isinstance(content, str) else content}


def _completed(exchange: Exchange, ref: CompletionReference) -> Prompt | ResourceTemplate:
    if ref.type == "ref/prompt":
        return _prompt(exchange, ref.name)
    if ref.type == "ref/resource":
        for template in exchange.dialect.templates:
            if template.uri_template == ref.uri:
                return template
        raise InvalidParams(f"Unknown resource template: {ref.uri}")
    raise InvalidParams(f"ref.type: expected ref/prompt or ref/resource, got {ref.type}")


def _described(prompt: Prompt) -> dict[str, Any]:
    arguments = [
        {"name": each.name, "description": each.description, "required": each.required} for each in prompt.arguments
    ]
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments,
    }
