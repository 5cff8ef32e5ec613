"""What a dialect consists of: tools, resources and prompts, as values over typed functions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from polymnia.dialects.questions import Askable, Elicited, Question, T
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces
from polymnia.errors import (
    BadInput,
    Cancelled,
    InputRequired,
    MissingCapability,
    NoWorkspace,
    Unanswered,
)
from polymnia.model import OWNER, Capability, Change, Principal

# Log levels, least severe first.
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
_capabilities: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
MAX_SESSION_ID_LENGTH = 200
# More rows than any store holds, and few enough for the integers of every store.
MAX_ROWS = 1 << 40
# A block of content besides text: a struct with the fields that the protocol gives it.
Block = Struct


class ServerRules(Struct, frozen=True, kw_only=True):
    """What the settings of a server change in its dialect."""

    # Numbers in the embedding of a note, which clients of `vault` compute.
    dimension: int = 1536
    # True if session notes outlive their session.
    persist_sessions: bool = False
    # Further tools to offer.
    toolsets: tuple[str, ...] = ()


class Client(Struct, kw_only=True):
    """The caller, and what the server remembers of it between calls.

    `lasting` is False for a client without a session: what a tool stores here is forgotten
    after the call. `id` identifies the conversation; it is empty if the server will not learn when
    the conversation ends.
    """

    principal: Principal = OWNER
    workspace: str | None = None
    # True if the client started this server: the server may look at the files of its project.
    is_local: bool = False
    # The id of the workspace that the client chose. Another workspace may get its name later.
    workspace_id: str = ""
    # The directory of the project that the workspace belongs to.
    workspace_path: str = ""
    # True if the client was asked for its roots.
    has_told_roots: bool = False
    # True if the request itself names its workspace, so that switching has no effect.
    names_workspace: bool = False
    session: str = ""
    lasting: bool = True
    id: str = field(default_factory=lambda: str(uuid4()))
    # The capabilities it declared, as JSON.
    capabilities: Raw = Raw(b"{}")
    # The conversation's client, if this one stands for it during a single request.
    conversation: "Client | None" = None

    def declares(self, capability: str) -> bool:
        """Return True if the client declared the capability, in a form that can be read."""
        return capability in self._decode_capabilities()

    def may_be_asked(self, capability: Askable) -> bool:
        """Return True if the client can be asked that. Elicitation without modes means forms."""
        declared = self._decode_capabilities()
        if capability not in declared:
            return False
        modes = _decode_object(declared[capability]) if capability == "elicitation" else {}
        return not modes or "form" in modes

    def _decode_capabilities(self) -> dict[str, Raw]:
        return _decode_object(self.capabilities)

    def enter_session(self, session: str) -> None:
        """Use that session from now on, in this request and in the rest of the conversation."""
        self.session = session
        if self.conversation is not None:
            self.conversation.session = session


def _decode_object(raw: Raw) -> dict[str, Raw]:
    try:
        return _capabilities.decode(raw)
    except (DecodeError, RecursionError):
        return {}


class Call(Struct):
    """What a tool, resource or prompt may use besides its arguments.

    Here progress and questions reach no client; a request of a client overrides that.
    """

    workspaces: Workspaces
    client: Client
    # Who signs the changes.
    by: str
    # The client's answers so far, by the keys of the questions, and why it did not answer others.
    answers: Mapping[str, Raw | Unanswered] = {}

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report progress, if the client wants it."""

    def cancelled(self) -> bool:
        """Return True if the client no longer waits for the result."""
        return False

    def log(self, level: Level, text: str) -> None:
        """Send a log message, if the client wants messages of that level."""

    def may_ask(self, capability: Askable) -> bool:
        """Return True if the client can be asked that."""
        return False

    def resources_changed(self) -> None:
        """Say that the client's list of resources changed for a reason other than a write."""

    @property
    def memory(self) -> Memory:
        """Return the memory of the client's workspace. Raise NoWorkspace or another BadInput."""
        workspace = self.client.workspace
        if workspace is None:
            raise NoWorkspace(
                "no workspace selected: send its name in the header X-Memory-Workspace, "
                'or with "polymnia/workspace" in _meta'
            )
        self.client.principal.require_entry(workspace)
        return self.workspaces.memory(workspace)

    def ask(self, question: Question[T]) -> T:
        """Return the client's answer: see `dialects/questions.py`. Ask before you change anything.

        Raise InputRequired while there is no answer, Unanswered if there will be none, and
        MissingCapability if the client cannot be asked; check `may_ask` first.
        """
        self.require_answers(question)
        answer = self.answers[question.key]
        if isinstance(answer, Unanswered):
            raise answer
        return question.decode(answer)

    def require_answers(self, *questions: Question[Any]) -> None:
        """Ask several questions at once. `ask` then returns the answer to each."""
        missing = [question for question in questions if question.key not in self.answers]
        for question in missing:
            if not self.may_ask(question.needs):
                raise MissingCapability(question.needs)
        if missing:
            raise InputRequired(missing)

    def confirm(self, question: Question[Elicited], *, otherwise: bool) -> bool | None:
        """Ask the user, and return True if they agree.

        If the client cannot ask, return True with `otherwise`, and None without it.
        """
        if self.may_ask(question.needs):
            return self.ask(question).is_accepted
        return otherwise or None

    def check(self) -> None:
        """Raise Cancelled if the client has cancelled the call."""
        if self.cancelled():
            raise Cancelled("the client cancelled this call")


class Reply(Struct, frozen=True):
    """A tool's reply: text for the model and, if the tool has an output schema, the same as JSON.

    `note` is a second text that qualifies the first, for example that a list is incomplete. `shown`
    blocks follow the text, or replace it when it is empty.
    """

    text: str
    structured: Raw | None = None
    note: str | None = None
    shown: tuple[Block, ...] = ()


class Tool(Struct, frozen=True, kw_only=True):
    """A tool: what clients read of it, and the function that implements it."""

    name: str
    title: str
    description: str
    needs: Capability
    arguments: type[Struct]
    returns: type[Struct] | None
    destructive: bool
    idempotent: bool
    run: Callable[[Call, Any], Reply]
    decoder: Decoder[Any]
    # True if clients that load tools on demand should always load this one.
    always_load: bool = False
    # True if the list omits the protocol's defaults, to cost a model fewer tokens.
    brief: bool = False


class StrictArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool that rejects unknown ones; by itself, of a tool that takes none."""


class Resource(Struct, frozen=True, kw_only=True):
    """A resource at a fixed URI. `touched_by` tells whether a change may have altered it."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"
    read: Callable[[Call], str | bytes]
    touched_by: Callable[[Client, Change], bool]


class ResourceTemplate(Struct, frozen=True, kw_only=True):
    """Resources whose URIs follow a template. `read` returns None for a URI that does not.

    `touched` tells whether a change may have altered what the client reads at a URI.
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
    """A parameter of a prompt."""

    name: str
    description: str
    required: bool = False


class PromptMessage(Struct, frozen=True):
    """One message of a prompt."""

    content: str | Block
    role: Literal["user", "assistant"] = "user"


class Prompt(Struct, frozen=True, kw_only=True):
    """A text or a list of messages that users can start a conversation with."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()
    render: Callable[[Call, Mapping[str, str]], str | Sequence[PromptMessage]]
    complete: Callable[[Call, str, str], Sequence[str]] | None = None


class Dialect(Struct, frozen=True, kw_only=True):
    """A tool catalogue as its clients know it, and its hooks into the life of a server."""

    name: str
    server_name: str
    server_version: str
    # How to use the tools that read. The others follow for clients that may write or administer.
    instructions: str
    write_instructions: str = ""
    admin_instructions: str = ""
    tools: Mapping[str, Tool]
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resource_set_changed: Callable[[Client, Change], bool] | None = None
    # Resources that only this client can list.
    own_resources: Callable[[Client], Sequence[Resource]] | None = None
    # Called with the default workspace when the server starts. Raises SettingsError to refuse.
    on_start: Callable[[Call], None] | None = None
    on_stop: Callable[[], None] | None = None
    # Called once, when a lasting conversation ends.
    on_session_end: Callable[[Client], None] | None = None
    # False if the tools store more than file stores hold: entities, facts and relations.
    any_store: bool = True
    # True if there are tools to choose a workspace, so that clients may start without one.
    chooses_workspace: bool = False
    # True if every client must name its workspace: there is no default, and none is created.
    requires_workspace: bool = False

    # Workspaces that every client uses beside its own. The first write creates them.
    shared_workspaces: tuple[str, ...] = ()
    # Returns the workspace of clients that work in a directory; None stands for many clients. It
    # may not exist yet.
    find_workspace: Callable[[Workspaces, Path | None], str] | None = None
    # What the instructions say of the client's workspaces.
    describe_workspaces: Callable[[Workspaces, Client], str] | None = None

    def instructions_for(self, principal: Principal) -> str:
        """Return the instructions, without tools that the principal may not call."""
        parts = [self.instructions]
        if self.write_instructions and principal.may("write"):
            parts.append(self.write_instructions)
        if self.admin_instructions and principal.may("admin"):
            parts.append(self.admin_instructions)
        return "\n".join(parts)

    def greet(self, workspaces: Workspaces, client: Client) -> str:
        """Return the instructions for a client, with its workspaces."""
        text = self.instructions_for(client.principal)
        if self.describe_workspaces is None:
            return text
        return f"{text}\n{self.describe_workspaces(workspaces, client)}"


def session_name(given: str) -> str:
    """Return the session id. Raise BadInput if it is blank or too long."""
    if not given.strip():
        raise BadInput("session id: must not be blank")
    if len(given) > MAX_SESSION_ID_LENGTH:
        raise BadInput(f"session id: at most {MAX_SESSION_ID_LENGTH} characters, got {len(given)}")
    return given


def catalogue(*tools: Tool) -> dict[str, Tool]:
    """Return the tools by name, in the order in which clients list them."""
    return {tool.name: tool for tool in tools}


def tool(
    arguments: type[Struct],
    *,
    needs: Capability,
    returns: type[Struct] | None = None,
    destructive: bool = False,
    idempotent: bool = False,
    always_load: bool = False,
    brief: bool = False,
) -> Callable[[Callable[[Call, Any], Reply]], Tool]:
    """Turn a function into a tool.

    Its name becomes the tool's name, and its docstring the description that clients read.
    """

    def make(function: Callable[[Call, Any], Reply]) -> Tool:
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
            run=function,
            decoder=Decoder(arguments),
            always_load=always_load,
            brief=brief,
        )

    return make
