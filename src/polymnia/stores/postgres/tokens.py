"""Tokens in a table of the database, which all of its servers share. It holds only their hashes."""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Condition, Thread

from msgspec import Struct, json, structs

from polymnia.errors import StoreError
from polymnia.model import Account, Grant, Token, TokenKind
from polymnia.stores.postgres.catalogue import open_migrated
from polymnia.stores.postgres.connection import Row
from polymnia.stores.postgres.database import Database
from polymnia.stores.postgres.port import columns
from polymnia.stores.postgres.transaction import WorkspaceConnection

logger = logging.getLogger(__name__)

# How long a login with an unknown token waits until the table was read again.
_MAX_WAIT_S = 1.0
# The last use of a token is recorded at most once in this many seconds.
_USE_RESOLUTION_S = 60
_ID = re.compile(r"[0-9a-f]{12}")


class TokenTable:
    """The tokens of a database.

    A server follows them: a thread reads them when they have changed, because logins are checked on
    the event loop, which must not wait for the database. While that cannot be reached, the server
    keeps to what it last read; no call succeeds meanwhile.
    """

    path = None

    def __init__(self, database: Database, *, read_only: bool) -> None:
        self._database = database
        self._read_only = read_only
        self._by_id: dict[str, Token] = {}
        self._edits = -1  # the number of edits when the table was last read
        self._uses: dict[str, int] = {}  # not recorded yet
        self._recorded: dict[str, int] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._rereads = 0
        self._reread_at = 0.0
        self._is_wanted = False
        self._is_closed = False

    @property
    def exist(self) -> bool:
        return bool(self.read())

    def read(self) -> Mapping[str, Token]:
        if self._thread is None:
            self._refresh()
        return self._by_id

    def find(self, identifier: str, digest: str = "") -> Token | None:
        token = self.read().get(identifier)
        is_new = token is None or (token.grant is not None and digest not in token.grant.hashes)
        if is_new and self._thread is not None and _ID.fullmatch(identifier):
            self._wait_for_reread()
            token = self._by_id.get(identifier)
        return token

    @contextmanager
    def edit(self, *identifiers: str) -> Iterator[list[Token]]:
        with self._database.transaction(write=True) as connection:
            ((number,),) = connection.ask("count_token_edit")  # it also locks out other editors
            if identifiers:
                rows = connection.ask("tokens_named", list(identifiers))
            else:
                rows = connection.ask("tokens_since", -1)
            before = {token.id: token for token in map(_token, rows)}
            tokens = list(before.values())
            yield tokens
            changed = [token for token in tokens if before.pop(token.id, None) != token]
            for token in changed:
                _put(connection, token, number)
            if before:
                connection.write("delete_tokens", list(before))
            if changed or before:
                connection.commit()
        self._refresh()

    def record_use(self, identifier: str) -> None:
        now = int(time.time())
        if not self._read_only and now - self._recorded.get(identifier, 0) >= _USE_RESOLUTION_S:
            self._recorded[identifier] = now
            with self._changed:
                self._uses[identifier] = now
        if self._thread is None:
            self._record_uses()

    def last_used(self, identifier: str) -> int | None:
        rows = self._database.ask("token_used_at", identifier)
        return rows[0][0] if rows else None

    def follow(self) -> None:
        if self._thread is None:
            self._refresh()
            self._thread = Thread(target=self._poll, name="polymnia-tokens", daemon=True)
            self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_MAX_WAIT_S)
        self._database.close()

    def _poll(self) -> None:
        has_failed = False
        while True:
            with self._changed:
                # A following server looks this often whether another one has created or revoked a
                # token.
                self._changed.wait_for(lambda: self._is_wanted or self._is_closed, 1.0)
                self._is_wanted = False
                if self._is_closed:
                    break
            try:
                self._refresh()
                self._record_uses()
                has_failed = False
            except StoreError as exc:
                if not has_failed:
                    logger.warning("cannot look for new tokens at the moment: %s", exc)
                has_failed = True
            with self._changed:
                self._rereads += 1
                self._changed.notify_all()

    def _wait_for_reread(self) -> None:
        """Let the thread read the table, and wait for that, unless this was done just now."""
        now = time.monotonic()
        with self._changed:
            # Logins with unknown tokens let the table be read again this often, so that guessing
            # costs nothing.
            if now - self._reread_at < 0.1:
                return
            self._reread_at = now
            # A read that runs already may be too early for the new token.
            needed = self._rereads + 1
            self._is_wanted = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._rereads >= needed, _MAX_WAIT_S)

    def _refresh(self) -> None:
        """Read the tokens that were edited since the last time. Raise StoreError."""
        ((edits,),) = self._database.ask("token_edits")
        if edits == self._edits:
            return
        rows = self._database.ask("tokens_since", self._edits)
        by_id = {**self._by_id, **{token.id: token for token in map(_token, rows)}}
        ((count,),) = self._database.ask("count_tokens")
        numbers = {row[-1] for row in rows if row[-1] <= edits}
        # An edit without a number was of an earlier program, which does not write them.
        is_complete = count == len(by_id) and len(numbers) == edits - self._edits
        if not is_complete and self._edits >= 0:
            rows = self._database.ask("tokens_since", -1)
            by_id = {token.id: token for token in map(_token, rows)}
        self._by_id, self._edits = by_id, edits

    def _record_uses(self) -> None:
        with self._changed:
            uses, self._uses = self._uses, {}
        if not uses:
            return
        with self._database.transaction(write=True) as connection:
            connection.write("record_token_uses", *columns(sorted(uses.items())))
            connection.commit()


def open_tokens(url: str, *, read_only: bool = False) -> TokenTable:
    """Open the tokens of the database at a URL, and create its tables if it is new.

    Raise StoreError.
    """
    return TokenTable(open_migrated(url, read_only=read_only), read_only=read_only)


class _Login(Struct, omit_defaults=True):
    """What a person, a session, a grant or a limited token has besides, as JSON in one column."""

    kind: TokenKind = "token"
    person: str = ""
    owner: str = ""
    account: Account | None = None
    grant: Grant | None = None
    requests: int | None = None
    writes: int | None = None


def _token(row: Row) -> Token:
    identifier, name, digest, can, workspaces, created_at, expires_at, revoked_at, text, _ = row
    login = _Login() if text is None else json.decode(text, type=_Login)
    return Token(
        id=identifier,
        name=name,
        hash=digest,
        can=can,
        workspaces=None if workspaces is None else tuple(workspaces),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        **structs.asdict(login),
    )


def _put(connection: WorkspaceConnection, token: Token, edit: int) -> None:
    login = _Login(
        token.kind,
        token.person,
        token.owner,
        token.account,
        token.grant,
        token.requests,
        token.writes,
    )
    connection.write(
        "put_token",
        token.id,
        token.name,
        token.hash,
        token.can,
        token.workspaces,
        token.created_at,
        token.expires_at,
        token.revoked_at,
        None if login == _Login() else json.encode(login).decode(),
        edit,
    )
