"""A real PgBouncer in front of a database, for the tests."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.processes import TIMEOUT_S, Log, end_with_parent

_USER = "nobody"  # PgBouncer refuses to run as root


@contextmanager
def pooled(database: str, mode: str) -> Iterator[str]:
    """Run a pooler in a mode for the block, and yield the database's URL behind it."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is not installed: .ci/install-programs does that")
    parts = urlsplit(database)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    directory = Path(tempfile.mkdtemp(prefix="polymnia-pgbouncer-"))
    password = secrets.token_hex(8)
    (directory / "users.txt").write_text(f'"{parts.username}" "{password}"\n', encoding="utf-8")
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "md5",
        "auth_file": directory / "users.txt",
        "pool_mode": mode,
        **({"user": _USER} if os.geteuid() == 0 else {}),
    }
    lines = [f"{name} = {value}" for name, value in settings.items()]
    name = parts.path.lstrip("/")
    target = (
        f"host={parts.hostname} port={parts.port} user={parts.username} password={parts.password}"
    )
    text = "\n".join(["[databases]", f"{name} = {target}", "[pgbouncer]", *lines, ""])
    (directory / "pgbouncer.ini").write_text(text, encoding="utf-8")
    directory.chmod(0o755)
    process = subprocess.Popen(
        [program, directory / "pgbouncer.ini"], stderr=subprocess.PIPE, preexec_fn=end_with_parent
    )
    try:
        log = Log(process.stderr)
        log.wait_for("process up")
        yield f"postgresql://{parts.username}:{password}@127.0.0.1:{port}/{name}"
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
        shutil.rmtree(directory, ignore_errors=True)
