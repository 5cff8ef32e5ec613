"""The protocol's revisions and what sets them apart."""

from polymnia.errors import InvalidParams, ProtocolError

# Agreed on by `initialize`, oldest first.
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# Named by every request in its `_meta`; no handshake, no session.
STATELESS = ("2026-07-28",)
SUPPORTED = HANDSHAKE + STATELESS
LATEST_HANDSHAKE = HANDSHAKE[-1]

# The one revision that has JSON-RPC batches.
BATCHES = "2025-03-26"
# From here on tool results carry structured content.
_STRUCTURED_SINCE = "2025-06-18"

UNSUPPORTED_VERSION = -32022


def negotiated(requested: str) -> str:
    """What `initialize` answers: the revision asked for, or our newest that has a handshake."""
    return requested if requested in HANDSHAKE else LATEST_HANDSHAKE


def stateless(requested: object) -> str:
    """The revision a request names for itself. Raises ProtocolError when we do not speak it."""
    if not isinstance(requested, str):
        raise InvalidParams("_meta: the protocol version must be a string")
    if requested not in STATELESS:
        data = {"supported": list(SUPPORTED), "requested": requested}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return requested


def has_structured_content(revision: str) -> bool:
    """Whether clients of that revision know `structuredContent`."""
    return revision >= _STRUCTURED_SINCE
