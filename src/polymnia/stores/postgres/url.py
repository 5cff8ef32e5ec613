"""The URL of a store on PostgreSQL: what concerns the connection, and what concerns Polymnia."""

from contextlib import suppress
from urllib.parse import quote, unquote, urlencode

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from polymnia.errors import SettingsError

# A connection is given up when the network loses packets for this long. The URL may say otherwise.
_NETWORK: dict[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "target_session_attrs": "read-write",  # of several hosts, the one that may be written to
    "application_name": "polymnia",
}
_LOCK_TIMEOUT_MS = 15_000


class PostgresUrl(Struct, frozen=True):
    """A store's URL, taken apart: how to connect, and what concerns Polymnia."""

    conninfo: str
    workspace: str = ""
    timeout: float = 30.0
    connections: int = 10
    row_security: bool | None = None
    replica: str = ""
    direct: str = ""

    @property
    def direct_conninfo(self) -> str:
        """The database itself, without a pooler, for what needs a connection of its own."""
        return self._elsewhere(self.direct) if self.direct else self.conninfo

    @property
    def replica_url(self) -> "PostgresUrl | None":
        """The same database on the hosts of its replica; None if there is none."""
        if not self.replica:
            return None
        conninfo = make_conninfo(self._elsewhere(self.replica), target_session_attrs="any")
        return PostgresUrl(conninfo, "", self.timeout, self.connections)

    def _elsewhere(self, addresses: str) -> str:
        """Return how to connect to the same database at other addresses."""
        hosts, ports = [], []
        own_port = str(conninfo_to_dict(self.conninfo).get("port") or "").partition(",")[0]
        for address in addresses.split(","):
            host, _, port = address.partition(":")
            hosts.append(host)
            ports.append(port or own_port)
        return make_conninfo(self.conninfo, host=",".join(hosts), port=",".join(ports))

    @property
    def patience(self) -> float:
        """How long to wait for an answer, in seconds."""
        # How much longer than the server a client waits, so that the server says what is wrong.
        return self.timeout + min(self.timeout, 5.0)

    @property
    def title(self) -> str:
        """What errors call the database: where it is, without a password."""
        parts = conninfo_to_dict(self.conninfo)
        host, port = parts.get("host") or "localhost", parts.get("port")
        return f"PostgreSQL at {host}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"

    @property
    def settings(self) -> dict[str, str]:
        """The settings of every connection.

        What it reads outside of BEGIN and COMMIT is one snapshot.
        """
        timeout_ms = int(self.timeout * 1000)
        return {
            "default_transaction_isolation": "repeatable read",
            "search_path": "polymnia,public",
            # Every query is about one workspace, found by an index. A plan is kept while tables
            # grow, so it must not read a whole table, not even one that is small now.
            "plan_cache_mode": "force_generic_plan",
            "enable_seqscan": "off",
            "enable_hashjoin": "off",
            "enable_mergejoin": "off",
            "enable_bitmapscan": "off",
            "jit": "off",
            "statement_timeout": str(timeout_ms),
            "lock_timeout": str(min(_LOCK_TIMEOUT_MS, timeout_ms)),
            "idle_in_transaction_session_timeout": str(2 * timeout_ms),
        }


def parse_url(url: str) -> PostgresUrl:
    """Return the parts of a URL `postgresql://…?workspace=…`.

    Further parameters are `timeout`, `connections`, `row_security`, `replica` and `direct`.
    Raise SettingsError.
    """
    address, _, query = url.partition("?")
    # Not parse_qsl: libpq reads "+" as itself, and so must we.
    given = {
        name: unquote(value)
        for name, _, value in [part.partition("=") for part in query.split("&") if part]
    }
    ours = {
        name: given.pop(name)
        for name in ("workspace", "timeout", "connections", "row_security", "replica", "direct")
        if name in given
    }
    try:
        plain = f"{address}?{urlencode(given, quote_via=quote)}"
        wanted = {
            name: value for name, value in _NETWORK.items() if name not in conninfo_to_dict(plain)
        }
        return PostgresUrl(
            make_conninfo(plain, **wanted),
            ours.get("workspace", ""),
            _positive("timeout", ours.get("timeout", "30")),
            int(_positive("connections", ours.get("connections", "10"))),
            _switch(ours.get("row_security")),
            ours.get("replica", ""),
            ours.get("direct", ""),
        )
    except psycopg.ProgrammingError as exc:
        raise SettingsError(
            f"invalid store URL: {str(exc).strip()}; use postgresql://user@host/database"
        ) from exc


def _positive(name: str, value: str) -> float:
    with suppress(ValueError):
        if (number := float(value)) > 0:
            return number
    raise SettingsError(f"store URL: {name} must be a positive number, got {value!r}")


def _switch(value: str | None) -> bool | None:
    if value is None:
        return None
    if value not in ("on", "off"):
        raise SettingsError(f"store URL: row_security must be on or off, got {value!r}")
    return value == "on"
