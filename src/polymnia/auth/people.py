"""People with accounts, and who is logged in to the web interface.

A person is a `Token` of kind "user" without a secret of its own. An invitation is the secret of a
link, with which the person chooses a password. Logins are tokens of kind "session" beside them.
"""

import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING

from msgspec import Struct

from polymnia.auth.tokens import (
    Tokens,
    change_tokens,
    check_token_name,
    hash_secret,
    id_in,
    make_secret,
)
from polymnia.errors import BadInput, NotAdmitted, SettingsError, StoreError
from polymnia.model import LINK_OWNER, Account, Capability, Principal, Token

if TYPE_CHECKING:
    from argon2 import PasswordHasher

    from polymnia.auth.provider import Identity

logger = logging.getLogger(__name__)

INVITATION_S = 7 * 86_400
# A person of an identity provider has to log in again after this time.
IDENTITY_S = 30 * 86_400
# A login ends when it was not used for this long, and with the person or token that made it.
IDLE_S = 12 * 3600
# The oldest login of a name ends with the next one, so that nobody can log others out.
MAX_LOGINS_EACH = 50
# The logins that are only in memory.
MAX_SESSIONS = 1_000
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 12, 1_000
# The failed logins that a name and an address may have in this many seconds.
ATTEMPTS_S, MAX_ATTEMPTS_BY_NAME, MAX_ATTEMPTS_BY_ADDRESS = 600, 20, 30


class People:
    """The people of a store, and the logins to its web interface. Thread-safe."""

    def __init__(self, tokens: Tokens, max_capability: Capability = "admin") -> None:
        """Let nobody do more than `max_capability`."""
        self._tokens = tokens
        self._max_capability = max_capability
        self._store = tokens.store
        self._attempts = _Attempts()
        # Each hash takes 64 MB of memory.
        self._hashing = BoundedSemaphore(2)

    @property
    def exist(self) -> bool:
        """True if somebody can log in with a password."""
        accounts = (user.account for user in self.all())
        return any(account is not None and account.password for account in accounts)

    def all(self) -> list[Token]:
        """Return the people who were not removed, oldest first. Raise StoreError."""
        return self._tokens.held("user")

    def logins(self, user: Token) -> list[Token]:
        """Return the browsers in which a person is logged in, and the clients they let in."""
        tokens = self._tokens.all("session", "grant")
        own = [token for token in tokens if token.owner == user.id]
        return [token for token in own if self._tokens.state(token) == "active"]

    def invite(self, name: str, *, can: Capability, workspaces: Iterable[str] | None) -> str:
        """Create an account and return the code of the link to it. Raise BadInput."""
        check_token_name(name)
        now = int(time.time())
        code, account = _invitation(now)
        user = Token(
            id=id_in(code),
            kind="user",
            name=name,
            person=name,
            hash="",
            can=can,
            workspaces=None if workspaces is None else tuple(sorted(set(workspaces))),
            created_at=now,
            account=account,
        )
        with self._store.edit() as tokens:
            if any(other.name == name for other in _active_users(tokens)):
                raise BadInput(f"there is already a person {name}: reset or remove them")
            tokens.append(user)
        return code

    def reset(self, name: str) -> str:
        """Forget a person's password, end their logins, and return a code for a new link."""
        now = int(time.time())
        with self._store.edit() as tokens:
            user = _find_user(tokens, name)
            code, account = _invitation(now, user.id)
            change_tokens(tokens, [user], account=account)
            logins = [token for token in tokens if token.kind == "session"]
            own = [login for login in logins if login.owner == user.id and not login.revoked_at]
            change_tokens(tokens, own, revoked_at=now)
        return code

    def assign(
        self,
        name: str,
        *,
        can: Capability | None = None,
        workspaces: Iterable[str] | None = None,
        is_everywhere: bool = False,
    ) -> None:
        """Change what a person may do, and in which workspaces. None: as before."""
        with self._store.edit() as tokens:
            user = _find_user(tokens, name)
            where = user.workspaces if workspaces is None else tuple(sorted(set(workspaces)))
            if is_everywhere:
                where = None
            change_tokens(tokens, [user], can=can or user.can, workspaces=where)

    def remove(self, name: str) -> None:
        """Remove a person. Their logins and the clients they let in end with them."""
        with self._store.edit() as tokens:
            user = _find_user(tokens, name)
            change_tokens(tokens, [user], revoked_at=int(time.time()))

    def end_login(self, user_id: str, login_id: str) -> None:
        """End one of the logins of a person or token. Raise BadInput."""
        with self._store.edit() as tokens:
            own = [token for token in tokens if token.id == login_id and token.owner == user_id]
            if not own:
                raise BadInput("this login has ended already")
            change_tokens(tokens, own, revoked_at=int(time.time()))

    def name_of(self, identity: "Identity") -> str:
        """Return the name of a person whom an identity provider logged in: that of their account.

        Raise NotAdmitted if it belongs to another.
        """
        for user in self.all():
            if user.account is not None and user.account.subject == identity.subject:
                return user.name
        check_token_name(identity.name)
        for token in self._tokens.all("token", "user"):
            is_theirs = token.account is not None and token.account.subject == identity.subject
            # Who has the name, or had it, may have the same workspace.
            if token.name == identity.name and not is_theirs:
                raise NotAdmitted(f"there is another {identity.name} on this server")
        return identity.name

    def admit(self, identity: "Identity", workspaces: tuple[str, ...] | None) -> Principal:
        """Return the person whom an identity provider logged in, with what they may do now.

        The first login creates the account. Raise NotAdmitted if the name belongs to another.
        """
        self._require_writable()
        now = int(time.time())
        with self._store.edit() as tokens:
            name = self.name_of(identity)
            users = [user for user in _active_users(tokens) if user.name == name]
            user = Token(
                id=users[0].id if users else secrets.token_hex(6),
                kind="user",
                name=name,
                person=name,
                hash="",
                can=identity.can,
                workspaces=workspaces,
                created_at=users[0].created_at if users else now,
                # The programs that they let in end if the provider does not log them in again.
                expires_at=now + IDENTITY_S,
                account=Account(subject=identity.subject),
            )
            tokens[:] = [token for token in tokens if token.id != user.id]
            tokens.append(user)
        return self._principal(user)

    def find_invitation(self, code: str) -> Token:
        """Return the person whom a link invites. Raise NotAdmitted if it was used or is over."""
        user = self._store.find(id_in(code))
        account = None if user is None else user.account
        if user is None or account is None or user.revoked_at is not None:
            raise NotAdmitted("this link is not valid")
        is_known = hmac.compare_digest(hash_secret(code), account.invitation)
        if not is_known or time.time() >= account.invited_until:
            raise NotAdmitted("this link was used already or has expired: ask for a new one")
        return user

    def accept(self, code: str, password: str) -> Principal:
        """Give an invited person a password, and return who they are. Raise NotAdmitted."""
        self._require_writable()
        self.find_invitation(code)
        if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
            raise BadInput(f"the password is too short: use at least {MIN_PASSWORD_LENGTH} letters")
        with self._hashing:
            account = Account(password=_hasher().hash(password))
        with self._store.edit() as tokens:
            user = self.find_invitation(code)  # another browser may have used it meanwhile
            if user not in tokens:
                raise NotAdmitted("this link was used already")
            change_tokens(tokens, [user], account=account)
        return self._principal(user)

    def log_in(self, name: str, password: str, peer: str) -> Principal:
        """Return the person with that name and password. Raise NotAdmitted."""
        attempt = self._attempts.begin(name, peer)
        found = [user for user in self.all() if user.name == name and user.account is not None]
        stored = found[0].account.password if found and found[0].account else ""
        hasher = _hasher()
        from argon2.exceptions import VerificationError

        try:
            with self._hashing:
                # An unknown name takes the same time.
                hasher.verify(stored or _unknown_hash(), password[:MAX_PASSWORD_LENGTH])
            is_right = bool(stored)
        except VerificationError:
            is_right = False
        if not is_right:
            raise NotAdmitted("wrong name or password")
        self._attempts.forget(attempt, name, peer)
        return self._principal(found[0])

    def open_session(self, principal: Principal) -> str:
        """Log a person or token in to the web interface, and return the secret of the login."""
        now, identifier = int(time.time()), secrets.token_hex(6)
        secret = make_secret(identifier)
        owner = principal.id if self._store.find(principal.id) is not None else ""
        where = None if principal.workspaces is None else tuple(sorted(principal.workspaces))
        session = Token(
            id=identifier,
            kind="session",
            name=principal.name,
            person=principal.person,
            hash=hash_secret(secret),
            can=principal.can,
            workspaces=where,
            created_at=now,
            expires_at=min(principal.until or now + IDLE_S, now + IDLE_S),
            owner=owner,
        )
        with self._store.edit() as tokens:
            sessions = [token for token in tokens if token.kind == "session"]
            dropped = {token.id for token in sessions if token.state(now) != "active"}
            own = [token.id for token in sessions if token.name == session.name]
            dropped.update(own[: -(MAX_LOGINS_EACH - 1)])
            tokens[:] = [token for token in tokens if token.id not in dropped]
            tokens.append(session)
        return secret

    def find_session(self, secret: str) -> Principal | None:
        """Return who logged in with that secret; None if the login has ended. Raise StoreError."""
        session = self._find_session(secret)
        if session is None or self._tokens.state(session) != "active":
            return None
        now = int(time.time())
        owner = self._store.read().get(session.owner)
        if owner is not None:
            self._store.record_use(owner.id)
        # A login that is used lasts, but not longer than its owner. It is prolonged now and then.
        if owner is not None and (session.expires_at or 0) - now < IDLE_S - 600:
            until = min(owner.expires_at or now + IDLE_S, now + IDLE_S)
            with self._store.edit(session.id) as tokens:
                change_tokens(
                    tokens, [token for token in tokens if token.id == session.id], expires_at=until
                )
        return self._principal(owner or session)

    def close_session(self, secret: str) -> None:
        """Log out. Raise StoreError."""
        session = self._find_session(secret)
        if session is not None:
            with self._store.edit(session.id) as tokens:
                tokens[:] = [token for token in tokens if token.id != session.id]

    def _require_writable(self) -> None:
        if self._max_capability == "read":
            raise NotAdmitted("this server may only read: log in at another one first")

    def _principal(self, token: Token) -> Principal:
        return self._tokens.principal(token).restrict(self._max_capability)

    def _find_session(self, secret: str) -> Token | None:
        identifier = id_in(secret)
        # A visitor without a login costs no question to the database.
        session = self._store.find(identifier) if identifier else None
        if session is None or session.kind != "session":
            return None
        return session if hmac.compare_digest(hash_secret(secret), session.hash) else None


class _Session(Struct):
    principal: Principal
    used_at: float


class WebSessions:
    """Open sessions by the secret in their cookie, and links that open one. Thread-safe.

    `people` keeps the sessions of people and tokens, for all servers of a store. Others are lost
    when the server ends: those of one-time links, and all on a server that may only read.
    """

    def __init__(
        self,
        holds: Callable[[Principal], bool],
        clock: Callable[[], float] = time.monotonic,
        *,
        people: People | None = None,
    ) -> None:
        """`holds` tells whether a principal would still be admitted."""
        self._holds = holds
        self._clock = clock
        self._people = people
        self._lock = Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._links: OrderedDict[str, tuple[Principal, float]] = OrderedDict()
        self._key = secrets.token_bytes(32)

    def open(self, principal: Principal) -> str:
        """Open a session and return its secret. With too many, the longest unused one ends."""
        # A link logs in to the server that made it, without a token that others could check.
        if self._people is not None and principal.id and principal.id != LINK_OWNER.id:
            try:
                return self._people.open_session(principal)
            except StoreError as exc:
                logger.warning("this login ends with the server: %s", exc)
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[secret] = _Session(principal, self._clock())
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return secret

    def find(self, secret: str) -> Principal | None:
        """Return whose session it is; None if it has ended or its token no longer holds.

        Raise StoreError.
        """
        principal = None
        with self._lock:
            session = self._sessions.pop(secret, None)
            if session is not None and self._clock() - session.used_at <= IDLE_S:
                session.used_at = self._clock()
                self._sessions[secret] = session  # at the end: it was used last
                principal = session.principal
        if principal is None and self._people is not None:
            principal = self._people.find_session(secret)
        if principal is not None and not self._holds(principal):
            self.close(secret)
            return None
        return principal

    def close(self, secret: str) -> None:
        """End a session, on all servers. Raise StoreError."""
        with self._lock:
            own = self._sessions.pop(secret, None)
        if self._people is not None and own is None:
            self._people.close_session(secret)

    def make_link(self, principal: Principal) -> str:
        """Return a code that opens one session for the principal, within ten minutes."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._links[code] = (principal, self._clock() + 600)
            while len(self._links) > 100:
                self._links.popitem(last=False)
        return code

    def use_link(self, code: str) -> Principal | None:
        """Return whose link it is, and forget it; None if it was used already or has expired."""
        with self._lock:
            principal, until = self._links.pop(code, (None, 0.0))
        return (
            principal
            if principal is not None and self._clock() < until and self._holds(principal)
            else None
        )

    def form_token(self, secret: str) -> str:
        """Return the token that every form of a session must send. Other sites cannot read it.

        Any server that knows the session makes the same. Without a session, where no login is
        needed, this server's own key stands for it.
        """
        key = secret.encode() or self._key
        return hmac.new(key, b"form", "sha256").hexdigest()

    def is_form_token(self, secret: str, given: str) -> bool:
        """Return True if a request carries the token of its session."""
        return hmac.compare_digest(
            self.form_token(secret).encode(), given.encode("utf-8", "replace")
        )


class _Attempts:
    """Attempts to log in that failed or have not ended, by name and by address. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._times: OrderedDict[tuple[str, str], list[float]] = OrderedDict()

    def begin(self, name: str, peer: str) -> float:
        """Count an attempt and return its time. Raise NotAdmitted after too many."""
        now = time.monotonic()
        limits = {
            ("name", name): MAX_ATTEMPTS_BY_NAME,
            ("address", peer): MAX_ATTEMPTS_BY_ADDRESS,
        }
        with self._lock:
            for key, limit in limits.items():
                recent = [at for at in self._times.get(key, ()) if now - at < ATTEMPTS_S]
                if len(recent) >= limit:
                    minutes = int((recent[0] + ATTEMPTS_S - now) // 60) + 1
                    raise NotAdmitted(f"too many attempts: try again in {minutes} minutes")
                self._times[key] = recent
            for key in limits:
                self._times[key].append(now)
                self._times.move_to_end(key)
            while len(self._times) > 10_000:
                self._times.popitem(last=False)
        return now

    def forget(self, attempt: float, name: str, peer: str) -> None:
        """Do not count an attempt that succeeded."""
        with self._lock:
            for key in (("name", name), ("address", peer)):
                if attempt in self._times.get(key, ()):
                    self._times[key].remove(attempt)


def _invitation(now: int, identifier: str = "") -> tuple[str, Account]:
    """Return the code of a link, and an account that waits for it."""
    code = make_secret(identifier or secrets.token_hex(6))
    return code, Account(invitation=hash_secret(code), invited_until=now + INVITATION_S)


def _active_users(tokens: Iterable[Token]) -> list[Token]:
    return [token for token in tokens if token.kind == "user" and token.revoked_at is None]


def _find_user(tokens: Iterable[Token], name: str) -> Token:
    for user in _active_users(tokens):
        if user.name == name:
            return user
    raise BadInput(f"there is no person {name}: `polymnia user list` shows who there is")


def _hasher() -> "PasswordHasher":
    """Return what hashes passwords. Raise SettingsError if its package is missing."""
    try:
        from argon2 import PasswordHasher
    except ImportError as exc:
        raise SettingsError(
            "passwords need another package: run `pip install 'polymnia[oauth]'`"
        ) from exc
    return PasswordHasher()


@cache
def _unknown_hash() -> str:
    return _hasher().hash(secrets.token_hex(16))
