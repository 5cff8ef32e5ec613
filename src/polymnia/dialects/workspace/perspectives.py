"""The default perspectives of a workspace, and the memory of a client's workspace."""

from threading import Lock
from weakref import WeakSet

from polymnia.dialects.base import Call
from polymnia.engine import perspectives
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import Perspective
from polymnia.stores.contract import read_limits

# Chosen by measurement (docs/workspaces.md): what helps is the name before the text. The plain text finds what is said
# of a node elsewhere, the date finds what happened when. Every store has one of the three vectors anyway.
DEFAULT_PERSPECTIVES = (
    Perspective("general", "{name}: {text}", "{query}"),
    Perspective("technical", "{name}: {text}", "technical details: {query}"),
    Perspective("relational", "{text}", "{query}"),
    Perspective("temporal", "{name}, {date}: {text}", "date and time: {query}"),
    Perspective("project", "{name}: {text}", "project: {query}"),
)

_lock = Lock()
_prepared: WeakSet[Memory] = WeakSet()


def open_memory(call: Call) -> Memory:
    """Return the memory of the client's workspace. The first call that may take long gives it the default perspectives.

    Raise NoWorkspace, NotAllowed, WorkspaceNotFound or WorkspaceArchived.
    """
    memory = call.memory
    if read_limits().is_short:  # a call on the event loop must not write
        return memory
    with _lock:
        is_new = memory not in _prepared
        _prepared.add(memory)
    if is_new:
        try:
            perspectives.ensure(memory, DEFAULT_PERSPECTIVES)
        except StoreError:
            call.log(
                "info",
                "the perspectives of this workspace could not be set up; it is searched by its text alone",
            )
    return memory
