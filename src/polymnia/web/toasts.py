"""Messages about what was just done, with Undo where that is possible."""

import secrets
from collections import OrderedDict
from threading import Lock

from msgspec import Struct

MAX_WAITING = 1_000


class Toast(Struct, frozen=True):
    """What happened, and the change that Undo takes back; 0 if nothing can be undone."""

    text: str
    change: int = 0
    workspace: str = ""


class Toasts:
    """Messages that wait for the page after a redirect, by a key in its address. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: OrderedDict[str, Toast] = OrderedDict()

    def put(self, toast: Toast) -> str:
        """Keep a message and return its key."""
        key = secrets.token_urlsafe(9)
        with self._lock:
            self._waiting[key] = toast
            while len(self._waiting) > MAX_WAITING:
                self._waiting.popitem(last=False)
        return key

    def take(self, key: str) -> Toast | None:
        """Return a message once."""
        with self._lock:
            return self._waiting.pop(key, None)
