"""Follow the changes of other servers: one thread reads the change feeds of stores."""

import logging
from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from weakref import WeakKeyDictionary

from polymnia.errors import StoreError
from polymnia.model import Change
from polymnia.stores.contract import ChangeFeed, Store

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.2


class Follower:
    """Call a listener, from a thread, with each change and its workspace while it is wanted."""

    def __init__(
        self,
        stores: Callable[[], Mapping[str, Store]],
        listener: Callable[[str, Change], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        """`stores` returns the open stores by workspace."""
        self._stores = stores
        self._listener = listener
        self._is_wanted = is_wanted
        self._feeds: WeakKeyDictionary[Store, ChangeFeed] = WeakKeyDictionary()
        self._lock = Lock()
        self._is_running = False
        self._is_stopped = False
        self._pause = Event()

    def start(self) -> None:
        """Follow from now on, also stores opened since the thread began."""
        with self._lock:
            if not self._is_running:
                self._feeds.clear()
            self._open_feeds()
            if self._is_running:
                return
            self._is_running = True
        Thread(target=self._run, name="polymnia-follower", daemon=True).start()

    def stop(self) -> None:
        """End the thread, even if changes are still wanted: the stores are being closed."""
        self._is_stopped = True
        self._pause.set()

    def _run(self) -> None:
        while self._continues():
            for workspace, store in self._followed().items():
                try:
                    for change in self._feeds[store]():
                        self._listener(workspace, change)
                except StoreError as exc:
                    logger.info("changes of other servers cannot be read at the moment: %s", exc)
            self._pause.wait(POLL_INTERVAL_S)
            self._pause.clear()

    def _continues(self) -> bool:
        with self._lock:
            self._is_running = not self._is_stopped and self._is_wanted()
            return self._is_running

    def _followed(self) -> dict[str, Store]:
        """Return the stores that have a feed; none while the database cannot be reached."""
        try:
            with self._lock:
                return self._open_feeds()
        except StoreError as exc:
            logger.info("changes of other servers cannot be followed at the moment: %s", exc)
            return {}

    def _open_feeds(self) -> dict[str, Store]:
        """Return the stores that have a feed, with a new feed for those opened since."""
        stores = {
            name: store for name, store in self._stores().items() if store.capabilities.change_feed
        }
        for store in stores.values():
            if store not in self._feeds:
                self._feeds[store] = store.follow(self._pause.set)
        return stores
