"""Every exception Polymnia raises on purpose.

    PolymniaError
    ├── BadInput              the request cannot be carried out as given
    │   ├── EntityNotFound    no living entity has the name
    │   ├── FactNotFound      an entity has no fact with the number or text
    │   ├── TextChanged       another client changed the text meanwhile
    │   ├── WorkspaceNotFound no workspace has the name
    │   ├── WorkspaceArchived the workspace is archived
    │   ├── FormerWorkspace   a new token or person would get the workspace of a former one
    │   ├── NoWorkspace       the client has not selected a workspace
    │   └── OverLimit         a token calls too often, or a workspace is full
    ├── NotAllowed            the caller lacks the capability, or may not use the workspace
    ├── NotAdmitted           no token, or an invalid one
    ├── OAuthError            a client of OAuth gets an error code and a sentence
    ├── Refused               an HTTP request that gets a status and a sentence
    ├── ProtocolError         a request that gets a JSON-RPC error with its code
    │   ├── InvalidParams     the parameters do not fit the method (-32602)
    │   └── MissingCapability the client lacks a capability the request needs (-32021)
    ├── Cancelled             the client cancelled the request
    ├── InputRequired         the client must be asked first; then the request is run again
    ├── Unanswered            the client did not answer a question
    ├── EmbedderError         the embedding model is missing or failed
    ├── MissingPackage        an optional package is not installed
    ├── SettingsError         a flag, variable or entry of the settings file is wrong
    └── StoreError            the store failed
        ├── StoreBusy         another process locked it for too long
        ├── StoreUnavailable  the database cannot be reached at the moment
        │   └── ChangeInDoubt the connection was lost during a commit: the change may have been made
        ├── StoreFull         the disk is full; existing data is intact
        ├── StoreDamaged      the data on disk is damaged
        ├── StoreTooNew       a later version wrote it
        ├── StoreOutdated     an earlier version wrote it, and it is opened to read only
        ├── NotSupported      this kind of store cannot do that
        ├── StoreForeign      the file belongs to another program
        ├── StoreSealed       the workspace was archived or deleted meanwhile
        └── StoreStopped      an earlier write did not reach the disk; nothing more is acknowledged

Each message is one sentence that its reader, often a model, can act on.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class PolymniaError(Exception):
    """Anything Polymnia refuses or fails to do, in a sentence.

    `hint` is advice for the person who runs the server. It may name files and commands; remote
    clients read `public`.
    """

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self._message = message

    @property
    def public(self) -> str:
        """The message without files and commands."""
        return self._message


class BadInput(PolymniaError):
    """The request cannot be carried out as given."""


class EntityNotFound(BadInput):
    """No living entity has the name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found")
        self.name = name


class FactNotFound(BadInput):
    """An entity has no fact with the number or text `key`."""

    def __init__(self, name: str, key: int | str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.key = key


class TextChanged(BadInput):
    """Another client changed a text. `text` is what it is now; None if it was deleted."""

    def __init__(self, what: str, text: str | None) -> None:
        super().__init__(
            f"{what} was {'deleted' if text is None else 'changed'} meanwhile; nothing was written"
        )
        self.text = text


class WorkspaceNotFound(BadInput):
    """No workspace has the name."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"there is no workspace {name!r}", hint=hint)
        self.name = name


class WorkspaceArchived(BadInput):
    """The workspace is archived."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the workspace {name!r} is archived",
            hint=f"run `polymnia workspace restore {name}` to use it again",
        )
        self.name = name


class FormerWorkspace(BadInput):
    """A new token or person would get the workspace of a former one of the same name."""

    def __init__(self, name: str, workspace: str) -> None:
        super().__init__(
            f"the workspace {workspace!r} of a former {name} still exists: choose another name",
            hint="give it to the new one with --keep-workspace, or delete it with "
            f"`polymnia workspace delete {workspace}`",
        )


class NoWorkspace(BadInput):
    """The client has not selected a workspace."""


class OverLimit(BadInput):
    """A token calls too often, or a workspace is full."""


class NotAllowed(PolymniaError):
    """The caller lacks the capability, or may not use the workspace."""


class NotAdmitted(PolymniaError):
    """No token, or an invalid one."""


class Refused(PolymniaError):
    """An HTTP request that gets a status and a sentence instead of being handled."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: int = -32600,
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}


class OAuthError(PolymniaError):
    """A client of OAuth that gets one of the protocol's error codes, and a sentence."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class ProtocolError(PolymniaError):
    """A request that gets a JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class InvalidParams(ProtocolError):
    """The parameters do not fit the method."""

    CODE = -32602

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(self.CODE, message, data)


class MissingCapability(ProtocolError):
    """The client lacks a capability that the request needs."""

    CODE = -32021

    def __init__(self, capability: str) -> None:
        message = f"this needs a client that declares the capability {capability}"
        super().__init__(self.CODE, message, {"requiredCapabilities": {capability: {}}})


class Cancelled(PolymniaError):
    """The client cancelled the request."""


class InputRequired(PolymniaError):
    """The client must be asked first; then the request is run again with its answers."""

    def __init__(self, questions: Sequence[Any]) -> None:
        super().__init__("the client must be asked first")
        self.questions = questions


class Unanswered(PolymniaError):
    """The client did not answer a question, or answered with an error."""


class EmbedderError(PolymniaError):
    """The embedding model is missing or failed."""


class MissingPackage(PolymniaError):
    """An optional package is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the package {package}, which this server does not have",
            hint=f"install it with `pip install 'polymnia[{extra}]'`",
        )


class SettingsError(PolymniaError):
    """A flag, a variable or an entry of the settings file is wrong."""


class StoreError(PolymniaError):
    """The store failed. The message may name files, so remote clients read `summary`."""

    summary = "the store failed; the server's log says why"

    @property
    def public(self) -> str:
        return self.summary


class StoreBusy(StoreError):
    """Another process locked the store for too long."""

    summary = "the store is busy; try again"


class StoreUnavailable(StoreError):
    """The database cannot be reached at the moment."""

    summary = "the database cannot be reached at the moment; nothing was changed, try again"


class ChangeInDoubt(StoreUnavailable):
    """The connection to the database was lost during a commit: the change may have been made."""

    summary = (
        "the connection to the database was lost; "
        "check whether the change was saved before you repeat it"
    )


class StoreFull(StoreError):
    """The disk is full. Existing data is intact."""

    summary = "the server's disk is full; nothing was changed"


class StoreDamaged(StoreError):
    """The data on disk is damaged."""

    summary = "the store is damaged; the server's log says where"


class StoreTooNew(StoreError):
    """A later version wrote the store."""

    summary = "a later version of the server wrote the store; the server must be upgraded"


class StoreOutdated(StoreError):
    """An earlier version wrote the store, and it is opened to read only."""

    summary = "an earlier version of the server wrote the store; it must be opened for writing once"


# What to do where a kind of store lacks something.
USE_A_DATABASE = "use a SQLite store (a path ending in .db) or PostgreSQL"


class NotSupported(StoreError):
    """This kind of store cannot do that."""

    summary = "the store does not support that"


class StoreForeign(StoreError):
    """The file belongs to another program."""

    summary = "the store's file belongs to another program"


class StoreSealed(StoreError):
    """The workspace was archived or deleted meanwhile."""

    summary = "the workspace was archived or deleted during the call; nothing was changed"


class StoreStopped(StoreError):
    """An earlier write did not reach the disk; the store acknowledges nothing more."""

    summary = "the store stopped after a failed write; the server must be restarted"
