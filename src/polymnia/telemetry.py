"""Traces for OpenTelemetry: spans of requests, tools, verbs, stores and embeddings. Off by default.

Spans have the names of operations, tools and workspaces, and no stored text: what an error says may
quote one, so a failed span has only the class of its error.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from polymnia import __version__
from polymnia.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

T = TypeVar("T")

_tracer: "Tracer | None" = None
_NOTHING: AbstractContextManager[None] = nullcontext()


def start_tracing() -> Callable[[], None]:
    """Send spans to the collector that the standard OTEL_ variables name. Return what ends it.

    Raise SettingsError if the packages are missing.
    """
    global _tracer
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as exc:
        raise SettingsError(
            "traces need another package: run `pip install 'polymnia[telemetry]'`"
        ) from exc
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override these.
    resource = Resource({SERVICE_NAME: "polymnia"}).merge(Resource.create())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("polymnia", __version__)
    return provider.shutdown


def is_tracing() -> bool:
    return _tracer is not None


def span(
    name: str, caller: Mapping[str, str] | None = None, **attributes: str | int
) -> AbstractContextManager[None]:
    """Return a span for a block, if there are traces.

    `caller` has the `traceparent` of a caller in another process, in whose trace the span belongs.
    """
    if _tracer is None:
        return _NOTHING
    return _recorded(_tracer, name, caller, attributes)


def inside(name: str, block: AbstractContextManager[T]) -> AbstractContextManager[T]:
    """Return a block that runs inside a span, if there are traces."""
    return block if _tracer is None else _enclosed(name, block)


@contextmanager
def _enclosed(name: str, block: AbstractContextManager[T]) -> Iterator[T]:
    with span(name), block as value:
        yield value


@contextmanager
def _recorded(
    tracer: "Tracer", name: str, caller: Mapping[str, str] | None, attributes: Mapping[str, Any]
) -> Iterator[None]:
    from opentelemetry.trace import Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    # Without a caller of its own the span belongs to the one around it.
    context = TraceContextTextMapPropagator().extract(caller) if caller else None
    with tracer.start_as_current_span(
        name,
        context=context,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield
        except BaseException as exc:
            current.set_attribute("error.type", type(exc).__name__)
            current.set_status(Status(StatusCode.ERROR))
            raise


def carry(work: Callable[[], T]) -> Callable[[], T]:
    """Return a function for another thread, whose spans belong to the one around this call."""
    if _tracer is None:
        return work
    return partial(copy_context().run, work)
