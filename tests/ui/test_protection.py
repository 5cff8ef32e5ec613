"""What protects the web interface.

Foreign pages, forged forms, the content policy, capabilities and workspaces.
"""

from collections.abc import Iterator
from importlib import import_module

import pytest

from polymnia.engine.workspaces import open_workspaces
from polymnia.web.page import HANDLERS, Handler
from polymnia.web.pages import MODULES
from tests.transports.running import Running
from tests.ui.client import Visitor, make_token, serve


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a directory with two workspaces."""
    url = f"{tmp_path_factory.mktemp('ui')}/"
    workspaces = open_workspaces(url)
    for name in ("harbour", "payroll"):
        workspaces.create(name)
    workspaces.close()
    return url


@pytest.fixture(scope="module")
def tokens(store: str) -> dict[str, str]:
    return {
        "writer": make_token(store, "writer", "write"),
        "reader": make_token(store, "reader", "read"),
        "limited": make_token(store, "limited", "write", ("harbour",)),
    }


@pytest.fixture(scope="module")
def server(store: str, tokens: dict[str, str]) -> Iterator[Running]:
    with serve(store) as running:
        yield running


@pytest.fixture
def writer(server: Running, tokens: dict[str, str]) -> Visitor:
    return logged_in(server, tokens["writer"])


def logged_in(server: Running, token: str) -> Visitor:
    visitor = Visitor(server.port)
    visitor.log_in(token)
    return visitor


def test_a_form_with_the_token_of_another_session_is_refused(
    server: Running, tokens: dict[str, str]
) -> None:
    one, other = logged_in(server, tokens["writer"]), logged_in(server, tokens["writer"])
    assert one.post_once("/ui/logout", token=other.get("/ui/more").form_token).status == 403


def test_another_sites_script_cannot_read_a_page(writer: Visitor) -> None:
    assert writer.get("/ui/more", Origin="https://elsewhere.example").status == 403
    assert "access-control-allow-origin" not in writer.get("/ui/more").headers


def test_every_answer_has_a_strict_policy(writer: Visitor) -> None:
    for path in ("/ui/", "/ui/more", "/ui/login", "/ui/nothing", "/ui/static/x/ui.js"):
        headers = writer.get(path, follow=False).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_pages_are_not_kept_and_files_are(writer: Visitor) -> None:
    page = writer.get("/ui/more")
    assert page.headers["cache-control"] == "no-store"
    style = page.text.split('rel="stylesheet" href="')[1].split('"')[0]
    assert "immutable" in writer.get(style).headers["cache-control"]
    stale = writer.get("/ui/static/0000000000000000/polymnia.css")
    assert (stale.status, stale.headers["cache-control"]) == (200, "no-store")


def test_long_answers_are_compressed_for_those_who_ask(writer: Visitor) -> None:
    page = writer.get("/ui/more")
    style = page.text.split('rel="stylesheet" href="')[1].split('"')[0]
    for path in ("/ui/more", style):
        plain, packed = writer.get(path), writer.get(path, Accept_Encoding="gzip")
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.text) * 3 < len(plain.text)
        assert "Accept-Encoding" in packed.headers["vary"]


def test_only_files_of_the_interface_are_served(writer: Visitor) -> None:
    for path in ("../site.py", "%2e%2e/site.py", "/etc/passwd", ""):
        assert writer.get(f"/ui/static/x/{path}").status == 404


def test_pages_have_no_inline_script_or_style(writer: Visitor) -> None:
    text = writer.get("/ui/").text
    assert "<script>" not in text
    assert "style=" not in text
    assert " on" not in {part[:3] for part in text.split('"')}


def _routes(method: str) -> list[Handler]:
    for module in MODULES:
        import_module(f"polymnia.web.pages.{module}")
    return [handler for handler in HANDLERS if handler.method == method and not handler.is_public]


def test_every_route_that_writes_refuses_forgery(writer: Visitor) -> None:
    token = writer.get("/ui/more").form_token
    own = {"Origin": writer.origin}
    pages = {handler.path for handler in _routes("GET")}
    for handler in _routes("POST"):
        path = f"/ui{handler.path}"
        form = {"form_token": token, "w": "harbour"}
        statuses = [
            writer.post_raw(path, {"w": "harbour"}, **own).status,
            writer.post_raw(path, {**form, "form_token": "0" * 64}, **own).status,
            writer.post_raw(path, form, Origin="https://elsewhere.example").status,
            writer.post_raw(path, form, Origin="null").status,
            writer.post_raw(path, form, Origin="http://127.0.0.1:1").status,
            writer.post_raw(path, form).status,
        ]
        assert statuses == [403] * 6, path
        plain = {"Content-Type": "text/plain", **own}
        assert writer.post_raw(path, form, **plain).status in (400, 403), path
        if handler.path not in pages:
            assert writer.get(path).status in (404, 405), path


def test_every_route_keeps_to_capabilities_and_workspaces(
    server: Running, tokens: dict[str, str]
) -> None:
    reader, limited = (logged_in(server, tokens[name]) for name in ("reader", "limited"))
    for handler in _routes("POST"):
        path = f"/ui{handler.path}"
        if handler.needs != "read":
            assert reader.post_once(path, w="harbour").status == 403, path
        if handler.path not in ("/logout", "/look"):
            assert limited.post_once(path, w="payroll").status in (400, 403), path
    for handler in _routes("GET"):
        shown = limited.get(f"/ui{handler.path}?w=payroll&name=x&key=x&q=x&client=x&id=1")
        assert shown.status in (200, 400, 403, 404), handler.path
        assert "payroll" not in shown.text or shown.status == 403, handler.path


def test_an_unknown_page_is_not_found(writer: Visitor) -> None:
    shown = writer.get("/ui/nothing")
    assert (shown.status, "There is no such page" in shown.words) == (404, True)
    assert 'href="/ui/"' in shown.text
    assert writer.post_once("/ui/").status == 405


def test_refusals_are_pages(writer: Visitor) -> None:
    shown = writer.post_once("/ui/undo", token="forged")
    assert shown.headers["content-type"].startswith("text/html")
    assert "The page is out of date: reload it and try again" in shown.words
    assert shown.headers["cache-control"] == "no-store"


def test_a_text_has_a_greatest_length(writer: Visitor) -> None:
    for size, status in ((1_048_577, 400), (5_000_000, 413)):
        shown = writer.post_once("/ui/entity/observe", name="Elena", text="x" * size)
        assert shown.status == status
    assert "too large" in shown.words


def test_the_address_of_the_server_leads_browsers_to_the_interface(writer: Visitor) -> None:
    shown = writer.get("/", follow=False, Accept="text/html,*/*")
    assert (shown.status, shown.headers["location"]) == (303, "/ui/")
    assert writer.get("/", follow=False, Accept="application/json").status == 404


def test_a_stranger_may_not_send_much(server: Running) -> None:
    stranger = Visitor(server.port)
    shown = stranger.post_raw("/ui/login", {"token": "x" * 200_000}, Origin=stranger.origin)
    assert shown.status == 413


def test_a_malformed_request_is_refused_with_a_reason(writer: Visitor) -> None:
    for shown in (
        writer.get("/ui/?q=%ff"),
        writer.get("/ui/?before=x"),
        writer.post("/ui/undo", change="x"),
    ):
        assert shown.status == 400
        assert "expected" in shown.text


def test_only_forms_are_read(writer: Visitor) -> None:
    for kind in ("text/plain", "multipart/form-data; boundary=XX", ""):
        headers = {"Content-Type": kind, "Origin": writer.origin}
        assert writer.post_raw("/ui/undo", {"change": "1"}, **headers).status == 400


def test_the_log_names_pages_and_nothing_that_clients_chose(
    server: Running, writer: Visitor
) -> None:
    writer.get("/ui/more?secret=1")
    writer.get("/ui/something-secret")
    assert "secret" not in server.log
