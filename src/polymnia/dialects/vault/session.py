"""Which session a client is in, and how it says so."""

from polymnia.dialects.base import Client
from polymnia.errors import BadInput
from polymnia.model import NoteScope

_HOW = (
    "say which with each request, in params._meta under polymnia/sessionId, or use the scope vault; "
    "a client that shakes hands with initialize has a session from the start"
)


def own_session(client: Client) -> NoteScope | None:
    """The session of a client, under its principal's name so that nobody enters it by guessing; None without one."""
    name = client.session or client.id
    return NoteScope(name, client.principal.name) if name else None


def required_session(client: Client) -> NoteScope:
    """The same. Raises BadInput, saying how to have one."""
    scope = own_session(client)
    if scope is None:
        raise BadInput(f"this client is in no session: {_HOW}")
    return scope
