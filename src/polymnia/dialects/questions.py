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


class SampledContent(Struct, frozen=True):
    type: str
    text: str = ""


class Sampled(Struct, frozen=True):
    """What the client's model wrote."""

    content: SampledContent | list[SampledContent]
    model: str = ""

    @property
    def text(self) -> str:
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block.text for block in blocks if block.type == "text")


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
_sampled: Decoder[Sampled] = Decoder(Sampled)
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


def sampling(
    key: str, text: str, *, max_tokens: int, system: str | None = None
) -> Question[Sampled]:
    """Return a request to the client's model to continue a text."""
    params: dict[str, Any] = {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": max_tokens,
    }
    if system is not None:
        params["systemPrompt"] = system
    return Question(key, "sampling/createMessage", "sampling", params, _sampled)


def list_roots(key: str = "roots") -> Question[ListedRoots]:
    """Return the question which directories the client works in."""
    return Question(key, "roots/list", "roots", {}, _roots)
