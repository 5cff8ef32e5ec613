"""Whose turn it is to use a model: questions go before passages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Lets questions go first: no run over passages starts while a question is waiting or runs.

    Questions run at once, beside at most one run over passages.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._questions = 0
        self._has_passages = False

    @contextmanager
    def take(self, *, asking: bool) -> Iterator[None]:
        """Hold a turn for one run."""
        with self._changed:
            if asking:
                self._questions += 1
            else:
                self._changed.wait_for(lambda: not (self._questions or self._has_passages))
                self._has_passages = True
        try:
            yield
        finally:
            with self._changed:
                if asking:
                    self._questions -= 1
                else:
                    self._has_passages = False
                self._changed.notify_all()
