"""Templates: Jinja2 with everything escaped, and the static files that pages refer to."""

import mimetypes
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from polymnia import __version__
from polymnia.search.terms import count_noun
from polymnia.web import text
from polymnia.web.changes import burst_names, bursts
from polymnia.web.page import PageSpec

if TYPE_CHECKING:
    from polymnia.web.page import Page

_STATIC = Path(__file__).with_name("static")
# The registry of Windows often has another type for scripts, which browsers then refuse.
mimetypes.add_type("text/javascript", ".js")


class Assets(StaticFiles):
    """The static files. One hash of all is in their addresses, so browsers may keep them."""

    def __init__(self) -> None:
        super().__init__(directory=_STATIC)
        digest = sha256()
        for path in sorted(_STATIC.rglob("*.*")):
            content = path.read_bytes()
            digest.update(b"%b\0%d\0%b" % (path.name.encode(), len(content), content))
        self.version = digest.hexdigest()[:16]

    def address(self, name: str) -> str:
        """Return the path of a file below the web interface. Raise KeyError if there is none."""
        if not (_STATIC / name).is_file():
            raise KeyError(name)
        return f"/static/{self.version}/{name}"

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        scope = args[2] if len(args) > 2 else options["scope"]
        # A page from before an upgrade must not cache the new file under the old address.
        if scope["path_params"]["version"] == self.version:
            response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


class Templates:
    """The templates in `templates/`, compiled when they are first used. Thread-safe."""

    def __init__(self, root: str, pages: tuple[PageSpec, ...]) -> None:
        self.assets = Assets()
        self.pages = pages
        self._environment = Environment(
            loader=PackageLoader("polymnia.web"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            # Control characters become visible, unless the filter `exact` says otherwise.
            finalize=_show,
        )
        self._environment.filters |= _FILTERS
        self._environment.globals |= {
            "asset": lambda name: f"{root}{self.assets.address(name)}",
            "page_specs": {spec.key: spec for spec in pages},
            "version": __version__,
        }

    def render(self, template: str, page: "Page", /, **values: Any) -> str:
        """Render a template. It sees `page`, `url` and its own values."""
        navigation = [spec for spec in self.pages if page.may(spec.needs)]
        shared = {"page": page, "url": page.url, "navigation": navigation}
        return self._environment.get_template(template).render({"toast": None, **values, **shared})


def _show(value: Any) -> Any:
    is_plain = isinstance(value, str) and not hasattr(value, "__html__")
    return text.visible(value) if is_plain else value


def _time(at: int, shown: str) -> Markup:
    """Return a time as HTML, with the full date in the title."""
    moment = text.moment(at)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%Y-%m-%d %H:%M:%S %Z"), shown
    )


_FILTERS = {
    "groupby_day": lambda rows: [
        (day, list(changes)) for day, changes in groupby(rows, key=lambda row: text.day(row.at))
    ],
    "bursts": bursts,
    "burst_names": burst_names,
    "capital": lambda sentence: sentence[:1].upper() + sentence[1:],
    "exact": text.exact,
    "excerpt": text.excerpt,
    "is_long": text.is_long,
    "text_size": text.text_size,
    "size": text.size,
    "mark": text.mark,
    "code_spans": text.code_spans,
    "type_number": text.type_number,
    "client_name": text.client_name,
    "token_name": text.token_name,
    "age": lambda at: _time(at, text.age(at)) if at else "",
    "clock": lambda at: _time(at, text.clock(at)),
    "clock_or_day": lambda at: _time(at, text.clock_or_day(at)),
    "day": text.day,
    "plural": count_noun,
    "quote_shell": quote,
}
