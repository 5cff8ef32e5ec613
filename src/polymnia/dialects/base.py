"""What a dialect is made of: tools, resources and prompts as values over typed functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder, encode
from msgspec.json import format as reformat

from polymnia.dialects.content import Block
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import BadInput, Cancelled, NoWorkspace
from polymnia.model import OWNER, Capability, Change, Principal

# How much a log message matters, least first.
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
_declared: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_LONGEST_SESSION = 200


class NoteRules(Struct, frozen=True, kw_only=True):
    """What a server decides about notes: how many numbers an embedding has, whether a session's outlast it."""

    dimension: int = 1536
    persist_sessions: bool = False


class Client(Struct, kw_only=True):
    """Who calls, and what is remembered of them from one call to the next.

    `lasting` is False for a client without a session: what a tool remembers here is forgotten when its call ends.
    `id` is the conversation's, empty when nobody will say that it has ended.
    """

    principal: Principal = OWNER
    workspace: str | None = None
    session: str = ""
    lasting: bool = True
    id: str = field(default_factory=lambda: str(uuid4()))
    # What it offers to do for a server, in its own words.
    capabilities: Raw = Raw(b"{}")

    def declares(self, capability: str) -> bool:
        """Whether it has said that it can do that; words nobody understands say nothing."""
        try:
            return capability in _declared.decode(self.capabilities)
        except DecodeError:
            return False


def _no_progress(done: float, total: float | None, message: str | None) -> None:
    """Nobody asked."""


def _never() -> bool:
    return False


def _unheard(level: Level, text: str) -> None:
    """Nobody listens."""


def _nobody() -> None:
    """Nobody listens."""


class Call(Struct, frozen=True):
    """What a tool, resource or prompt may use besides its arguments: the memory, who asks, how to report back."""

    workspaces: Workspaces
    client: Client
    by: str
    progress: Callable[[float, float | None, str | None], None] = _no_progress
    cancelled: Callable[[], bool] = _never
    log: Callable[[Level, str], None] = _unheard
    # To be called when the client finds other resources listed than before, for another reason than a change.
    resources_changed: Callable[[], None] = _nobody

    @property
    def memory(self) -> Memory:
        """That of the workspace the client works in. Raises NoWorkspace, NotAllowed, WorkspaceNotFound."""
        workspace = self.client.workspace
        if workspace is None:
            raise NoWorkspace("no workspace was named; send its name in the header X-Memory-Workspace")
        self.client.principal.require_entry(workspace)
        return self.workspaces.memory(workspace)

    def check(self) -> None:
        """Stop here if the client has cancelled. Raises Cancelled."""
        if self.cancelled():
            raise Cancelled("the client cancelled this call")


class Reply(Struct, frozen=True):
    """A tool's answer: text for the model and, where the tool has an output schema, the same as JSON.

    A note is something the model should know beside the answer, such as that it is not whole. What is shown comes after
    the text, or in place of an empty one.
    """

    text: str
    structured: Raw | None = None
    note: str | None = None
    shown: tuple[Block, ...] = ()


class Tool(Struct, frozen=True, kw_only=True):
    """One tool: its name and description, the types of its arguments and answer, and the function behind it."""

    name: str
    title: str
    description: str
    needs: Capability
    arguments: type[Struct]
    returns: type[Struct] | None
    destructive: bool
    idempotent: bool
    # Whether a call takes well under a millisecond, however much there is: it may be answered between two others.
    quick: bool
    run: Callable[[Call, Any], Reply]
    decoder: Decoder[Any]


class Resource(Struct, frozen=True, kw_only=True):
    """Something to read at a fixed address."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"
    read: Callable[[Call], str | bytes]
    touched_by: Callable[[Client, Change], bool]


class ResourceTemplate(Struct, frozen=True, kw_only=True):
    """Something to read at any address of a form; `read` gives None for an address of another form.

    `touched` says whether a change may have altered what the client reads at an address.
    """

    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"
    read: Callable[[Call, str], str | bytes | None]
    touched: Callable[[Client, Change, str], bool]
    complete: Callable[[Call, str, str], Sequence[str]] | None = None


class PromptArgument(Struct, frozen=True, kw_only=True):
    """A blank in a prompt."""

    name: str
    description: str
    required: bool = False


class Message(Struct, frozen=True):
    """One of several that a prompt begins a conversation with."""

    content: str | Block
    role: Literal["user", "assistant"] = "user"


class Prompt(Struct, frozen=True, kw_only=True):
    """A text users may start from, or the first messages of a conversation."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()
    render: Callable[[Call, Mapping[str, str]], str | Sequence[Message]]
    complete: Callable[[Call, str, str], Sequence[str]] | None = None


class Dialect(Struct, frozen=True, kw_only=True):
    """A catalogue as its clients know it, and what it does when a server starts and stops and a conversation ends."""

    name: str
    server_name: str
    server_version: str
    instructions: str
    tools: Mapping[str, Tool]
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resource_set_changed: Callable[[Client, Change], bool] | None = None
    # Resources that only this client finds listed.
    own_resources: Callable[[Client], Sequence[Resource]] | None = None
    # With the workspace of clients that name none; it may refuse to start with a SettingsError.
    started: Callable[[Call], None] | None = None
    stopped: Callable[[], None] | None = None
    # Once, when a lasting conversation is over.
    left: Callable[[Client], None] | None = None
    # Whether file stores, which hold entities, observations and relations and no more, are enough for its tools.
    any_store: bool = True
    # Whether its clients have tools to choose a workspace, so that they may begin in none.
    chooses_workspace: bool = False


def session_name(given: str) -> str:
    """The id that somebody gives a session. Raises BadInput for one that nobody could mean."""
    if not given.strip():
        raise BadInput("session id: must not be blank")
    if len(given) > _LONGEST_SESSION:
        raise BadInput(f"session id: at most {_LONGEST_SESSION} characters, got {len(given)}")
    return given


def catalogue(*tools: Tool) -> dict[str, Tool]:
    """The tools by name, in the order clients list them."""
    return {each.name: each for each in tools}


def tool(
    arguments: type[Struct],
    *,
    needs: Capability,
    returns: type[Struct] | None = None,
    destructive: bool = False,
    idempotent: bool = False,
    quick: bool = False,
) -> Callable[[Callable[[Call, Any], Reply]], Tool]:
    """Make a tool of a function: its name is the tool's, its docstring what clients read."""

    def made(function: Callable[[Call, Any], Reply]) -> Tool:
        name = function.__name__
        return Tool(
            name=name,
            title=name.replace("_", " ").title(),
            description=function.__doc__ or "",
            needs=needs,
            arguments=arguments,
            returns=returns,
            destructive=destructive,
            idempotent=idempotent,
            quick=quick,
            run=function,
            decoder=Decoder(arguments),
        )

    return made


def indented(value: object) -> str:
    """JSON as people read it: two spaces a level."""
    return reformat(encode(value), indent=2).decode()
