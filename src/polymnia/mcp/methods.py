"""Every method a client may call, its parameters, and in which of the two eras it exists."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from polymnia.mcp import lifecycle, params, prompts, resources, subscriptions, tools
from polymnia.mcp.exchange import Exchange

Run = Callable[[Exchange, Any], Any]


class Method(Struct, frozen=True, kw_only=True):
    """What is behind a method's name. A function that gives None answers later, or never."""

    decoder: Decoder[Any]
    run: Run
    handshake: bool = True
    stateless: bool = True
    # For stateless clients: how long an answer may be kept, in milliseconds; None where it must not be.
    fresh_for: int | None = None


def _method(kind: type[params.Params], run: Run, **about: Any) -> Method:
    return Method(decoder=Decoder(kind), run=run, **about)


_HOUR = 3_600_000

METHODS: dict[str, Method] = {
    "initialize": _method(params.Initialize, lifecycle.initialize, stateless=False),
    "server/discover": _method(params.Params, lifecycle.discover, handshake=False, fresh_for=_HOUR),
    "ping": _method(params.Params, lifecycle.ping, stateless=False),
    "tools/list": _method(params.Listing, tools.list_tools, fresh_for=_HOUR),
    "tools/call": _method(params.CallTool, tools.call_tool),
    "resources/list": _method(params.Listing, resources.list_resources, fresh_for=0),
    "resources/templates/list": _method(params.Listing, resources.list_templates, fresh_for=_HOUR),
    "resources/read": _method(params.OneResource, resources.read_resource, fresh_for=0),
    "resources/subscribe": _method(params.OneResource, subscriptions.subscribe, stateless=False),
    "resources/unsubscribe": _method(params.OneResource, subscriptions.unsubscribe, stateless=False),
    "subscriptions/listen": _method(params.Listen, subscriptions.listen, handshake=False),
    "prompts/list": _method(params.Listing, prompts.list_prompts, fresh_for=_HOUR),
    "prompts/get": _method(params.GetPrompt, prompts.get_prompt),
    "completion/complete": _method(params.Complete, prompts.complete),
    "logging/setLevel": _method(params.SetLevel, subscriptions.set_level, stateless=False),
}
