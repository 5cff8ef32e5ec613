"""What a page answers: a status, a body and headers, the same security headers on every one."""

from typing import IO, Any

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

HTML = "text/html; charset=utf-8"
# No inline script, style or eval; nothing from other hosts; no framing.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # `no-referrer` would make browsers send `Origin: null` with forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
# Pages hold what the agents remember: no cache keeps them.
_NOT_STORED = {"cache-control": "no-store", "vary": "HX-Request, Cookie"}


class Response(Struct, frozen=True, kw_only=True):
    """A whole response. `file`, if there is one, is sent instead of the body and then closed."""

    body: bytes = b""
    file: IO[bytes] | None = None
    status: int = 200
    headers: dict[str, str] = {}

    def with_headers(self, headers: dict[str, str]) -> "Response":
        """Return the response with more headers."""
        return replace(self, headers={**self.headers, **headers})

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers to send."""
        return {**SECURITY_HEADERS, **_NOT_STORED, **self.headers}


def html(text: str, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a page or a part of one."""
    return Response(
        body=text.encode(), status=status, headers={"content-type": HTML, **(headers or {})}
    )


def json(value: Any) -> Response:
    """Return a value as JSON."""
    return Response(body=encode(value), headers={"content-type": "application/json"})


def redirect(url: str, *, headers: dict[str, str] | None = None) -> Response:
    """Send the browser to another page, by GET."""
    return Response(status=303, headers={"location": url, **(headers or {})})


def send_file(file: IO[bytes], name: str, content_type: str) -> Response:
    """Return an open file to save. The name must be plain ASCII."""
    headers = {
        "content-type": content_type,
        "content-disposition": f'attachment; filename="{name}"',
    }
    return Response(file=file, headers=headers)


def download(data: bytes, name: str, content_type: str) -> Response:
    """Return a file to save. The name must be plain ASCII."""
    disposition = f'attachment; filename="{name}"'
    return Response(
        body=data, headers={"content-type": content_type, "content-disposition": disposition}
    )
