"""Follow docs/scaling.md from nothing to a team server: a database, two servers and nginx."""

import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.postgres import PostgresServer, running_server
from tests.processes import TIMEOUT_S, polymnia_command
from tests.transports.running import Running, Talk, Web, initialize, listening, request

PAGE = (Path(__file__).parent.parent / "docs" / "scaling.md").read_text("utf-8")
SETUP = PAGE.partition("## From nothing to a team server")[2].partition("\n## ")[0]
PASSWORD = "choose-one"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", SETUP, re.DOTALL)


def commands() -> list[list[str]]:
    return [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of its own, because roles belong to a whole server."""
    with running_server() as started:
        yield started


def make_database(server: PostgresServer) -> None:
    """Run the SQL of the page, with one password for both roles."""
    roles, extensions = blocks("sql")
    created = roles.replace("choose-another", PASSWORD)
    inside = urlsplit(server.url)._replace(path="/memory").geturl()
    for url, block in ((server.url, created), (inside, extensions)):
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in block.split(";"):
                if statement.strip():
                    connection.execute(statement.encode())


def local(command: list[str], server: PostgresServer) -> list[str]:
    """Return a command of the page with addresses of this machine."""
    words = []
    for word in command[1:]:
        changed = word.replace("db.example.com", f"127.0.0.1:{server.port}")
        changed = changed.replace("10.0.0.10", "127.0.0.1")
        words.append(re.sub(r"10\.0\.0\.1[12]:8765", "127.0.0.1:0", changed))
    return words


def run(words: list[str]) -> str:
    command = polymnia_command(*words)
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def serve(words: list[str]) -> Running:
    """Start a server with a command of the page, and with its requests in the log."""
    flags = words[1:]
    store = flags.pop(flags.index("--store") + 1)
    flags.remove("--store")
    return Running(store, *flags, "--log-level", "info", "--embedder", "none", dialect="native")


@contextmanager
def proxied(directory: Path, servers: list[Running]) -> Iterator[int]:
    """Run nginx with the configuration of the page, without TLS, and yield its port."""
    nginx = shutil.which("nginx") or pytest.skip("nginx is not on the PATH")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    (block,) = blocks("nginx")
    for host, running in zip(("10.0.0.11", "10.0.0.12"), servers, strict=True):
        block = block.replace(f"{host}:8765", f"127.0.0.1:{running.port}")
    block = re.sub(r" *ssl_certificate.*\n", "", block)
    block = block.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{path}_temp_path {directory}/{path};\n" for path in paths)
    file = directory / "nginx.conf"
    file.write_text(
        f"daemon off;\npid {directory}/pid;\nerror_log stderr notice;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{places}{block}}}\n",
        "utf-8",
    )
    command = [nginx, "-p", str(directory), "-c", str(file), "-e", "stderr"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(process, port)
        yield port
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def wait_for_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    """Wait until nginx listens; fail if it ends."""
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            continue
        return
    pytest.fail("nginx did not start")


def test_the_page_takes_a_team_from_nothing_to_two_servers_behind_nginx(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    make_database(server)
    tokens: dict[str, str] = {}
    serving: list[list[str]] = []
    for command in commands():
        words = local(command, server)
        if words[0] == "serve":
            serving.append(words)
        elif words[0] == "token":
            tokens[words[2]] = run(words)
        else:
            run(words)
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(words)) for words in serving]
        port = stack.enter_context(proxied(tmp_path, servers))
        use(port, servers, tokens["alice"])
        revoke(serving[0], tokens["root"], port)


def use(port: int, servers: list[Running], token: str) -> None:
    """Let alice store and find a fact through the proxy, before and after a server stops."""
    host = {"Host": "memory.example.com", "X-Forwarded-For": "198.51.100.7"}
    with Web(port, **host) as web:
        assert web.post(initialize()).status == 401
        assert web.send("GET", "/readyz").status == 200
        assert web.send("GET", "/metrics").status == 404
    with Talk(port, token, **host) as talk:
        remembered = talk.call("remember", entities=[{"name": "Ann", "facts": ["likes tea"]}])
        assert not remembered.get("isError"), remembered
        (used,) = [running for running in servers if has_session(running, talk)]
    assert "client=198.51.100.7" in used.wait_for("tool=remember")
    assert used.stop() == 0
    with Talk(port, token, **host) as talk:
        found = talk.call("recall", query="who likes tea?")
        assert "likes tea" in found["content"][0]["text"]


def has_session(running: Running, talk: Talk) -> bool:
    """Ask a server itself whether a session lives there."""
    with Web(running.port) as web:
        web.headers = talk.headers
        return web.post(request("ping")).status == 200


def revoke(words: list[str], token: str, port: int) -> None:
    """Revoke a token from another host: the server ends its stream and refuses it."""
    store = words[words.index("--store") + 1]
    host = {"Host": "memory.example.com"}
    with Talk(port, token, **host) as talk, listening(talk) as stream:
        run(["token", "revoke", "root", "--store", store])
        assert stream.next() is None
    with Web(port, token, **host) as web:
        assert web.post(initialize()).status == 401
