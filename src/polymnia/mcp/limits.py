"""How many requests and writes a minute each token may make, so that none crowds others out."""

import logging
import time
from collections import Counter
from threading import Lock
from typing import Literal

from msgspec import Struct

from polymnia.errors import OverLimit
from polymnia.model import Principal

logger = logging.getLogger(__name__)

Kind = Literal["requests", "writes"]
KINDS: tuple[Kind, ...] = ("requests", "writes")
# Names of an identity provider are not bounded by a table of tokens.
_MAX_PRINCIPALS = 10_000


class _Allowance(Struct):
    """What is left of a minute's calls. It grows back evenly."""

    left: float
    at: float


class RateLimiter:
    """Counts the calls of each principal on this server. Safe for several threads.

    A principal may make a minute's calls at once, and then one whenever another is due. A client
    without a token is not limited: only its own user can reach such a server.
    """

    def __init__(self, *, requests: int = 0, writes: int = 0) -> None:
        """Limit principals that have no limit of their own to so many a minute; 0 is unlimited."""
        self._defaults: dict[Kind, int] = {"requests": requests, "writes": writes}
        self._allowances: dict[tuple[str, Kind], _Allowance] = {}
        self._lock = Lock()
        self.refusals: Counter[Kind] = Counter()

    def limit(self, principal: Principal, kind: Kind) -> int:
        """Return how many calls of a kind the principal may make a minute; 0 is unlimited."""
        own = principal.requests if kind == "requests" else principal.writes
        return self._defaults[kind] if own is None else own

    def count(self, principal: Principal, kind: Kind) -> int:
        """Return how many calls of a kind weigh on the principal's limit at the moment."""
        limit = self.limit(principal, kind)
        with self._lock:
            return round(limit - self._left(principal, kind, limit))

    def take(self, principal: Principal, kind: Kind) -> None:
        """Count a call. Raise OverLimit if the principal has made too many."""
        limit = self.limit(principal, kind) if principal.id else 0
        if not limit:
            return
        with self._lock:
            left = self._left(principal, kind, limit)
            if left >= 1:
                self._allowances[principal.id, kind] = _Allowance(left - 1, time.monotonic())
                return
            self.refusals[kind] += 1
        seconds = max(1, round((1 - left) * 60 / limit))
        logger.warning("%s is over its limit of %s %s a minute", principal.title, limit, kind)
        raise OverLimit(
            f"too many {kind}: {principal.title} may make {limit} a minute; nothing was done, "
            f"try again in {seconds} s"
        )

    def _left(self, principal: Principal, kind: Kind, limit: int) -> float:
        now = time.monotonic()
        allowance = self._allowances.get((principal.id, kind))
        if allowance is None:
            if len(self._allowances) >= _MAX_PRINCIPALS:
                self._allowances.clear()
            return float(limit)
        return min(float(limit), allowance.left + (now - allowance.at) * limit / 60)
