"""Every exception Polymnia raises on purpose.

    PolymniaError
    ├── BadInput              the caller asked for something that cannot be done as asked
    │   ├── EntityNotFound    a name that no living entity has
    │   ├── WorkspaceNotFound a name that no workspace has
    │   ├── WorkspaceArchived a workspace that was put away
    │   └── NoWorkspace       the client has not said which workspace it means
    ├── NotAllowed            the caller may not do that, or not there
    ├── NotAdmitted           no token, or none that opens this door
    ├── Refused               an HTTP request that gets a status and a sentence instead of being handled
    ├── ProtocolError         a request that gets a JSON-RPC error, with its code, instead of a result
    │   ├── InvalidParams     its parameters are not what the method takes (-32602)
    │   └── MissingCapability it needs something of the client that the client has not offered (-32021)
    ├── Cancelled             the client no longer wants the answer
    ├── EmbedderError         the model that turns text into vectors is missing or failed
    ├── SettingsError         flags, variables or the settings file contradict each other
    └── StoreError            the store could not do its work
        ├── StoreBusy         another process holds it for too long
        ├── StoreFull         no room left on the device; what was there is kept
        ├── StoreDamaged      the data on disk is not what it should be
        ├── StoreTooNew       written by a later version than this one
        ├── NotSupported      this kind of store cannot do that
        ├── StoreForeign      a file of another program
        ├── StoreSealed       its workspace was archived or deleted meanwhile
        └── StoreStopped      an earlier failure to reach the disk; nothing is acknowledged any more

The text of each is one sentence its reader, often a model, can act on.
"""

from collections.abc import Mapping


class PolymniaError(Exception):
    """Anything Polymnia refuses or fails to do, in a sentence."""


class BadInput(PolymniaError):
    """The caller asked for something that cannot be done as asked."""


class EntityNotFound(BadInput):
    """A name that no living entity has."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found")
        self.name = name


class WorkspaceNotFound(BadInput):
    """A name that no workspace has."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"there is no workspace {name!r}; {hint}")
        self.name = name


class WorkspaceArchived(BadInput):
    """A workspace that was put away."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the workspace {name!r} is archived; `polymnia workspace restore {name}` makes it usable again"
        )
        self.name = name


class NoWorkspace(BadInput):
    """The client has not said which workspace it means."""


class NotAllowed(PolymniaError):
    """The caller may not do that, or not there."""


class NotAdmitted(PolymniaError):
    """No token, or none that opens this door."""


class Refused(PolymniaError):
    """An HTTP request that gets a status and a sentence instead of being handled."""

    def __init__(self, status: int, message: str, *, code: int = -32600, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}


class ProtocolError(PolymniaError):
    """A request that gets a JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class InvalidParams(ProtocolError):
    """The parameters are not what the method takes."""

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(-32602, message, data)


class MissingCapability(ProtocolError):
    """The request needs something of the client that the client has not offered."""

    CODE = -32021

    def __init__(self, capability: str) -> None:
        message = f"this needs a client that declares the capability {capability}"
        super().__init__(self.CODE, message, {"requiredCapabilities": {capability: {}}})


class Cancelled(PolymniaError):
    """The client no longer wants the answer."""


class EmbedderError(PolymniaError):
    """The model that turns text into vectors is missing or failed."""


class SettingsError(PolymniaError):
    """Flags, variables or the settings file contradict each other."""


class StoreError(PolymniaError):
    """The store could not do its work."""


class StoreBusy(StoreError):
    """Another process holds the store for too long."""


class StoreFull(StoreError):
    """No room left on the device; what was there is kept."""


class StoreDamaged(StoreError):
    """The data on disk is not what it should be."""


class StoreTooNew(StoreError):
    """The store was written by a later version than this one."""


class NotSupported(StoreError):
    """This kind of store cannot do that."""


class StoreForeign(StoreError):
    """A file of another program."""


class StoreSealed(StoreError):
    """Its workspace was archived or deleted meanwhile."""


class StoreStopped(StoreError):
    """An earlier failure to reach the disk; nothing is acknowledged any more."""
