"""Tokens of remote clients: created, recognised, rotated and revoked. Only hashes are stored."""

import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from polymnia.disk.files import FileStamp, decode_file, make_parent, map_os_errors, write_file
from polymnia.disk.lock import file_lock
from polymnia.errors import BadInput, NotAdmitted
from polymnia.model import CAPABILITIES, Capability, Principal, Token, TokenKind
from polymnia.stores.contract import TokenStore

logger = logging.getLogger(__name__)

# The names of rights in tokens and requests of OAuth.
SCOPES: dict[str, Capability] = {f"polymnia:{can}": can for can in CAPABILITIES}
_PREFIX = "ply"
_KEY_ID = "0" * 12
MAX_NAME_LENGTH = 100


# The version of a file with tokens. A later one may hold restrictions that this version does not
# know. A file without people, grants and limits has version 1: earlier programs can read it.
_VERSION = 2
# The last use of a token is recorded at most once in this many seconds.
_USE_RESOLUTION_S = 60


def file_tokens(path: Path) -> "Tokens":
    """Return the tokens in a file."""
    return Tokens(TokenFile(path))


class Tokens:
    """The tokens of a store. Safe to use from several threads and processes."""

    def __init__(self, store: TokenStore) -> None:
        self.store = store
        self.path = store.path
        self.last_used = store.last_used
        self.follow = store.follow
        self.close = store.close

    @property
    def exist(self) -> bool:
        """True if there ever was a token, even if the last one is revoked or the file is lost."""
        return self.store.exist

    def all(self, *kinds: TokenKind) -> list[Token]:
        """Return every token ever created, or only those of some kinds. Raise StoreError."""
        shown = kinds or ("token", "user", "session", "grant")
        return [token for token in self.store.read().values() if token.kind in shown]

    def held(self, *kinds: TokenKind) -> list[Token]:
        """Return those that were not revoked, nor their owners, oldest first. Raise StoreError."""
        return [token for token in self.all(*kinds) if self.state(token) != "revoked"]

    def has_name(self, name: str) -> bool:
        """Return True if a token or person has the name. Raise StoreError."""
        return any(holder.name == name for holder in self.held("token", "user"))

    def signing_key(self) -> bytes:
        """Return the key with which all servers of the store sign. Create it if there is none.

        Raise StoreError.
        """
        key = self.store.find(_KEY_ID)
        if key is None:
            with self.store.edit() as tokens:
                # Another server may have created it meanwhile.
                key = next((token for token in tokens if token.id == _KEY_ID), None)
                if key is None:
                    key = Token(
                        id=_KEY_ID,
                        kind="key",
                        name="",
                        hash=secrets.token_hex(32),
                        can="read",
                        workspaces=(),
                        created_at=int(time.time()),
                    )
                    tokens.append(key)
        return bytes.fromhex(key.hash)

    def create(
        self,
        name: str,
        *,
        can: Capability,
        workspaces: Iterable[str] | None = None,
        lifetime: int | None = None,
        requests: int | None = None,
        writes: int | None = None,
    ) -> str:
        """Create a token and return its text, which is not stored. Raise BadInput.

        `lifetime` is in seconds. `requests` and `writes` limit its calls a minute.
        """
        check_token_name(name)
        allowed = None
        if workspaces is not None:
            allowed = tuple(sorted(set(workspaces)))
            if not all(workspace.strip() for workspace in allowed):
                raise BadInput("--workspace: must not be blank; omit it to allow all workspaces")
        now = int(time.time())
        text, token = _make_token(name, can, allowed, now, lifetime)
        token = replace(token, requests=requests, writes=writes)
        with self.store.edit() as tokens:
            if _find_active(tokens, name, now):
                raise BadInput(
                    f"there is already a token {name}: rotate or revoke it, or choose another name"
                )
            tokens.append(token)
        return text

    def rotate(self, name: str, *, lifetime: int | None = None, overlap: int = 0) -> str:
        """Replace the active token of a name by one with the same rights, and return its text.

        The old token stays valid for `overlap` seconds. Raise BadInput if there is none.
        """
        now = int(time.time())
        with self.store.edit() as tokens:
            active = _find_active(tokens, name, now)
            if not active:
                raise _no_such_token(name)
            old = active[-1]
            text, token = _make_token(name, old.can, old.workspaces, now, lifetime)
            token = replace(token, requests=old.requests, writes=old.writes)
            for former in active:
                if overlap:
                    last = min(former.expires_at or now + overlap, now + overlap)
                    change_tokens(tokens, [former], expires_at=last)
                else:
                    change_tokens(tokens, [former], revoked_at=now)
            tokens.append(token)
        return text

    def limit(self, name: str, *, requests: int | None, writes: int | None) -> None:
        """Limit the calls a minute of the token or person of that name; None is the server's limit.

        Raise BadInput if there is none.
        """
        with self.store.edit() as tokens:
            held = [token for token in tokens if token.name == name and token.revoked_at is None]
            if not held:
                raise _no_such_token(name)
            change_tokens(tokens, held, requests=requests, writes=writes)

    def assign(self, name: str, workspaces: Iterable[str]) -> None:
        """Change the workspaces of the active token of a name. Raise BadInput if there is none."""
        with self.store.edit() as tokens:
            active = _find_active(tokens, name, int(time.time()))
            if not active:
                raise _no_such_token(name)
            change_tokens(tokens, active, workspaces=tuple(sorted(set(workspaces))))

    def revoke(self, name: str) -> None:
        """Revoke every token, session and grant of that name, also expired ones.

        Raise BadInput if there is none.
        """
        now = int(time.time())
        with self.store.edit() as tokens:
            held = [token for token in tokens if token.name == name and token.revoked_at is None]
            revoked = [token for token in held if token.kind != "user"]
            if not revoked:
                raise _no_such_token(name)
            change_tokens(tokens, revoked, revoked_at=now)

    def recognise(self, text: str, resource: str = "") -> Principal:
        """Return the principal of a token and record its use. Raise NotAdmitted.

        The access token of a client that a person allowed in is valid for one resource, the URL
        that the request is for.
        """
        # Hash and compare in any case, so that the time reveals nothing about which ids exist.
        # Our tokens are shorter than 200 characters.
        digest = hash_secret(text[:200])
        token = self.store.find(id_in(text), digest)
        is_known = hmac.compare_digest(digest, hash_secret("") if token is None else token.hash)
        # The secret of a login to the web interface is not a token.
        if token is None or token.kind not in ("token", "grant"):
            raise NotAdmitted("unknown token")
        until = token.expires_at
        if token.grant is not None and digest in token.grant.hashes:
            # One of the client's access tokens, which end before the grant does.
            is_known, until = True, token.grant.hashes[digest]
        if not is_known:
            raise NotAdmitted("unknown token")
        state = self.state(token)
        if state == "active" and until is not None and time.time() >= until:
            state = "expired"
        if state != "active":
            raise NotAdmitted(f"the token {token.name} is {state}")
        if token.grant is not None and not is_below(resource, token.grant.resource):
            raise NotAdmitted(f"the token is for {token.grant.resource}: log in to this URL")
        self.store.record_use(token.id)
        return replace(self.principal(token), until=until)

    def principal(self, token: Token) -> Principal:
        """Return the principal of a token, with no more rights than its owner has now."""
        principal = token.principal
        owner = self.store.read().get(token.owner)
        if owner is None:
            return principal
        if owner.workspaces is not None:
            theirs = frozenset(owner.workspaces)
            own = theirs if principal.workspaces is None else principal.workspaces & theirs
            principal = replace(principal, workspaces=own)
        grantable = owner.can if token.kind == "grant" else None
        principal = principal.restrict(owner.can)
        return replace(principal, grantable=grantable, requests=owner.requests, writes=owner.writes)

    def state(self, token: Token) -> str:
        """Return `active`, `expired` or `revoked`. A login ends with its owner."""
        now = time.time()
        state = token.state(now)
        if state == "active" and token.owner:
            owner = self.store.read().get(token.owner)
            return "revoked" if owner is None else owner.state(now)
        return state

    def current(self, identifier: str) -> Principal | None:
        """Return the principal of the token with that id; None if it is not active any more."""
        token = self.store.read().get(identifier)
        if token is None or self.state(token) != "active":
            return None
        return self.principal(token)


def _make_token(
    name: str, can: Capability, workspaces: tuple[str, ...] | None, now: int, lifetime: int | None
) -> tuple[str, Token]:
    """Return the text of a new token, and the token as it is stored."""
    text = make_secret(secrets.token_hex(6))
    token = Token(
        id=id_in(text),
        name=name,
        hash=hash_secret(text),
        can=can,
        workspaces=workspaces,
        created_at=now,
        expires_at=None if lifetime is None else now + lifetime,
    )
    return text, token


def _find_active(tokens: list[Token], name: str, now: int) -> list[Token]:
    """Return the active tokens of that name."""
    named = [token for token in tokens if token.kind == "token" and token.name == name]
    return [token for token in named if token.state(now) == "active"]


def change_tokens(tokens: list[Token], chosen: Iterable[Token], **changes: Any) -> None:
    """Change the chosen ones of some tokens that are being edited."""
    for token in chosen:
        tokens[tokens.index(token)] = replace(token, **changes)


def check_token_name(name: str) -> None:
    """Raise BadInput if a token or person cannot have the name."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise BadInput(f"invalid name: use 1 to {MAX_NAME_LENGTH} printable characters")


def _no_such_token(name: str) -> BadInput:
    return BadInput(f"there is no token {name}: `polymnia token list` shows which exist")


def is_below(url: str, resource: str) -> bool:
    """Return True if a resource covers a URL: the same, or a path below it."""
    return bool(url) and (url == resource or url.startswith(f"{resource}/"))


def make_secret(identifier: str) -> str:
    """Return a new secret of a token, which names the token."""
    return f"{_PREFIX}_{identifier}_{secrets.token_urlsafe(32)}"


def id_in(secret: str) -> str:
    """Return the id of the token that a secret names; empty if it names none."""
    prefix, _, rest = secret.partition("_")
    return rest.partition("_")[0] if prefix == _PREFIX else ""


def hash_secret(text: str) -> str:
    """Hash once: a token has 256 random bits, so more rounds add nothing."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class _Contents(Struct, kw_only=True):
    version: int
    tokens: list[Token]


class TokenFile:
    """The tokens in a file. It is read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._stamp: FileStamp | None = None
        self._by_id: dict[str, Token] = {}
        self._existed = False
        self._used_at: dict[str, float] = {}

    @property
    def exist(self) -> bool:
        """True if there ever was a token, even if the file is lost while this process runs."""
        self._existed = self._existed or os.path.lexists(self.path)
        return self._existed

    def read(self) -> Mapping[str, Token]:
        with self._lock:
            # Read the file again if it has changed.
            with map_os_errors(str(self.path)):
                try:
                    stamp = FileStamp.of(self.path.stat())
                except FileNotFoundError:
                    stamp = None
                if stamp == self._stamp:
                    return self._by_id
                data = None if stamp is None else self.path.read_bytes()
            tokens: list[Token] = []
            if data is not None:
                contents = decode_file(
                    self.path,
                    data,
                    _Contents,
                    newest=_VERSION,
                    damage="is not a token file",
                    advice="all logins are rejected until it is repaired",
                )
                tokens = contents.tokens
            self._by_id = {token.id: token for token in tokens}
            self._stamp = stamp
            return self._by_id

    def find(self, identifier: str, digest: str = "") -> Token | None:
        return self.read().get(identifier)

    @contextmanager
    def edit(self, *identifiers: str) -> Iterator[list[Token]]:
        make_parent(self.path)
        with file_lock(self.path):
            before = list(self.read().values())
            tokens = list(before)
            yield tokens
            if tokens == before:
                return
            version = 1
            for token in tokens:
                if token.kind != "token" or token.requests is not None or token.writes is not None:
                    version = _VERSION
            write_file(self.path, _Contents(version=version, tokens=tokens))

    def record_use(self, identifier: str) -> None:
        now = time.time()
        if now - self._used_at.get(identifier, 0.0) < _USE_RESOLUTION_S:
            return
        self._used_at[identifier] = now
        try:
            self._use_directory.mkdir(mode=0o700, exist_ok=True)
            (self._use_directory / identifier).touch(mode=0o600)
        except OSError as exc:  # a read-only directory; logins work without it
            logger.info("cannot record the use of a token: %s", exc)

    def last_used(self, identifier: str) -> int | None:
        try:
            return int((self._use_directory / identifier).stat().st_mtime)
        except OSError:
            return None

    def follow(self) -> None:
        """Do nothing: every read looks whether the file has changed."""

    def close(self) -> None:
        """Do nothing: the file is never left open."""

    @property
    def _use_directory(self) -> Path:
        """The directory with a file per used token. Its modification time is the last use."""
        return self.path.with_name(f"{self.path.name}.used")
