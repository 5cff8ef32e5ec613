"""The methods by which a client asks to be told: subscriptions, listen streams, the log level."""

from typing import Any

from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import Listen, OneResource, SetLevel


def subscribe(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    exchange.conversation.push.subscribed.add(params.uri)
    return {}


def unsubscribe(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    exchange.conversation.push.subscribed.discard(params.uri)
    return {}


def listen(exchange: Exchange, params: Listen) -> None:
    """The answer to this one comes when the stream ends."""
    push = exchange.conversation.push
    push.listen(exchange.id, bytes(exchange.raw_id), params.notifications, exchange.client, exchange.notify)


def set_level(exchange: Exchange, params: SetLevel) -> dict[str, Any]:
    exchange.conversation.push.set_level(params.level)
    return {}
