"""What a tool, resource or prompt may ask of its client while it runs.

`Call.ask` returns the client's answer. While there is none it raises InputRequired: the function
ends there, the client is asked, and when it has answered the function runs again from the start
with the answers so far. So no thread waits while a person thinks, and a function must ask before it
changes anything. A question is known by its key, so a function that runs again must ask under the
same keys.

    @tool(Forget, needs="write")
    def forget(call: Call, arguments: Forget) -> Reply:
        if len(hits) > MAX_UNCONFIRMED and not arguments.confirm:
            if not call.may_ask("elicitation"):
                raise BadInput("...: repeat the call with confirm: true")
            if not call.ask(confirmation("confirm", f"Forget {len(hits)} entities?")).is_accepted:
                raise BadInput("the user declined")
        ...
"""

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from polymnia.errors import InvalidParams

# The capability that a client declares if it can be asked.
Askable = Literal["elicitation", "sampling", "roots"]
T = TypeVar("T")


class Elicited(Struct, frozen=True):
    """What the user did with a form."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None

    @property
    def is_accepted(self) -> bool:
        """Return True if the user agreed. A form with one checkbox must also be ticked."""
        return self.action == "accept" and (self.content or {}).get(_CONFIRMED, True) is True


class Root(Struct, frozen=True):
    """A directory that the client works in."""

    uri: str
    name: str | None = None


class ListedRoots(Struct, frozen=True):
    """The directories that the client works in."""

    roots: list[Root]


class Question(Struct, Generic[T], frozen=True):
    """A request to the client, and how to decode the answer."""

    key: str
    method: str
    needs: Askable
    params: dict[str, Any]
    decoder: Decoder[T]

    def decode(self, answer: Raw) -> T:
        """Return the client's answer. Raise InvalidParams if it is malformed."""
        try:
            return self.decoder.decode(answer)
        except (DecodeError, RecursionError) as exc:
            text = f"the client's answer to {self.method} is malformed: {exc}"
            raise InvalidParams(text) from exc


_CONFIRMED = "confirmed"
_elicited: Decoder[Elicited] = Decoder(Elicited)
_roots: Decoder[ListedRoots] = Decoder(ListedRoots)


def elicitation(
    key: str, message: str, properties: Mapping[str, Any], *, required: list[str]
) -> Question[Elicited]:
    """Return a question to the user: a form of fields with JSON schemas of primitive types."""
    schema = {"type": "object", "properties": dict(properties), "required": required}
    params = {"message": message, "requestedSchema": schema}
    return Question(key, "elicitation/create", "elicitation", params, _elicited)


def confirmation(key: str, message: str) -> Question[Elicited]:
    """Return a question that the user answers with yes or no."""
    checkbox = {_CONFIRMED: {"type": "boolean", "title": "Confirm", "default": False}}
    return elicitation(key, message, checkbox, required=[_CONFIRMED])


def list_roots(key: str = "roots") -> Question[ListedRoots]:
    """Return the question which directories the client works in."""
    return Question(key, "roots/list", "roots", {}, _roots)
