"""Questions to the client: requests that wait for its answers, and the state that stateless clients bring back."""

import itertools
import os
import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, DecodeError, Raw, Struct, field
from msgspec.json import Decoder, encode

from polymnia.dialects.questions import Question
from polymnia.errors import InvalidParams, Unanswered
from polymnia.mcp.jsonrpc import Envelope, Message, RequestId, encode_request

if TYPE_CHECKING:
    from polymnia.mcp.handled import Delivery

# A client that has not answered by then gets an error for its own request.
ANSWER_TIMEOUT_S = 300.0
# Requests of one session that may wait for answers.
MAX_PENDING = 16
# How long a stateless client may take to answer.
STATE_LIFETIME_S = 3600
_MAX_STATE_CHARS = 1 << 20

Answers = dict[str, Raw | Unanswered]


class PendingRequest(Struct, kw_only=True):
    """A client's request while it runs or waits until the client has answered."""

    message: Message
    id: RequestId
    raw_id: Raw
    # How the transport delivers notifications about the request, and its reply.
    delivery: "Delivery"
    is_short: bool = False
    answers: Answers = field(default_factory=dict)
    # The keys of open questions by the ids of the messages that ask them, and how often the client was asked.
    open: dict[str, str] = field(default_factory=dict)
    rounds: int = 0


class Asking:
    """The questions of one session that its client has not answered yet."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids = itertools.count(1)
        self._pending: dict[str, PendingRequest] = {}

    def ask(
        self,
        pending: PendingRequest,
        questions: Sequence[Question[Any]],
        send: Callable[[bytes], None],
    ) -> None:
        """Send the questions to the client. Raise Unanswered if too many requests wait already."""
        with self._lock:
            if len({id(each) for each in self._pending.values()}) >= MAX_PENDING:
                raise Unanswered(f"{MAX_PENDING} requests wait for answers; answer them first")
            pending.rounds += 1
            asked = {f"polymnia-{next(self._ids)}": question for question in questions}
            for identifier, question in asked.items():
                pending.open[identifier] = question.key
                self._pending[identifier] = pending
        for identifier, question in asked.items():
            send(encode_request(identifier, question.method, question.params))

    def take_answer(self, envelope: Envelope) -> PendingRequest | None:
        """Keep the client's answer. Return the request that may go on, now that all its questions are answered."""
        identifier = _decode_id(envelope.id)
        with self._lock:
            pending = self._pending.pop(identifier, None)
            if pending is None:
                return None
            pending.answers[pending.open.pop(identifier)] = _read_answer(envelope)
            return None if pending.open else pending

    def give_up(self, pending: PendingRequest, rounds: int) -> list[str]:
        """Withdraw the questions of a round. Return the ids of those that were still open."""
        with self._lock:
            if pending.rounds != rounds:
                return []
            identifiers = [
                each for each in pending.open if self._pending.pop(each, None) is pending
            ]
            for each in identifiers:
                pending.answers[pending.open.pop(each)] = Unanswered(
                    "the client did not answer in time"
                )
            return identifiers

    def cancel(self, identifier: RequestId) -> PendingRequest | None:
        """Forget the request with that id, which its client has cancelled."""
        with self._lock:
            pending = next((each for each in self._pending.values() if each.id == identifier), None)
            if pending is not None:
                for each in pending.open:
                    self._pending.pop(each, None)
            return pending

    def close(self) -> list[PendingRequest]:
        """Forget every request, and return them."""
        with self._lock:
            pending = {id(each): each for each in self._pending.values()}
            self._pending.clear()
        return list(pending.values())


class Deadlines:
    """Calls functions when their time has come, on a thread that exists only while there are any."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._thread: Thread | None = None

    def add(self, seconds: float, call: Callable[[], None]) -> None:
        """Call the function after that many seconds."""
        with self._changed:
            heappush(self._waiting, (time.monotonic() + seconds, next(self._order), call))
            self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._run, name="polymnia-deadlines", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], None] | None:
        """Return the next function when its time has come; None if there are no more."""
        with self._changed:
            while self._waiting:
                left = self._waiting[0][0] - time.monotonic()
                if left <= 0:
                    return heappop(self._waiting)[2]
                self._changed.wait(left)
            self._thread = None
            return None


class _State(Struct, array_like=True):
    """What a stateless client brings back: the answers so far, for which request, and until when they are valid."""

    request: bytes
    until: float
    answers: dict[str, Raw]


class RequestStates:
    """Seals the answers so far, so that a stateless client can bring them back but not change them.

    The key belongs to this process: no other one accepts its states.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._decoder = Decoder(_State)

    def seal(self, request: bytes, answers: Answers) -> str:
        """Return the answers as text that only this process can have made. `request` is what they belong to."""
        from base64 import urlsafe_b64encode  # needed only when something is asked

        kept = {key: answer for key, answer in answers.items() if isinstance(answer, Raw)}
        body = encode(_State(self._digest(request), time.time() + STATE_LIFETIME_S, kept))
        return urlsafe_b64encode(self._digest(body) + body).decode()

    def open(self, request: bytes, state: str) -> dict[str, Raw]:
        """Return the answers in a state. Raise InvalidParams if it was changed, or is not of this request."""
        import hmac
        from base64 import urlsafe_b64decode, urlsafe_b64encode

        try:
            data = urlsafe_b64decode(state) if len(state) <= _MAX_STATE_CHARS else b""
            signature, body = data[:32], data[32:]
            is_spelled_alike = (
                urlsafe_b64encode(data).decode() == state
            )  # the decoder ignores what it does not know
            if not is_spelled_alike or not hmac.compare_digest(signature, self._digest(body)):
                raise _refused_state()
            found = self._decoder.decode(body)
        except (ValueError, DecodeError) as exc:
            raise _refused_state() from exc
        if found.request != self._digest(request) or found.until < time.time():
            raise _refused_state()
        return {key: answer.copy() for key, answer in found.answers.items()}

    def _digest(self, data: bytes) -> bytes:
        import hmac

        return hmac.digest(self._key, data, "sha256")


def _refused_state() -> InvalidParams:
    return InvalidParams(
        "requestState: it was changed, is too old or belongs to another request; call again without it",
        {"reason": "invalid_request_state"},
    )


class _ClientError(Struct):
    message: str = ""


_error: Decoder[_ClientError] = Decoder(_ClientError)
_text: Decoder[str] = Decoder(str)


def _read_answer(envelope: Envelope) -> Raw | Unanswered:
    if envelope.result is not UNSET:
        return envelope.result.copy()
    try:
        reason = "" if envelope.error is UNSET else _error.decode(envelope.error).message
    except (DecodeError, UnicodeDecodeError):
        reason = ""
    return Unanswered(f"the client did not answer: {reason or 'it gave no reason'}")


def _decode_id(raw: Any) -> str:
    try:
        return _text.decode(raw)
    except (DecodeError, UnicodeDecodeError, TypeError):
        return ""
