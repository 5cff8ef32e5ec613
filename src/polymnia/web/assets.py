"""The files in `static/`, at addresses that change with their content, so that browsers may keep them forever."""

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from polymnia.web.response import Response

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


class Assets:
    """The static files by their path below `static/`. One hash of all of them is in every address."""

    def __init__(self) -> None:
        self._files = {
            name: data
            for name, data in _read(files("polymnia.web") / "static", "")
            if _suffix(name)
        }
        digest = sha256()
        for name, data in sorted(self._files.items()):
            digest.update(b"%b\0%d\0%b" % (name.encode(), len(data), data))
        self.version = digest.hexdigest()[:16]

    def address(self, name: str) -> str:
        """Return the path of a file below the web interface. Raise KeyError if there is no such file."""
        if name not in self._files:
            raise KeyError(name)
        return f"/static/{self.version}/{name}"

    def find(self, path: str) -> Response | None:
        """Return the file at a path below the web interface; None if there is none."""
        name = path.removeprefix("/static/").partition("/")[2]
        data = self._files.get(name)
        if data is None:
            return None
        is_current = path == self.address(name)
        return Response(
            body=data, headers={"content-type": _suffix(name), **(_FOREVER if is_current else {})}
        )


def _read(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _read(each, f"{prefix}{each.name}/")
        else:
            found.append((prefix + each.name, each.read_bytes()))
    return found


def _suffix(name: str) -> str:
    """Return the media type of a file that may be served; empty for others, such as licences."""
    return _TYPES.get(name[name.rfind(".") :], "")
