"""Tokens in a file, which holds only their hashes."""

import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from polymnia.disk.errors import map_os_errors
from polymnia.disk.json_file import decode_file, write_file
from polymnia.disk.lock import file_lock
from polymnia.disk.replace import make_parent
from polymnia.errors import BadInput, NotAdmitted
from polymnia.model import Capability, Principal

logger = logging.getLogger(__name__)

_PREFIX = "ply"
MAX_NAME_LENGTH = 100
# Our tokens are shorter than this; the rest of a longer one need not be hashed.
_MAX_TOKEN_LENGTH = 200
# The file's version. A later one may hold restrictions that this version does not know.
_VERSION = 1
# The last use of a token is recorded at most once in this many seconds.
_USE_RESOLUTION_S = 60


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token as the file stores it. Times are seconds since 1970; `workspaces` None means all."""

    id: str
    name: str
    hash: str
    can: Capability
    workspaces: tuple[str, ...] | None = None
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def state(self, now: float) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"

    @property
    def principal(self) -> Principal:
        where = None if self.workspaces is None else frozenset(self.workspaces)
        return Principal(
            name=self.name, can=self.can, workspaces=where, id=self.id, until=self.expires_at
        )


class _Contents(Struct, kw_only=True):
    version: int
    tokens: list[Token]


class Tokens:
    """The tokens in a file. Safe to use from several threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._stamp: object = None
        self._by_id: dict[str, Token] = {}
        self._existed = False
        self._used_at: dict[str, float] = {}

    @property
    def exist(self) -> bool:
        """True if there ever was a token, even if the last one is revoked or the file is lost."""
        self._existed = self._existed or os.path.lexists(self.path)
        return self._existed

    def all(self) -> list[Token]:
        """Return every token ever created. Raise StoreDamaged."""
        with self._lock:
            self._refresh()
            return list(self._by_id.values())

    def create(
        self,
        name: str,
        *,
        can: Capability,
        workspaces: Iterable[str] | None = None,
        lifetime: int | None = None,
    ) -> str:
        """Create a token and return its text, which is not stored. Raise BadInput.

        `lifetime` is in seconds.
        """
        if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise BadInput(f"invalid token name: use 1 to {MAX_NAME_LENGTH} printable characters")
        allowed = None
        if workspaces is not None:
            allowed = tuple(sorted(set(workspaces)))
            if not all(workspace.strip() for workspace in allowed):
                raise BadInput("--workspace: must not be blank; omit it to allow all workspaces")
        now = int(time.time())
        text, token = _make_token(name, can, allowed, now, lifetime)
        with self._edit() as tokens:
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
        with self._edit() as tokens:
            active = _find_active(tokens, name, now)
            if not active:
                raise _no_such_token(name)
            old = tokens[active[-1]]
            text, token = _make_token(name, old.can, old.workspaces, now, lifetime)
            for index in active:
                tokens[index] = _retire(tokens[index], now, overlap)
            tokens.append(token)
        return text

    def revoke(self, name: str) -> None:
        """Revoke every token of that name, also expired ones. Raise BadInput if there is none."""
        now = int(time.time())
        with self._edit() as tokens:
            count = 0
            for index, token in enumerate(tokens):
                if token.name == name and token.revoked_at is None:
                    tokens[index] = replace(token, revoked_at=now)
                    count += 1
            if not count:
                raise _no_such_token(name)

    def recognise(self, text: str) -> Principal:
        """Return the principal of a token and record its use. Raise NotAdmitted."""
        prefix, _, rest = text.partition("_")
        identifier = rest.partition("_")[0] if prefix == _PREFIX else ""
        with self._lock:
            self._refresh()
            token = self._by_id.get(identifier)
        # Hash and compare in any case, so that the time reveals nothing about which ids exist.
        expected = token.hash if token else _hash("")
        matches = hmac.compare_digest(_hash(text[:_MAX_TOKEN_LENGTH]), expected)
        if token is None or not matches:
            raise NotAdmitted("unknown token")
        state = token.state(time.time())
        if state != "active":
            raise NotAdmitted(f"the token {token.name} is {state}")
        self._record_use(token.id)
        return token.principal

    def last_used(self, identifier: str) -> int | None:
        """Return when a token was last used, to the minute, as a timestamp; None if never."""
        try:
            return int((self._use_directory / identifier).stat().st_mtime)
        except OSError:
            return None

    def holds(self, identifier: str) -> bool:
        """Return True if the token with that id is still active."""
        with self._lock:
            self._refresh()
            token = self._by_id.get(identifier)
        return token is not None and token.state(time.time()) == "active"

    @contextmanager
    def _edit(self) -> Iterator[list[Token]]:
        """Yield the tokens under the file's lock. Write them if the block succeeds."""
        make_parent(self.path)
        with file_lock(self.path):
            tokens = self.all()
            yield tokens
            write_file(self.path, _Contents(version=_VERSION, tokens=tokens))

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        with map_os_errors(str(self.path)):
            stamp = _stamp(self.path)
            if stamp == self._stamp:
                return
            data = None if stamp is None else self.path.read_bytes()
        tokens = [] if data is None else self._decode(data)
        self._by_id = {token.id: token for token in tokens}
        self._stamp = stamp

    def _decode(self, data: bytes) -> list[Token]:
        contents = decode_file(
            self.path,
            data,
            _Contents,
            newest=_VERSION,
            damage="is not a token file",
            advice="all logins are rejected until it is repaired",
        )
        return contents.tokens

    @property
    def _use_directory(self) -> Path:
        """The directory with a file per used token. Its modification time is the last use."""
        return self.path.with_name(f"{self.path.name}.used")

    def _record_use(self, identifier: str) -> None:
        now = time.time()
        if now - self._used_at.get(identifier, 0.0) < _USE_RESOLUTION_S:
            return
        self._used_at[identifier] = now
        try:
            self._use_directory.mkdir(mode=0o700, exist_ok=True)
            (self._use_directory / identifier).touch(mode=0o600)
        except OSError as exc:  # a read-only directory; logins work without it
            logger.info("cannot record the use of a token: %s", exc)


def _make_token(
    name: str, can: Capability, workspaces: tuple[str, ...] | None, now: int, lifetime: int | None
) -> tuple[str, Token]:
    """Return the text of a new token, and the token as the file stores it."""
    identifier, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    text = f"{_PREFIX}_{identifier}_{secret}"
    token = Token(
        id=identifier,
        name=name,
        hash=_hash(text),
        can=can,
        workspaces=workspaces,
        created_at=now,
        expires_at=None if lifetime is None else now + lifetime,
    )
    return text, token


def _find_active(tokens: list[Token], name: str, now: int) -> list[int]:
    """Return the indexes of the active tokens of that name."""
    indexes = []
    for index, token in enumerate(tokens):
        if token.name == name and token.state(now) == "active":
            indexes.append(index)
    return indexes


def _retire(token: Token, now: int, overlap: int) -> Token:
    """Revoke the token now, or let it expire after the overlap."""
    if not overlap:
        return replace(token, revoked_at=now)
    return replace(token, expires_at=min(token.expires_at or now + overlap, now + overlap))


def _no_such_token(name: str) -> BadInput:
    return BadInput(f"there is no token {name}: `polymnia token list` shows which exist")


def _hash(text: str) -> str:
    """Hash once: a token has 256 random bits, so more rounds add nothing."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _stamp(path: Path) -> object:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return (state.st_ino, state.st_mtime_ns, state.st_size)
