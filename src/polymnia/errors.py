"""Every exception Polymnia raises on purpose.

    PolymniaError
    ├── BadInput              the caller asked for something that cannot be done as asked
    │   └── EntityNotFound    a name that no living entity has
    ├── ProtocolError         a request that gets a JSON-RPC error, with its code, instead of a result
    │   └── InvalidParams     its parameters are not what the method takes (-32602)
    ├── Cancelled             the client no longer wants the answer
    ├── EmbedderError         the model that turns text into vectors is missing or failed
    ├── SettingsError         flags, variables or the settings file contradict each other
    └── StoreError            the store could not do its work
        ├── StoreBusy         another process holds it for too long
        ├── StoreFull         no room left on the device; what was there is kept
        ├── StoreDamaged      the data on disk is not what it should be
        ├── StoreTooNew       written by a later version than this one
        └── StoreStopped      an earlier failure to reach the disk; nothing is acknowledged any more

The text of each is one sentence its reader, often a model, can act on.
"""


class PolymniaError(Exception):
    """Anything Polymnia refuses or fails to do, in a sentence."""


class BadInput(PolymniaError):
    """The caller asked for something that cannot be done as asked."""


class EntityNotFound(BadInput):
    """A name that no living entity has."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found")
        self.name = name


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


class StoreStopped(StoreError):
    """An earlier failure to reach the disk; nothing is acknowledged any more."""
