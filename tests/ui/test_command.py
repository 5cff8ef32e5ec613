"""`polymnia ui`: it prints a link that opens the interface once, and nothing else opens it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from polymnia.stores import open_store
from tests.processes import TIMEOUT_S, end_with_parent, polymnia_command
from tests.ui.client import Visitor, make_token


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("ui") / "memory.db")


@pytest.fixture(scope="module")
def link(store: str) -> Iterator[str]:
    command = polymnia_command("ui", "--no-browser", "--store", store)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()


def visitor(link: str) -> Visitor:
    port = urlsplit(link).port
    assert port
    return Visitor(port)


def path(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


def test_without_the_link_a_login_is_needed_even_if_there_are_no_tokens(link: str) -> None:
    assert "This server asks for a token" in visitor(link).get("/ui/").text


def test_the_link_opens_one_session_with_all_rights(link: str, store: str) -> None:
    first, second = visitor(link), visitor(link)
    checked = first.head(path(link))  # as programs do that look whether links work
    assert (checked.status, "set-cookie" in checked.headers) == (200, False)
    opened = first.get(path(link))
    assert '<meta http-equiv="refresh" content="0;url=/ui/">' in opened.text
    assert "This machine, may administer" in first.get("/ui/more").words
    assert first.get(path(link), follow=False).headers["location"] == "/ui/"
    again = second.get(path(link))
    assert (again.status, "was used already" in again.text) == (403, True)
    assert "This server asks for a token" in second.get("/ui/").text
    make_token(store, "later", "read")
    assert "This machine, may administer" in first.get("/ui/more").words


def test_the_first_steps_work_on_this_machine(link: str, store: str) -> None:
    guest = visitor(link)
    guest.log_in(make_token(store, "first", "admin"))
    shown = guest.get("/ui/")
    assert f"polymnia install claude-code --store {store}" in shown.words
    assert "--http" not in shown.words


def test_the_first_token_may_be_any_where_pages_need_the_link(tmp_path: Path) -> None:
    command = polymnia_command("ui", "--no-browser", "--store")
    with subprocess.Popen(
        [*command, str(tmp_path / "memory.db")],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent,
    ) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        owner = visitor(link)
        owner.get(path(link))
        shown = owner.get("/ui/access")
        assert "Only the link that polymnia ui printed opens these pages" in shown.words
        assert "Everybody who can reach this server" not in shown.words
        shown = owner.post("/ui/access/tokens/create", name="reader", can="read", scope="all")
        assert (shown.status, "ply_" in shown.words) == (200, True)
        assert "This machine, may administer" in owner.get("/ui/more").words
        process.terminate()


def test_a_token_opens_it_too(link: str, store: str) -> None:
    guest = visitor(link)
    guest.log_in(make_token(store, "guest", "read"))
    assert "guest, may read" in guest.get("/ui/more").words


def test_a_server_on_standard_input_loads_no_part_of_the_interface(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "polymnia",
        "serve",
        "--store",
        str(tmp_path / "memory.db"),
    ]
    done = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert "polymnia.transports.stdio" in done.stderr
    assert "jinja2" not in done.stderr
    assert "polymnia.web" not in done.stderr


def test_a_server_without_visitors_loads_no_page() -> None:
    script = "import sys, polymnia.web, polymnia.transports.http.serve; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    shown = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    ).stdout.split()
    assert "polymnia.web" in shown
    assert not {"jinja2", "polymnia.web.page"} & set(shown)


def test_the_pages_need_no_package_of_an_extra() -> None:
    optional = ["argon2", "cryptography", "jwt", "numpy", "onnxruntime", "opentelemetry", "psycopg"]
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({optional}))\n"
        "from importlib import import_module\n"
        "import polymnia.web.site, polymnia.web.pages\n"
        "for name in polymnia.web.pages.MODULES: import_module(f'polymnia.web.pages.{name}')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_read_only_interface_writes_nothing(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    open_store(store).close()
    command = polymnia_command("ui", "--no-browser", "--read-only", "--store", store)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
    ) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        guest = visitor(link)
        guest.get(path(link))
        assert "This machine, may read" in guest.get("/ui/more").words
        process.terminate()
