"""Workspaces, who may do what in them, and the names of those who change them."""

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from polymnia.errors import NotAllowed

Status = Literal["active", "archived"]
# Each capability includes those before it.
Capability = Literal["read", "write", "admin"]
CAPABILITIES: tuple[Capability, ...] = ("read", "write", "admin")


class Workspace(Struct, frozen=True):
    """A namespace with its own graph and notes."""

    id: str
    name: str
    description: str = ""
    status: Status = "active"
    created_at: int = 0
    updated_at: int = 0


class Principal(Struct, frozen=True, kw_only=True):
    """Who makes a request, what they may do, and in which workspaces (None: in all).

    `id` distinguishes principals with the same name. `until` is when the credentials expire, in
    seconds since 1970. `person` is the name of the person who logged in, whichever client they
    use; a token of its own has none. A client that a person allowed in may get more rights if they
    allow it again: `grantable` is how much. `requests` and `writes` are how many calls they may
    make a minute: None is what the server's settings say, 0 is unlimited.
    """

    name: str = ""
    can: Capability = "admin"
    workspaces: frozenset[str] | None = None
    id: str = ""
    until: int | None = None
    person: str = ""
    grantable: Capability | None = None
    requests: int | None = None
    writes: int | None = None

    def is_same(self, other: "Principal") -> bool:
        """Return True for the same principal with the same rights, regardless of the expiry."""
        return (self.id, self.name, self.can, self.workspaces) == (
            other.id,
            other.name,
            other.can,
            other.workspaces,
        )

    def may(self, needed: Capability) -> bool:
        """Return True if the principal has the capability."""
        return CAPABILITIES.index(needed) <= CAPABILITIES.index(self.can)

    @property
    def administers(self) -> bool:
        """True if the principal may manage the server: tokens, backups and all workspaces."""
        return self.may("admin") and self.workspaces is None

    def enters(self, workspace: str) -> bool:
        """Return True if the principal may use the workspace."""
        return self.workspaces is None or workspace in self.workspaces

    @property
    def own_workspace(self) -> str:
        """The workspace for what concerns only this principal; empty if they share `personal`."""
        name = own_workspace(self.person or self.name)
        return name if self.workspaces is not None and name in self.workspaces else ""

    def choose_workspace(self, preferred: str | None) -> str | None:
        """Return the workspace of requests that name none: the preferred one if it may be used.

        Else it is the only one besides their own, or else their own.
        """
        if self.workspaces is None or preferred in self.workspaces:
            return preferred
        own = self.own_workspace
        others = self.workspaces - {own}
        return next(iter(others)) if len(others) == 1 else own or preferred

    def require(self, needed: Capability, what: str) -> None:
        """Raise NotAllowed unless the principal has the capability."""
        if not self.may(needed):
            raise NotAllowed(f"{self.title} may only {self.can}; {what} needs {needed}")

    def require_entry(self, workspace: str) -> None:
        """Raise NotAllowed unless the principal may use the workspace."""
        if not self.enters(workspace):
            theirs = ", ".join(sorted(self.workspaces or ())) or "none"
            raise NotAllowed(
                f"{self.title} may not use the workspace {workspace!r} (only: {theirs})"
            )

    def restrict(self, to: Capability) -> "Principal":
        """Return the principal with at most that capability."""
        return replace(self, can=to) if self.may(to) else self

    @property
    def title(self) -> str:
        """How an error names the principal."""
        return f"the token {self.name}" if self.name else "this server"


def own_workspace(name: str) -> str:
    """Return the name of the workspace that belongs to the token or person of a name."""
    plain = re.sub(r"[^\w-]+", "-", name).strip("-_")[:48]
    if plain == name:
        return f"personal-{name}"
    from hashlib import sha256  # loads OpenSSL, and few names need it

    # Two names must never lead to the same workspace.
    return f"personal-{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def is_own_workspace(name: str) -> bool:
    """Return True if a workspace belongs to one token or person."""
    return name.startswith("personal-")


class GroupRights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a group of an identity provider may do, and where, besides their own workspace.

    The workspace `*` stands for all.
    """

    can: Capability = "read"
    workspaces: tuple[str, ...] = ()


class Account(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a person proves who they are: a hashed password, or the hash of an invitation.

    The `subject` is who they are for an identity provider, which then asks for the proof.
    """

    password: str = ""
    subject: str = ""
    invitation: str = ""
    invited_until: int = 0


class Grant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person allowed a client of OAuth to do, and the secrets that the client has for it.

    Secrets are stored as hashes. `code` is the authorization code. All refresh tokens have the
    secret of the `family`, and `generation` is the latest of them. `access` has the access tokens
    with their ends. A client that must sign its requests has public keys at the URL `keys`.
    """

    client_id: str
    client: str
    resource: str
    redirect_uri: str
    challenge: str
    code: str
    code_until: int
    keys: str = ""
    family: str = ""
    salt: str = ""
    generation: int = 0
    rotated_at: int = 0
    access: tuple[tuple[str, int], ...] = ()

    @property
    def hashes(self) -> dict[str, int]:
        """The ends of the access tokens by their hashes."""
        return dict(self.access)


TokenKind = Literal["token", "user", "session", "grant", "key"]


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that lets in, as it is stored: a token, or a person and what they logged in to.

    A person is a `user`. A login to the web interface is a `session`, and a client that they
    allowed in has a `grant`; both end with their `owner`, the id of the person or token that made
    them, and never allow more. The `key`, which lets nobody in, signs what the server gives to
    clients of OAuth. Times are seconds since 1970; `workspaces` None means all. `requests` and
    `writes` limit its calls a minute.
    """

    id: str
    name: str
    hash: str
    can: Capability
    workspaces: tuple[str, ...] | None = None
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    kind: TokenKind = "token"
    person: str = ""
    owner: str = ""
    account: Account | None = None
    grant: Grant | None = None
    requests: int | None = None
    writes: int | None = None

    def state(self, now: float) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"

    @property
    def principal(self) -> Principal:
        where = None if self.workspaces is None else frozenset(self.workspaces)
        return Principal(
            name=self.name,
            can=self.can,
            workspaces=where,
            id=self.id,
            until=self.expires_at,
            person=self.person,
            requests=self.requests,
            writes=self.writes,
        )


# The user who started the process. The file system decides what they may do.
OWNER = Principal()
# The user who started `polymnia ui` and opened its one-time link.
LINK_OWNER = Principal(id="owner")
# A client that has not shown a token where one is needed.
NOBODY = Principal(name="nobody", can="read", workspaces=frozenset())

_TOKEN = " (token "


def split_actor(actor: str) -> tuple[str, str]:
    """Return the client and the token in the name of an actor; no token if the client used none."""
    client, found, token = actor.rpartition(_TOKEN)
    return (client, token.removesuffix(")")) if found and token.endswith(")") else (actor, "")


def join_actor(client: str, token: str) -> str:
    """Return the name of an actor: a client, and the token it uses, if any."""
    return f"{client}{_TOKEN}{token})" if token else client
