"""The methods by which a client asks to be told: subscriptions, listen streams, the log level."""

from typing import Any

from polymnia.mcp.exchange import Exchange
from polymnia.mcp.params import Listen, OneResource, SetLevel


def subscribe(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    exchange.conversation.push.subscribe(params.uri)
    exchange.conversation.attend()
    return {}


def unsubscribe(exchange: Exchange, params: OneResource) -> dict[str, Any]:
    exchange.conversation.push.subscribed.discard(params.uri)
    exchange.conversation.attend()
    return {}


def listen(exchange: Exchange, params: Listen) -> None:
    """The answer to this one comes when the stream ends."""
    conversation = exchange.conversation
    conversation.push.listen(
        exchange.id, bytes(exchange.raw_id), params.notifications, exchange.client, exchange.notify
    )
    conversation.attend()


def set_level(exchange: Exchange, params: SetLevel) -> dict[str, Any]:
    exchange.conversation.push.set_level(params.level)
    return {}
