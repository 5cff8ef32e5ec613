"""The default perspectives of a workspace, and the memory of a client's workspace."""

from threading import Lock
from weakref import WeakSet

from polymnia.dialects.base import Call
from polymnia.engine.memory import Memory
from polymnia.engine.semantic import perspectives
from polymnia.errors import StoreError
from polymnia.model import Perspective

# Chosen by measurement (docs/workspaces.md): what helps is the name before the text. The plain text
# finds what is said of a node elsewhere, the date finds what happened when. Every store has one of
# the three vectors anyway.
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
    """Return the memory of the client's workspace, with the default perspectives.

    Raise NoWorkspace, NotAllowed, WorkspaceNotFound or WorkspaceArchived.
    """
    memory = call.memory
    with _lock:
        is_new = memory not in _prepared
        _prepared.add(memory)
    if is_new:
        try:
            perspectives.ensure(memory, DEFAULT_PERSPECTIVES)
        except StoreError:
            problem = "the perspectives of this workspace could not be set up"
            call.log("info", f"{problem}; it is searched by its text alone")
    return memory
