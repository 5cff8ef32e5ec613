"""One request while it is being answered: how it came, who asks, and the ways to report back."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct, field, structs

from polymnia.dialects.base import Call, Client, Dialect, Level, session_name
from polymnia.dialects.questions import Askable
from polymnia.errors import InvalidParams, Unanswered
from polymnia.mcp import params
from polymnia.mcp.jsonrpc import Message, Outcome, RequestId, encode, encode_notification
from polymnia.mcp.push import LIST_CHANGED, Notify, is_at_least, require_level
from polymnia.model import join_actor

if TYPE_CHECKING:
    from polymnia.mcp.session import Session

# How often a client that wants progress gets it.
PROGRESS_INTERVAL_S = 0.1
# Logged in place of a method or tool that does not exist, whose name may be any text.
UNKNOWN = "(unknown)"
BATCH = "batch"
_NO_META = params.Meta()

Answers = dict[str, Raw | Unanswered]


class MessageRecord(Struct, frozen=True, kw_only=True):
    """What logs and metrics may know of a message: names and times, but no user text."""

    method: str
    # Empty if the message calls no tool.
    tool: str = ""
    # The names of the workspaces that it used, separated by commas.
    workspace: str = ""
    outcome: Outcome = "ok"
    error_code: int | None = None
    seconds: float = 0.0


class Delivery(Struct, frozen=True, kw_only=True):
    """What a transport knows of a message besides its bytes."""

    # The workspace that the message names in a header.
    workspace: str | None = None
    # Called with each notification about this message. Without it they go to the session's outbox.
    notify: Callable[[bytes], None] | None = None
    # Returns True once nobody waits for the reply.
    is_gone: Callable[[], bool] | None = None
    # Called with a reply that comes after `handle` has returned, or with None if there will be
    # none. Without this function such replies go to the outbox.
    reply: Callable[[bytes | None], None] | None = None
    # False if the client cannot be asked anything before the reply.
    can_ask: bool = True
    # Called after each request. A batch has several.
    observe: Callable[[MessageRecord], None] | None = None


PLAIN = Delivery()


class PendingRequest(Struct, kw_only=True):
    """A client's request until it is answered. It may run several times, with more answers."""

    message: Message
    id: RequestId
    raw_id: Raw
    delivery: Delivery
    # The client's answers to questions so far, by the keys of the questions.
    answers: Answers = field(default_factory=dict)
    # The keys of open questions by the ids of the messages that ask them.
    open_questions: dict[str, str] = field(default_factory=dict)
    # How often the client was asked.
    rounds: int = 0


class Exchange(Struct, kw_only=True):
    """One run of a request: what a method may use besides its parameters."""

    session: "Session"
    request: PendingRequest
    revision: str
    is_stateless: bool
    meta: params.Meta
    client: Client
    actor: str
    # Where notifications about this request go: with its response, or to the session's outbox.
    notify: Notify
    is_cancelled: bool = False
    started_at: float = field(default_factory=time.monotonic)
    # The last progress that was reported; None if none.
    reported: float | None = None
    # True if the tool reports its own progress.
    has_own_progress: bool = False

    @property
    def dialect(self) -> Dialect:
        return self.session.server.dialect

    def call(self) -> Call:
        """Return what tools, resources and prompts see of this exchange."""
        call = Call(
            self.session.server.workspaces,
            self.client,
            join_actor(self.actor, self.client.principal.name),
            cancelled=self.is_unwanted,
            log=self._log,
            resources_changed=self._notify_of_list,
            may_ask=self.may_ask,
            answers=self.request.answers,
        )
        if self._wants_progress:
            return structs.replace(call, progress=self._report_progress)
        return call

    def may_ask(self, capability: Askable) -> bool:
        """Return True if the client can be asked that."""
        is_known = self.revision >= params.ELICITATION_SINCE or capability != "elicitation"
        # A stateless client answers with its next request, whatever the transport can do.
        can_ask = self.is_stateless or self.request.delivery.can_ask
        return can_ask and is_known and self.client.may_be_asked(capability)

    def is_unwanted(self) -> bool:
        """Return True if the client has cancelled the request or is gone.

        Long work calls this regularly, so it also sends progress to a client that wants it.
        """
        if self._wants_progress and not self.has_own_progress:
            self._report_time()
        is_gone = self.request.delivery.is_gone
        return self.is_cancelled or (is_gone is not None and is_gone())

    def _log(self, level: Level, text: str) -> None:
        """Tell the client about its own request, if it asked for messages of that level."""
        if self.is_stateless:
            is_wanted = is_at_least(level, self.meta.log_level)
        else:
            is_wanted = self.session.push.wants_level(level)
        if is_wanted:
            message = {"level": level, "logger": self.dialect.name, "data": text}
            self.notify("notifications/message", message)

    def _notify_of_list(self) -> None:
        self.session.notify(LIST_CHANGED, {})

    @property
    def _wants_progress(self) -> bool:
        return self.meta.progress_token not in (UNSET, None)

    def _report_time(self) -> None:
        """Report the seconds since the start as progress, which has no known end."""
        elapsed = round(time.monotonic() - self.started_at, 3)
        if elapsed - (self.reported or 0.0) >= PROGRESS_INTERVAL_S:
            self._send_progress(elapsed, None, "working")

    def _report_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report the progress of the tool."""
        if self.reported is not None and not self.has_own_progress:
            return  # seconds were reported, which have another scale
        if self.reported is not None and done <= self.reported:
            return  # progress must increase
        self.has_own_progress = True
        self._send_progress(done, total, message)

    def _send_progress(self, done: float, total: float | None, message: str | None) -> None:
        self.reported = done
        progress: dict[str, Any] = {"progressToken": self.meta.progress_token, "progress": done}
        if total is not None:
            progress["total"] = total
        if message is not None:
            progress["message"] = message
        self.notify("notifications/progress", progress)


def open_exchange(session: "Session", request: PendingRequest) -> Exchange:
    """Return the exchange of a request. Raise ProtocolError if its `_meta` is wrong."""
    meta = request.message.params.meta or _NO_META
    session.admit_client(meta)
    notify = session.notify
    if request.delivery.notify is not None:
        notify = partial(_notify, request.delivery.notify)
    exchange = Exchange(
        session=session,
        request=request,
        revision=session.revision,
        is_stateless=meta.protocol_version is not UNSET,
        meta=meta,
        client=session.client,
        actor=session.actor,
        notify=notify,
    )
    if exchange.is_stateless:
        exchange.revision = _stateless_revision(meta)
        exchange.actor = params.actor_name(meta.client_info or None)
    if exchange.is_stateless or request.delivery.workspace is not None:
        exchange.client = _client_of_request(session.client, meta, request.delivery)
    if exchange.is_stateless:
        request.answers = _answers_so_far(exchange)
    return exchange


def subject(client: Client, message: Message) -> bytes:
    """Return what a stateless client's answers belong to."""
    return encode([message.method, message.subject, client.principal.id])


def _client_of_request(client: Client, meta: params.Meta, delivery: Delivery) -> Client:
    """Return the client of a request that names its own workspace or session."""
    capabilities = client.capabilities
    if meta.client_capabilities is not UNSET:
        capabilities = meta.client_capabilities
    workspace = meta.workspace or delivery.workspace
    if workspace is None and meta.session is None and not client.lasting and not client.id:
        client.capabilities = capabilities  # the transport made this client for the request
        return client
    is_stateless = meta.protocol_version is not UNSET
    return Client(
        principal=client.principal,
        workspace=workspace or client.workspace,
        names_workspace=bool(workspace),
        session=client.session if meta.session is None else session_name(meta.session),
        lasting=client.lasting and not is_stateless,
        conversation=None if is_stateless else client,
        capabilities=capabilities,
        id=client.id if client.lasting else "",
    )


def _answers_so_far(exchange: Exchange) -> Answers:
    """Return a stateless client's answers in this request and before. Raise InvalidParams."""
    message = exchange.request.message
    arguments = message.params
    if not isinstance(arguments, params.Answered):
        return {}
    answers: Answers = {}
    if arguments.request_state:
        states = exchange.session.server.states
        answers |= states.open(subject(exchange.client, message), arguments.request_state)
    return answers | (arguments.input_responses or {})


def _stateless_revision(meta: params.Meta) -> str:
    if meta.client_capabilities is UNSET:
        raise InvalidParams(f"_meta is missing {params.CLIENT_CAPABILITIES}")
    if meta.log_level:
        require_level(meta.log_level)
    return params.require_stateless_revision(meta.protocol_version)


def _notify(notify: Callable[[bytes], None], method: str, arguments: dict[str, Any]) -> None:
    notify(encode_notification(method, arguments))
