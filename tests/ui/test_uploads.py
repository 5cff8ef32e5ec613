"""Uploads without a browser: forms in pieces, names that lead elsewhere, and who may send them."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.errors import BadInput, Refused
from polymnia.web.imports import Upload, UploadForm, safe_parts
from polymnia.web.page import Fields
from tests.transports.running import Running
from tests.ui.client import Visitor, make_token, serve

BODY = (
    b'--XX\r\nContent-Disposition: form-data; name="note"\r\n\r\n\xc3\xa9\r\n'
    b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a; b%22.bin"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\n\x00\r\n--X\r\n\r\n--XX--\r\nignored"
)


def form(content_type: str = "multipart/form-data; boundary=XX") -> UploadForm:
    return UploadForm(content_type, lambda fields: None)


@given(st.lists(st.integers(0, len(BODY)), max_size=12))
def test_a_form_is_the_same_in_any_pieces(cuts: list[int]) -> None:
    parser = form()
    ends = [0, *sorted(cuts), len(BODY)]
    for start, end in pairwise(ends):
        parser.feed(BODY[start:end])
    upload = parser.finish()
    assert upload.fields.multi_items() == [("note", "é")]
    assert (upload.path.name, upload.path.read_bytes()) == ('a; b".bin', b"\x00\r\n--X\r\n")
    upload.close()


@pytest.mark.parametrize(
    "body", [b"", BODY[:-20], b"x" * 100_000, b"--XX\r\nno name\r\n\r\nx\r\n--XX--", b"--XXother"]
)
def test_a_form_that_is_not_one_is_refused(body: bytes) -> None:
    parser = form()
    with pytest.raises(BadInput):
        parser.feed(body)
        parser.finish()
    parser.close()


@pytest.mark.parametrize(
    "header", [f"X: {'x' * 100_000}", "\r\n".join(f"X-{number}: 1" for number in range(100))]
)
def test_the_head_of_a_part_is_bounded(header: str) -> None:
    parser = form()
    with pytest.raises(BadInput):
        parser.feed(f"--XX\r\n{header}\r\n".encode())
    parser.close()


def test_a_field_beside_files_is_bounded() -> None:
    parser = form()
    parser.feed(b'--XX\r\nContent-Disposition: form-data; name="note"\r\n\r\n')
    with pytest.raises(BadInput, match="note is too long"):
        for _ in range(3):
            parser.feed(b"x" * (1 << 20))
    parser.close()


def test_no_file_is_kept_before_the_form_is_checked() -> None:
    def refuse(fields: Fields) -> None:
        raise Refused(403, "forged")

    parser = UploadForm("multipart/form-data; boundary=XX", refuse)
    with pytest.raises(Refused):
        parser.feed(BODY)
    assert parser.upload.files == 0
    parser.close()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("../../etc/passwd", ("etc", "passwd")),
        ("/etc/passwd", ("etc", "passwd")),
        ("C:\\notes\\a.txt", ("C:", "notes", "a.txt")),
        ("a\x00\nb", ("a__b",)),
        ("..", ("file",)),
        ("", ("file",)),
    ],
)
def test_no_name_leads_out_of_the_directory(name: str, parts: tuple[str, ...]) -> None:
    assert safe_parts(name) == parts


@given(st.text(max_size=400))
def test_every_name_can_be_written(name: str) -> None:
    upload = Upload()
    with upload.new_file(name) as file:
        file.write(b"x")
    root = Path(upload._directory.name)
    assert [path.read_bytes() for path in root.rglob("*") if path.is_file()] == [b"x"]
    upload.close()
    assert not root.exists()


def test_an_upload_needs_the_form_token_and_the_right_to_write(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    tokens = {can: make_token(store, can, can) for can in ("read", "write")}
    body = (
        b'--XX\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n%b\r\n'
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="memory.jsonl"\r\n\r\n'
        b'{"type":"entity","name":"Elena","entityType":"person","observations":[]}\r\n--XX--\r\n'
    )
    with serve(store) as server:
        for can, forged, status in (
            ("read", False, 403),
            ("write", True, 403),
            ("write", False, 303),
        ):
            visitor = Visitor(server.port)
            visitor.log_in(tokens[can])
            token = "forged" if forged else visitor.get("/ui/more").form_token
            headers = {"Content-Type": "multipart/form-data; boundary=XX", "Origin": visitor.origin}
            shown = visitor._send("POST", "/ui/import/upload", body % token.encode(), headers)
            assert shown.status == status, (can, forged, shown.text)
        assert "1 entity" in visitor.get(shown.headers["location"]).words


def test_an_upload_ends_with_the_server(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    body = (
        b'--XX\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n%b\r\n'
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
        b'{"type":"entity","name":"Elena","entityType":"person","observations":[]}\r\n--XX--\r\n'
    )
    settings = {"TMPDIR": str(scratch)}
    with Running(str(tmp_path / "memory.db"), dialect="native", settings=settings) as server:
        visitor = Visitor(server.port)
        token = visitor.get("/ui/more").form_token
        headers = {"Content-Type": "multipart/form-data; boundary=XX", "Origin": visitor.origin}
        sent = visitor._send("POST", "/ui/import/upload", body % token.encode(), headers)
        assert sent.status == 303
        assert list(scratch.rglob("a.jsonl"))
        assert server.stop() == 0
    assert list(scratch.iterdir()) == []


def test_a_part_of_the_import_page_can_be_asked_for(visitor: Visitor) -> None:
    assert visitor.get("/ui/import", HX_Request="true").status == 200
