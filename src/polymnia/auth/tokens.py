"""Tokens in a file: made, listed, revoked and recognised; the file holds their hashes only."""

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec.structs import replace

from polymnia.disk.errors import map_os_errors
from polymnia.disk.lock import file_lock
from polymnia.disk.replace import make_parent, replace_file
from polymnia.errors import BadInput, NotAdmitted, StoreDamaged, StoreTooNew
from polymnia.model import Capability, Principal

_PREFIX = "ply"
_MOST_NAME = 100
# No longer than this is a token of ours; what is longer need not be hashed.
_MOST_TOKEN = 200
# What the file says of itself; a later one may hold limits that this version does not know.
_VERSION = 1


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a token. Times are whole seconds since 1970; `workspaces` None means all."""

    id: str
    name: str
    hash: str
    can: Capability
    workspaces: tuple[str, ...] | None = None
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def state(self, now: float) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"

    @property
    def principal(self) -> Principal:
        where = None if self.workspaces is None else frozenset(self.workspaces)
        return Principal(name=self.name, can=self.can, workspaces=where, id=self.id, until=self.expires_at)


class _Contents(Struct, kw_only=True):
    version: int
    tokens: list[Token]


class Tokens:
    """The file at a path. Safe to use from several threads and several processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._stamp: object = None
        self._by_id: dict[str, Token] = {}
        self._existed = False

    @property
    def exist(self) -> bool:
        """Whether there ever was a token: the door stays closed when the last is revoked, or the file is lost."""
        self._existed = self._existed or os.path.lexists(self.path)
        return self._existed

    def all(self) -> list[Token]:
        """Every token that was ever made. Raises StoreDamaged."""
        with self._lock:
            self._refresh()
            return list(self._by_id.values())

    def create(
        self, name: str, *, can: Capability, workspaces: Iterable[str] | None = None, lifetime: int | None = None
    ) -> str:
        """A new token, which nobody can show again; `lifetime` is in seconds. Raises BadInput."""
        if not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
            raise BadInput(f"a token's name has 1 to {_MOST_NAME} printable characters")
        where = None if workspaces is None else tuple(sorted(set(workspaces)))
        if where is not None and not all(each.strip() for each in where):
            raise BadInput("a workspace has a name; leave --workspace out for all of them")
        identifier, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        text = f"{_PREFIX}_{identifier}_{secret}"
        now = int(time.time())
        token = Token(
            id=identifier,
            name=name,
            hash=_hashed(text),
            can=can,
            workspaces=where,
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
        )
        with self._changing() as tokens:
            if any(each.name == name and each.state(now) == "active" for each in tokens):
                raise BadInput(f"there is a token {name} already; revoke it first, or choose another name")
            tokens.append(token)
        return text

    def revoke(self, name: str) -> None:
        """Make every token of that name useless at once, an expired one too. Raises BadInput."""
        now = int(time.time())
        with self._changing() as tokens:
            theirs = [number for number, each in enumerate(tokens) if each.name == name and each.revoked_at is None]
            if not theirs:
                raise BadInput(f"there is no token {name}; `polymnia token list` shows those there are")
            for number in theirs:
                tokens[number] = replace(tokens[number], revoked_at=now)

    def recognise(self, text: str) -> Principal:
        """Whose token it is. Raises NotAdmitted."""
        identifier = text.split("_", 2)[1] if text.startswith(f"{_PREFIX}_") and text.count("_") >= 2 else ""
        with self._lock:
            self._refresh()
            token = self._by_id.get(identifier)
        # Hashed and compared in any case, so that the time tells nothing about which ids exist.
        expected = token.hash if token else _hashed("")
        matches = hmac.compare_digest(_hashed(text[:_MOST_TOKEN]), expected)
        if token is None or not matches:
            raise NotAdmitted("the token is not known here")
        state = token.state(time.time())
        if state != "active":
            raise NotAdmitted(f"the token {token.name} is {state}")
        return token.principal

    def holds(self, identifier: str) -> bool:
        """Whether the token of that id still opens the door."""
        with self._lock:
            self._refresh()
            token = self._by_id.get(identifier)
        return token is not None and token.state(time.time()) == "active"

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The tokens under the file's lock, to be changed in place; written back when the block ends well."""
        make_parent(self.path)
        with file_lock(self.path):
            tokens = self.all()
            yield tokens
            contents = json.format(json.encode(_Contents(version=_VERSION, tokens=tokens)), indent=2)
            with map_os_errors(str(self.path)):
                replace_file(self.path, [contents, b"\n"])

    def _refresh(self) -> None:
        """Read the file again if somebody has changed it."""
        with map_os_errors(str(self.path)):
            stamp = _stamp(self.path)
            if stamp == self._stamp:
                return
            data = None if stamp is None else self.path.read_bytes()
        self._by_id = {} if data is None else {each.id: each for each in self._decoded(data)}
        self._stamp = stamp

    def _decoded(self, data: bytes) -> list[Token]:
        try:
            contents = json.decode(data, type=_Contents)
        except (DecodeError, ValidationError, UnicodeDecodeError) as exc:
            raise StoreDamaged(f"{self.path} is not a file of tokens ({exc}); nobody is let in until it is") from exc
        if contents.version > _VERSION:
            message = f"{self.path} has version {contents.version}, this version knows up to {_VERSION}"
            raise StoreTooNew(f"{message}; nobody is let in until polymnia is upgraded")
        return contents.tokens


def _hashed(text: str) -> str:
    """A token has 256 random bits, so one round is as good as many."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _stamp(path: Path) -> object:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return (state.st_ino, state.st_mtime_ns, state.st_size)


def shown_time(seconds: int | None) -> str:
    """A time as people read it; empty for none."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
