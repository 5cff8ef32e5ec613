"""Uploads without a browser: forms in pieces, names that lead elsewhere, and who may send them."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.errors import BadInput
from polymnia.web.multipart import MultipartParser, parse_boundary
from polymnia.web.uploads import Upload, safe_parts
from tests.ui.client import Visitor, make_token, serve

BODY = (
    b'--XX\r\nContent-Disposition: form-data; name="note"\r\n\r\n\xc3\xa9\r\n'
    b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a; b%22.bin"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\n\x00\r\n--X\r\n\r\n--XX--\r\nignored"
)


class Parts:
    """Collects the parts of a form."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}
        self._name = ""

    def field(self, name: str, value: str) -> None:
        self.fields.append((name, value))

    def open_file(self, name: str) -> None:
        self._name = name
        self.files[name] = b""

    def write(self, data: bytes) -> None:
        self.files[self._name] += data

    def close_file(self) -> None:
        self._name = ""


@given(st.lists(st.integers(0, len(BODY)), max_size=12))
def test_a_form_is_the_same_in_any_pieces(cuts: list[int]) -> None:
    parts = Parts()
    parser = MultipartParser(b"XX", parts)
    ends = [0, *sorted(cuts), len(BODY)]
    for start, end in pairwise(ends):
        parser.feed(BODY[start:end])
    parser.finish()
    assert (parts.fields, parts.files) == ([("note", "é")], {'a; b".bin': b"\x00\r\n--X\r\n"})


@pytest.mark.parametrize(
    "body", [b"", BODY[:-20], b"x" * 100_000, b"--XX\r\nno name\r\n\r\nx\r\n--XX--", b"--XXother"]
)
def test_a_form_that_is_not_one_is_refused(body: bytes) -> None:
    parser = MultipartParser(b"XX", Parts())
    with pytest.raises(BadInput):
        parser.feed(body)
        parser.finish()


def test_only_forms_with_files_have_a_boundary() -> None:
    assert parse_boundary('multipart/form-data; boundary="a b"') == b"a b"
    assert parse_boundary("multipart/form-data") is None
    assert parse_boundary("application/x-www-form-urlencoded; boundary=x") is None


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
    assert [each.read_bytes() for each in root.rglob("*") if each.is_file()] == [b"x"]
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
