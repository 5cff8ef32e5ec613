"""One request from its first byte to its reply: who asks, and the ways to report back."""

import time
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, field

from polymnia.dialects.base import Call, Client, Dialect, Level, session_name
from polymnia.dialects.questions import Askable
from polymnia.errors import InvalidParams, Unanswered
from polymnia.mcp import params
from polymnia.mcp.message import Channel, Message, RequestId, encode, encode_notification
from polymnia.mcp.push import LIST_CHANGED, is_at_least, require_level
from polymnia.model import join_actor

if TYPE_CHECKING:
    from polymnia.mcp.session import Session

# How often a client that wants progress gets it.
PROGRESS_INTERVAL_S = 0.1

Answers = dict[str, Raw | Unanswered]


class Request(Call, kw_only=True):
    """A client's request until it is answered: what tools, resources and prompts see as their call.

    It may run several times, with more answers to its questions.
    """

    session: "Session"
    message: Message
    channel: Channel
    id: RequestId
    raw_id: Raw
    answers: Answers = field(default_factory=dict)
    # The keys of open questions by the ids of the messages that ask them.
    open_questions: dict[str, str] = field(default_factory=dict)
    # How often the client was asked.
    rounds: int = 0
    # The rest is of one run, and set by `begin`.
    revision: str = ""
    meta: params.Meta = params.Meta()
    # True if the request itself names its revision.
    is_stateless: bool = False
    is_cancelled: bool = False
    started_at: float = 0.0
    # The last progress that was reported; None if none.
    reported: float | None = None
    # True if the tool reports its own progress.
    has_own_progress: bool = False

    def begin(self) -> None:
        """Find out who asks, for one run. Raise ProtocolError or NotAdmitted."""
        session, message = self.session, self.message
        meta = message.params.meta
        if meta:
            self.meta = meta
            self.is_stateless = meta.protocol_version is not UNSET
        session.admit_client(self.meta.token)
        self.is_cancelled = self.has_own_progress = False
        self.reported = None
        self.started_at = time.monotonic()
        self.client, actor, self.revision = session.client, session.actor, session.revision
        if self.is_stateless:
            if self.meta.client_capabilities is UNSET:
                raise InvalidParams(f"_meta is missing {params.CLIENT_CAPABILITIES}")
            if self.meta.log_level:
                require_level(self.meta.log_level)
            self.revision = params.require_stateless_revision(self.meta.protocol_version)
            actor = params.actor_name(self.meta.client_info or None)
        if self.is_stateless or self.channel.workspace is not None:
            self.client = self._own_client()
        self.by = join_actor(actor, self.client.principal.name)
        if self.is_stateless and isinstance(message.params, params.Answered):
            # The client brings the answers of earlier rounds in a sealed state.
            arguments = message.params
            self.answers = {}
            if arguments.request_state:
                states = session.server.states
                self.answers |= states.open(self.subject, arguments.request_state)
            self.answers |= arguments.input_responses or {}

    @property
    def dialect(self) -> Dialect:
        return self.session.server.dialect

    @property
    def subject(self) -> bytes:
        """Return what a stateless client's answers belong to."""
        return encode([self.message.method, self.message.subject, self.client.principal.id])

    def may_ask(self, capability: Askable) -> bool:
        is_known = self.revision >= params.ELICITATION_SINCE or capability != "elicitation"
        # A stateless client answers with its next request over any transport.
        can_ask = self.is_stateless or self.channel.can_ask
        return can_ask and is_known and self.client.may_be_asked(capability)

    def cancelled(self) -> bool:
        """Return True if the client has cancelled the request or is gone.

        Long work calls this regularly, so it also sends progress to a client that wants it.
        """
        if self._wants_progress and not self.has_own_progress:
            # Seconds since the start, which have no known end.
            elapsed = round(time.monotonic() - self.started_at, 3)
            if elapsed - (self.reported or 0.0) >= PROGRESS_INTERVAL_S:
                self._send_progress(elapsed, None, "working")
        return self.is_cancelled or self.channel.is_gone()

    def log(self, level: Level, text: str) -> None:
        if self.is_stateless:
            is_wanted = is_at_least(level, self.meta.log_level)
        else:
            is_wanted = self.session.push.wants_level(level)
        if is_wanted:
            message = {"level": level, "logger": self.dialect.name, "data": text}
            self.channel.notify(encode_notification("notifications/message", message))

    def resources_changed(self) -> None:
        self.session.notify(encode_notification(LIST_CHANGED, {}))

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        if not self._wants_progress:
            return
        if self.reported is not None and not self.has_own_progress:
            return  # seconds were reported, which have another scale
        if self.reported is not None and done <= self.reported:
            return  # progress must increase
        self.has_own_progress = True
        self._send_progress(done, total, message)

    @property
    def _wants_progress(self) -> bool:
        return self.meta.progress_token not in (UNSET, None)

    def _send_progress(self, done: float, total: float | None, message: str | None) -> None:
        self.reported = done
        progress: dict[str, Any] = {"progressToken": self.meta.progress_token, "progress": done}
        if total is not None:
            progress["total"] = total
        if message is not None:
            progress["message"] = message
        self.channel.notify(encode_notification("notifications/progress", progress))

    def _own_client(self) -> Client:
        """Return the client of a request that names its own workspace or session."""
        client, meta = self.client, self.meta
        capabilities = client.capabilities
        if meta.client_capabilities is not UNSET:
            capabilities = meta.client_capabilities
        workspace = meta.workspace or self.channel.workspace
        if workspace is None and meta.session is None and not client.lasting and not client.id:
            client.capabilities = capabilities  # the transport made this client for the request
            return client
        return Client(
            principal=client.principal,
            workspace=workspace or client.workspace,
            names_workspace=bool(workspace),
            is_local=client.is_local,
            session=client.session if meta.session is None else session_name(meta.session),
            lasting=client.lasting and not self.is_stateless,
            conversation=None if self.is_stateless else client,
            capabilities=capabilities,
            id=client.id if client.lasting else "",
        )
