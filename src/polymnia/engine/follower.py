"""Changes that other processes make, told to those who listen: a thread that looks, while somebody wants to know."""

import logging
from collections.abc import Callable
from threading import Event, Lock, Thread

from polymnia.errors import StoreError
from polymnia.model import Change
from polymnia.stores.base import Followed, Following, Store

logger = logging.getLogger(__name__)

# How often the store is asked, in seconds.
_PAUSE = 0.2


class Follower:
    """Looks for the changes of one store while they are wanted. A store that cannot tell is never asked."""

    def __init__(self, store: Store, tell: Callable[[Change], None], wanted: Callable[[], bool]) -> None:
        self._store = store
        self._tell = tell
        self._wanted = wanted
        self._lock = Lock()
        self._is_looking = False
        self._pause = Event()

    def start(self) -> None:
        """Tell what is changed from now on; nothing new when it is being told already."""
        if not isinstance(self._store, Followed):
            return
        with self._lock:
            if self._is_looking:
                return
            following = self._store.follow()
            self._is_looking = True
        Thread(target=self._look, args=(following,), name="polymnia-follower", daemon=True).start()

    def _look(self, following: Following) -> None:
        try:
            while self._goes_on():
                self._look_once(following)
                self._pause.wait(_PAUSE)
        finally:
            following.close()

    def _goes_on(self) -> bool:
        with self._lock:
            self._is_looking = self._wanted()
            return self._is_looking

    def _look_once(self, following: Following) -> None:
        try:
            for change in following.news():
                self._tell(change)
        except StoreError as exc:
            logger.info("what others have changed cannot be read just now: %s", exc)
