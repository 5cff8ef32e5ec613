"""Questions to the client: requests that wait for answers, and the state of stateless clients."""

import itertools
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from threading import Condition, Lock, Thread
from typing import Any

from msgspec import UNSET, DecodeError, Raw, Struct
from msgspec.json import Decoder, encode

from polymnia.dialects.questions import Question
from polymnia.errors import InvalidParams, Unanswered
from polymnia.mcp.message import Answer, Message, RequestId, encode_notification, encode_request
from polymnia.mcp.request import Answers, Request

# A client that has not answered by then gets an error for its own request.
ANSWER_TIMEOUT_S = 300.0
# Requests of one session that may wait for answers.
MAX_PENDING = 16
# How long a stateless client may take to answer.
STATE_LIFETIME_S = 3600


class Asking:
    """The questions of one session that its client has not answered yet.

    A request that waits for answers holds no thread: it runs again when it has them.
    """

    def __init__(
        self,
        deadlines: "Deadlines",
        *,
        notify: Callable[[bytes], None],
        answer: Callable[[Request], Answer],
    ) -> None:
        """`answer` runs a request that has its answers."""
        self._deadlines = deadlines
        self._notify = notify
        self._answer = answer
        self._lock = Lock()
        self._ids = itertools.count(1)
        # The waiting requests by the ids of their open questions.
        self._pending: dict[str, Request] = {}

    def ask(self, request: Request, questions: Sequence[Question[Any]]) -> None:
        """Send the questions. Raise Unanswered if too many requests wait already."""
        messages = []
        with self._lock:
            if len({id(pending) for pending in self._pending.values()}) >= MAX_PENDING:
                raise Unanswered(f"{MAX_PENDING} requests wait for answers; answer them first")
            request.rounds += 1
            for question in questions:
                identifier = f"polymnia-{next(self._ids)}"
                request.open_questions[identifier] = question.key
                self._pending[identifier] = request
                messages.append(encode_request(identifier, question.method, question.params))
        for message in messages:
            request.channel.notify(message)
        self._deadlines.add(ANSWER_TIMEOUT_S, partial(self._time_out, request, request.rounds))

    def take_answer(self, message: Message) -> None:
        """Keep the client's answer. Resume its request if this was the last open question."""
        try:
            identifier = _text.decode(message.id)  # type: ignore[arg-type]  # a response has one
        except DecodeError:
            return  # not one of ours
        with self._lock:
            request = self._pending.pop(identifier, None)
            if request is None:
                return
            key = request.open_questions.pop(identifier)
            if message.result is not UNSET:
                request.answers[key] = message.result.copy()
            else:
                reason = ""
                if message.error is not UNSET:
                    with suppress(DecodeError, RecursionError):
                        reason = _error.decode(message.error).message
                text = f"the client did not answer: {reason or 'it gave no reason'}"
                request.answers[key] = Unanswered(text)
            is_answered = not request.open_questions
        if is_answered:
            self._resume(request)

    def cancel(self, identifier: RequestId) -> Request | None:
        """Forget the request with that id, which its client has cancelled, and return it."""
        with self._lock:
            for request in self._pending.values():
                if request.id == identifier:
                    break
            else:
                return None
            for question in request.open_questions:
                self._pending.pop(question, None)
            return request

    def close(self) -> list[Request]:
        """Forget every request, and return them."""
        with self._lock:
            requests = {id(request): request for request in self._pending.values()}
            self._pending.clear()
        return list(requests.values())

    def _resume(self, request: Request) -> None:
        """Run a request that has its answers, and send its reply unless it asks again."""
        answer = self._answer(request)
        if not answer.is_pending:
            request.channel.reply(answer.body)

    def _time_out(self, request: Request, rounds: int) -> None:
        """Withdraw the questions that are still open, and let the request go on without answers."""
        withdrawn = []
        with self._lock:
            if request.rounds != rounds:
                return  # these were answered, and the request has asked again
            for identifier in list(request.open_questions):
                if self._pending.pop(identifier, None) is request:
                    key = request.open_questions.pop(identifier)
                    request.answers[key] = Unanswered("the client did not answer in time")
                    withdrawn.append(identifier)
        for identifier in withdrawn:
            reason = {"requestId": identifier, "reason": "no answer in time"}
            self._notify(encode_notification("notifications/cancelled", reason))
        if withdrawn:
            self._resume(request)


class Deadlines:
    """Calls functions at their time, on a thread that exists only while there are any."""

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
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    return
                at, _, call = self._waiting[0]
                remaining = at - time.monotonic()
                if remaining > 0:
                    self._changed.wait(remaining)
                    continue
                heappop(self._waiting)
            call()


class _State(Struct, array_like=True):
    """What a stateless client brings back: its answers, for which request, and until when."""

    request: bytes
    until: float
    answers: dict[str, Raw]


class RequestStates:
    """Seals answers, so that a stateless client can bring them back but not change them.

    Servers with the same key accept each other's states. Without one, it is of this process.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or os.urandom(32)
        self._decoder = Decoder(_State)

    def seal(self, request: bytes, answers: Answers) -> str:
        """Return the answers as text. `request` is what they belong to."""
        from base64 import urlsafe_b64encode  # needed only when something is asked

        given = {key: answer for key, answer in answers.items() if isinstance(answer, Raw)}
        body = encode(_State(self._digest(request), time.time() + STATE_LIFETIME_S, given))
        return urlsafe_b64encode(self._digest(body) + body).decode()

    def open(self, request: bytes, text: str) -> dict[str, Raw]:
        """Return the answers in a state.

        Raise InvalidParams if it was changed, is too old or belongs to another request.
        """
        import hmac
        from base64 import urlsafe_b64decode, urlsafe_b64encode

        try:
            sealed = urlsafe_b64decode(text[: 1 << 20])  # a longer one is not ours
            signature, body = sealed[:32], sealed[32:]
            # The decoder skips characters that it does not know.
            is_same = urlsafe_b64encode(sealed).decode() == text
            if not (is_same and hmac.compare_digest(signature, self._digest(body))):
                raise _invalid_state()
            state = self._decoder.decode(body)
        except (ValueError, DecodeError) as exc:
            raise _invalid_state() from exc
        if state.request != self._digest(request) or state.until < time.time():
            raise _invalid_state()
        return {key: answer.copy() for key, answer in state.answers.items()}

    def _digest(self, data: bytes) -> bytes:
        import hmac

        # The first word, because the key signs other things too.
        return hmac.digest(self._key, b"state:" + data, "sha256")


def _invalid_state() -> InvalidParams:
    return InvalidParams(
        "requestState: it was changed, is too old or belongs to another request; "
        "call again without it",
        {"reason": "invalid_request_state"},
    )


class _ClientError(Struct):
    message: str = ""


_error: Decoder[_ClientError] = Decoder(_ClientError)
_text: Decoder[str] = Decoder(str)
