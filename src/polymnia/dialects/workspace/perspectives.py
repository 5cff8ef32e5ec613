"""The perspectives of a workspace that has none of its own yet, and the memory of a client's workspace."""

from threading import Lock
from weakref import WeakSet

from polymnia.dialects.base import Call
from polymnia.engine import perspectives
from polymnia.engine.memory import Memory
from polymnia.errors import StoreError
from polymnia.model import Perspective
from polymnia.stores.contract import read_limits

# Chosen by measurement (docs/workspaces.md): what helps is the name before the text. The plain text finds what is said
# of a node elsewhere, the date finds what happened when. Of the three vectors every store has one anyway.
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
    if read_limits().is_short:  # on an event loop nothing is written
        return memory
    with _lock:
        is_new = memory not in _prepared
        _prepared.add(memory)
    if is_new:
        try:
            perspectives.ensure(memory, DEFAULT_PERSPECTIVES)
        except StoreError:
            call.log("info", "the perspectives of this workspace could not be set up; it is searched by its text alone")
    return memory
