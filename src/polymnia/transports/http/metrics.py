"""What a server counts, as Prometheus text."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf

from polymnia.mcp.handled import Handled
from polymnia.stores.size import store_bytes
from polymnia.transports.http.context import HttpContext
from polymnia.transports.request_log import RequestRecord

_BUCKETS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """Counts of requests and tool calls. Used on the event loop only.

    The values of every label are bounded: methods are those of HTTP, tools those of the dialects that are served.
    """

    def __init__(self, context: HttpContext, tools: Iterable[str], store: str) -> None:
        """`tools` are the names that are counted. `store` is the URL of the store, or "" if its size is not wanted."""
        self._context = context
        self._tools = frozenset(tools)
        self._store = store
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0
        self._tool_calls: Counter[tuple[str, str]] = Counter()
        self._tool_seconds: dict[tuple[str, str], float] = {}
        self._rejected_logins = 0
        self.open_requests = 0

    def count(self, method: str, seconds: float, record: RequestRecord) -> None:
        """Count a request and the tool calls in it."""
        self._requests[method, record.status] += 1
        self._seconds += seconds
        self._durations[(*_BUCKETS_S, inf)[bisect_left(_BUCKETS_S, seconds)]] += 1
        self._rejected_logins += record.is_login_rejected
        for each in record.handled:
            self.count_call(each)

    def count_call(self, handled: Handled) -> None:
        """Count a tool call."""
        if handled.tool in self._tools:
            key = (handled.tool, handled.outcome)
            self._tool_calls[key] += 1
            self._tool_seconds[key] = self._tool_seconds.get(key, 0.0) + handled.seconds

    async def exposition(self) -> str:
        """Return all metrics as text."""
        size = await self._context.run(lambda: store_bytes(self._store)) if self._store else None
        return (
            "\n".join([*self._request_lines(), *self._tool_lines(), *self._state_lines(size)])
            + "\n"
        )

    def _request_lines(self) -> Iterator[str]:
        yield "# TYPE polymnia_http_requests_total counter"
        for (method, status), count in sorted(self._requests.items()):
            yield f'polymnia_http_requests_total{{method="{method}",status="{status}"}} {count}'
        yield "# TYPE polymnia_http_request_seconds histogram"
        total = 0
        for bound in (*_BUCKETS_S, float("inf")):
            total += self._durations[bound]
            name = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f'polymnia_http_request_seconds_bucket{{le="{name}"}} {total}'
        yield f"polymnia_http_request_seconds_sum {self._seconds:.6f}"
        yield f"polymnia_http_request_seconds_count {total}"

    def _tool_lines(self) -> Iterator[str]:
        yield "# TYPE polymnia_tool_calls_total counter"
        for (tool, outcome), count in sorted(self._tool_calls.items()):
            yield f'polymnia_tool_calls_total{{tool="{tool}",outcome="{outcome}"}} {count}'
        yield "# TYPE polymnia_tool_seconds_total counter"
        for (tool, outcome), seconds in sorted(self._tool_seconds.items()):
            yield f'polymnia_tool_seconds_total{{tool="{tool}",outcome="{outcome}"}} {seconds:.6f}'

    def _state_lines(self, size: int | None) -> Iterator[str]:
        yield "# TYPE polymnia_rejected_logins_total counter"
        yield f"polymnia_rejected_logins_total {self._rejected_logins}"
        gauges = {
            "polymnia_sessions": str(len(self._context.sessions)),
            "polymnia_connections": str(len(self._context.connections)),
            "polymnia_http_requests_open": str(self.open_requests),
            "polymnia_requests_running": str(self._context.running),
            "polymnia_event_loop_lag_seconds": f"{self._context.loop_lag_s:.6f}",
        }
        if size is not None:
            gauges["polymnia_store_bytes"] = str(size)
        for name, value in gauges.items():
            yield f"# TYPE {name} gauge"
            yield f"{name} {value}"
