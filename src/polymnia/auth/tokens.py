"""Tokens of remote clients: created, recognised, rotated and revoked. Only hashes are stored."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from polymnia.auth.token_file import TokenFile
from polymnia.errors import BadInput, NotAdmitted
from polymnia.model import Capability, Principal, Token
from polymnia.stores.contract import TokenStore

_PREFIX = "ply"
MAX_NAME_LENGTH = 100
# Our tokens are shorter than this; the rest of a longer one need not be hashed.
_MAX_TOKEN_LENGTH = 200


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

    def all(self) -> list[Token]:
        """Return every token ever created. Raise StoreError."""
        return list(self.store.read().values())

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
            old = tokens[active[-1]]
            text, token = _make_token(name, old.can, old.workspaces, now, lifetime)
            for index in active:
                if overlap:
                    last = min(tokens[index].expires_at or now + overlap, now + overlap)
                    tokens[index] = replace(tokens[index], expires_at=last)
                else:
                    tokens[index] = replace(tokens[index], revoked_at=now)
            tokens.append(token)
        return text

    def revoke(self, name: str) -> None:
        """Revoke every token of that name, also expired ones. Raise BadInput if there is none."""
        now = int(time.time())
        with self.store.edit() as tokens:
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
        token = self.store.find(identifier)
        # Hash and compare in any case, so that the time reveals nothing about which ids exist.
        expected = token.hash if token else _hash("")
        matches = hmac.compare_digest(_hash(text[:_MAX_TOKEN_LENGTH]), expected)
        if token is None or not matches:
            raise NotAdmitted("unknown token")
        state = token.state(time.time())
        if state != "active":
            raise NotAdmitted(f"the token {token.name} is {state}")
        self.store.record_use(token.id)
        return token.principal

    def holds(self, identifier: str) -> bool:
        """Return True if the token with that id is still active."""
        token = self.store.read().get(identifier)
        return token is not None and token.state(time.time()) == "active"


def _make_token(
    name: str, can: Capability, workspaces: tuple[str, ...] | None, now: int, lifetime: int | None
) -> tuple[str, Token]:
    """Return the text of a new token, and the token as it is stored."""
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


def _no_such_token(name: str) -> BadInput:
    return BadInput(f"there is no token {name}: `polymnia token list` shows which exist")


def _hash(text: str) -> str:
    """Hash once: a token has 256 random bits, so more rounds add nothing."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
