"""Attacks that were tried by hand on a running server, one test for each line of the table.

Forgery, rights and workspaces are tried on every route in test_protection.py, uploads in
test_uploads.py, stored scripts in tests/web/test_every_page.py.
"""

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest

from polymnia.engine.graph import entities
from polymnia.engine.workspaces import open_workspaces
from polymnia.model import EntityDraft
from tests.transports.running import Running
from tests.ui.client import Visitor, make_token, serve

SECRET = "salary of Mara is 4711"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a directory with a workspace for all users and a private one."""
    url = f"{tmp_path_factory.mktemp('attacks')}/"
    with closing(open_workspaces(url)) as workspaces:
        for name, text in (("harbour", "Redis keeps sessions"), ("payroll", SECRET)):
            workspaces.create(name)
            draft = EntityDraft("Mara", "person", (text,))
            entities.create(workspaces.memory(name), [draft], by="codex")
    return url


@pytest.fixture(scope="module")
def server(store: str) -> Iterator[Running]:
    with serve(store) as running:
        yield running


@pytest.fixture(scope="module")
def writer(server: Running, store: str) -> Visitor:
    return logged_in(server, make_token(store, "writer", "write"))


@pytest.fixture(scope="module")
def limited(server: Running, store: str) -> Visitor:
    return logged_in(server, make_token(store, "limited", "admin", ("harbour",)))


def logged_in(server: Running, token: str) -> Visitor:
    visitor = Visitor(server.port)
    visitor.log_in(token)
    return visitor


def test_a_session_is_new_at_login(server: Running, store: str) -> None:
    visitor = Visitor(server.port)
    name = f"polymnia_{server.port}"
    visitor.cookies[name] = "chosen-by-somebody-else"
    visitor.log_in(make_token(store, "fixed", "read"))
    assert visitor.cookies[name] != "chosen-by-somebody-else"
    assert visitor.get("/ui/more").status == 200


def test_a_selection_reaches_no_other_workspace(limited: Visitor) -> None:
    pick = "entity\t0\tMara"
    for action in ("delete", "move", "tag", "type", "merge"):
        fields = {"action": action, "pick": pick, "w": "payroll", "tags": "x"}
        fields |= {"type": "x", "target": "Mara", "keep": "Mara"}
        assert limited.post("/ui/selection", **fields).status == 403, action
        assert limited.post("/ui/selection/apply", **fields).status in (400, 403), action


def test_no_page_shows_another_workspace_to_a_limited_token(limited: Visitor) -> None:
    paths = (
        "/ui/?q=salary",
        "/ui/?q=salary&all=1",
        "/ui/why?q=salary&wanted=Mara",
        "/ui/start/wait",
        "/ui/entities?sort=said",
        "/ui/entity?name=Mara",
        "/ui/export?format=json",
        "/ui/entity?name=Mara&at=2100-01-01",
        "/ui/history",
        "/ui/history?trash=1",
        "/ui/entities",
        "/ui/access",
        "/ui/health",
        "/ui/import",
        "/ui/more",
        "/ui/curation",
        "/ui/graph",
    )
    for path in paths:
        shown = limited.get(path)
        assert shown.status == 200, path
        assert SECRET not in shown.text, path
        joint = "&" if "?" in path else "?"
        assert SECRET not in limited.get(f"{path}{joint}w=payroll").text, path


def test_nothing_outside_is_read_by_a_name(writer: Visitor) -> None:
    for path in (
        "/ui/import/report?id=../../etc/passwd",
        "/ui/export?format=../../etc/passwd",
        "/ui/export?format=json&w=../../etc",
        "/ui/entities/export?format=/etc/passwd",
        "/ui/static/../../../../etc/passwd",
        "/ui/static/x/..%2f..%2f..%2fetc%2fpasswd",
    ):
        shown = writer.get(path)
        assert shown.status in (400, 403, 404), path
        assert "root:" not in shown.text


def test_another_session_does_not_see_an_import(server: Running, store: str) -> None:
    one, other = (logged_in(server, make_token(store, name, "write")) for name in ("one", "other"))
    body = (
        '--XX\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n'
        f"{one.get('/ui/more').form_token}\r\n--XX\r\nContent-Disposition: form-data; "
        'name="file"; filename="a.jsonl"\r\n\r\n'
        '{"type":"entity","name":"Ann","entityType":"person","observations":["x"]}\r\n--XX--\r\n'
    )
    headers = {"Content-Type": "multipart/form-data; boundary=XX", "Origin": one.origin}
    shown = one._send("POST", "/ui/import/upload", body.encode(), headers)
    address = shown.headers["location"]
    assert "Ann" in one.get(address).words
    assert other.get(address).status == 400


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1.elsewhere.example"])
def test_a_name_that_resolves_here_by_dns_is_refused(writer: Visitor, host: str) -> None:
    assert writer.get("/ui/", Host=f"{host}:{writer.port}").status == 421


@pytest.mark.parametrize(
    "question",
    [
        '"unbalanced',
        "a AND OR NOT",
        "name:* NEAR(x, 3)",
        "'; DROP TABLE cards; --",
        "\0",
        "*" * 50,
        "(" * 200,
        "x" * 5_000,
        "{{7*7}} ${7*7} <%= 7*7 %>",
        "\u202e\u200b\ufeff",
    ],
)
def test_an_odd_question_is_only_a_question(writer: Visitor, question: str) -> None:
    for fields in ("", "&at=2100-01-01", "&all=1"):
        shown = writer.get(f"/ui/?q={quote(question)}{fields}")
        assert shown.status == 200


def test_a_question_of_great_length_is_refused(writer: Visitor) -> None:
    assert writer.get(f"/ui/?q={'x' * 200_000}").status == 431


def test_a_limited_admin_manages_no_other_workspace(limited: Visitor) -> None:
    for path, fields in (
        ("create", {"name": "new"}),
        ("delete", {"name": "payroll", "typed": "payroll"}),
        ("rename", {"name": "payroll", "new": "mine"}),
        ("archive", {"name": "payroll"}),
    ):
        assert limited.post(f"/ui/access/workspaces/{path}", **fields).status in (403, 404), path


def test_the_cookie_is_secure_where_the_public_address_is(store: str) -> None:
    settings = {"POLYMNIA_PUBLIC_URL": "https://memory.example"}
    with Running(store, dialect="native", settings=settings) as running:
        visitor = Visitor(running.port)
        shown = visitor.log_in(make_token(store, "secure", "read"))
        cookie = shown.headers.get("set-cookie", "")
        assert "Secure" in cookie
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
