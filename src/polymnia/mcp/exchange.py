"""One request while it is being answered: who asks, in which revision, and the ways to report back."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct, field

from polymnia.dialects.base import Call, Client, Dialect, Level, session_name
from polymnia.dialects.questions import Askable
from polymnia.errors import InvalidParams
from polymnia.mcp import params
from polymnia.mcp.asking import Answers, PendingRequest
from polymnia.mcp.jsonrpc import Message, RequestId, encode, encode_notification
from polymnia.mcp.push import LIST_CHANGED, Notify, is_at_least, require_level
from polymnia.model import join_actor

if TYPE_CHECKING:
    from polymnia.mcp.handled import Delivery
    from polymnia.mcp.session import Session

_NO_META = params.Meta()
# How often a client that wants progress gets it.
PROGRESS_INTERVAL_S = 0.1


class Exchange(Struct):
    """One request while it is being answered: what a method may use besides its parameters."""

    session: "Session"
    dialect: Dialect
    id: RequestId
    raw_id: Raw
    revision: str
    is_stateless: bool
    meta: params.Meta
    client: Client
    actor: str
    # Where notifications about this request go: with its response, or to the outbox of the session.
    notify: Notify
    # Returns True once nobody waits for the reply.
    gone: Callable[[], bool] | None = None
    # The client's answers so far, and whether it can be asked more during this request.
    answers: Answers = {}
    can_ask: bool = True
    is_cancelled: bool = False
    # When the request began, the last progress that was reported (None if none), and whether the tool reports its own.
    started_at: float = field(default_factory=time.monotonic)
    reported: float | None = None
    has_own_progress: bool = False

    def call(self) -> Call:
        """Return what tools, resources and prompts see of this exchange."""
        by = join_actor(self.actor, self.client.principal.name)
        about: dict[str, Any] = {
            "cancelled": self.is_unwanted,
            "log": self._log,
            "resources_changed": self._set_changed,
            "may_ask": self.may_ask,
            "answers": self.answers,
        }
        if self._wants_progress:
            about["progress"] = self._progress
        return Call(self.session.server.workspaces, self.client, by, **about)

    def may_ask(self, capability: Askable) -> bool:
        """Return True if the client can be asked that."""
        is_known = self.revision >= params.ELICITATION_SINCE or capability != "elicitation"
        return self.can_ask and is_known and self.client.may_be_asked(capability)

    def is_unwanted(self) -> bool:
        """Return True if the client has cancelled the request or is gone.

        Long work calls this regularly, so it also sends progress to a client that wants it.
        """
        if self._wants_progress and not self.has_own_progress:
            self._report_time()
        return self.is_cancelled or (self.gone is not None and self.gone())

    def _log(self, level: Level, text: str) -> None:
        """Tell the client about its own request, if it asked for messages of that level."""
        minimum = self.meta.log_level
        wanted = (
            is_at_least(level, minimum)
            if self.is_stateless
            else self.session.push.wants_level(level)
        )
        if wanted:
            self.notify(
                "notifications/message", {"level": level, "logger": self.dialect.name, "data": text}
            )

    def _set_changed(self) -> None:
        self.session.notify(LIST_CHANGED, {})

    @property
    def _wants_progress(self) -> bool:
        return self.meta.progress_token not in (UNSET, None)

    def _report_time(self) -> None:
        """Report the seconds since the start as progress, which has no known end."""
        elapsed = round(time.monotonic() - self.started_at, 3)
        if elapsed - (self.reported or 0.0) >= PROGRESS_INTERVAL_S:
            self._send_progress(elapsed, None, "working")

    def _progress(self, done: float, total: float | None, message: str | None) -> None:
        """Report the progress of the tool, unless seconds were reported before: the two have different scales."""
        if self.reported is None or (
            self.has_own_progress and done > self.reported
        ):  # progress must increase
            self.has_own_progress = True
            self._send_progress(done, total, message)

    def _send_progress(self, done: float, total: float | None, message: str | None) -> None:
        self.reported = done
        params: dict[str, Any] = {"progressToken": self.meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.notify("notifications/progress", params)


def open_exchange(session: "Session", request: PendingRequest) -> Exchange:
    """Return the exchange of a request. Raise ProtocolError if its `_meta` is wrong."""
    meta, delivery = request.message.params.meta or _NO_META, request.delivery
    session.admit_client(meta)
    revision, actor, client = session.revision, session.actor, session.client
    if is_stateless := meta.protocol_version is not UNSET:
        revision, actor = _stateless_revision(meta), params.actor_name(meta.client_info or None)
    if is_stateless or delivery.workspace is not None:
        client = _client_of_request(session.client, meta, delivery)
    if is_stateless:
        request.answers = _answers_so_far(session, request.message, client)
    notify = session.notify if delivery.tell is None else partial(_tell, delivery.tell)
    return Exchange(
        session,
        session.server.dialect,
        request.id,
        request.raw_id,
        revision,
        is_stateless,
        meta,
        client,
        actor,
        notify,
        delivery.gone,
        request.answers,
        is_stateless or delivery.can_ask,
    )


def subject(client: Client, message: Message) -> bytes:
    """Return what a stateless client's answers belong to."""
    return encode([message.method, message.subject, client.principal.id])


def _client_of_request(client: Client, meta: params.Meta, delivery: "Delivery") -> Client:
    """Return the client of a request that names its own workspace or session."""
    names_nothing = meta.workspace is None and meta.session is None and delivery.workspace is None
    if names_nothing and not client.lasting and not client.id:  # it was made for this request
        client.capabilities = (
            params.EMPTY if meta.client_capabilities is UNSET else meta.client_capabilities
        )
        return client
    is_stateless = meta.protocol_version is not UNSET
    return Client(
        principal=client.principal,
        workspace=meta.workspace or delivery.workspace or client.workspace,
        names_workspace=bool(meta.workspace or delivery.workspace),
        session=client.session if meta.session is None else session_name(meta.session),
        lasting=client.lasting and not is_stateless,
        conversation=None if is_stateless else client,
        capabilities=client.capabilities
        if meta.client_capabilities is UNSET
        else meta.client_capabilities,
        id=client.id if client.lasting else "",
    )


def _answers_so_far(session: "Session", message: Message, client: Client) -> Answers:
    """Return what a stateless client has answered, in this request and before. Raise InvalidParams."""
    asked = message.params
    if not isinstance(asked, params.Answered):
        return {}
    answers: Answers = dict(asked.input_responses or {})
    if asked.request_state:
        answers = {
            **session.server.states.open(subject(client, message), asked.request_state),
            **answers,
        }
    return answers


def _stateless_revision(meta: params.Meta) -> str:
    if meta.client_capabilities is UNSET:
        raise InvalidParams(f"_meta is missing {params.CLIENT_CAPABILITIES}")
    if meta.log_level:
        require_level(meta.log_level)
    return params.require_stateless_revision(meta.protocol_version)


def _tell(tell: Callable[[bytes], None], method: str, arguments: dict[str, Any]) -> None:
    tell(encode_notification(method, arguments))
