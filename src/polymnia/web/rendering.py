"""Templates: Jinja2 with everything escaped, control characters visible, and the filters that pages use."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from polymnia import __version__
from polymnia.search.text import count_noun
from polymnia.web import text, times
from polymnia.web.assets import Assets
from polymnia.web.changes import bursts
from polymnia.web.routes import PageSpec

if TYPE_CHECKING:
    from polymnia.web.page import Page


class Templates:
    """The templates in `templates/`, compiled when they are first used. Thread-safe."""

    def __init__(self, root: str, pages: tuple[PageSpec, ...]) -> None:
        self.assets = Assets()
        self._pages = pages
        self._environment = Environment(
            loader=PackageLoader("polymnia.web"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            # Every string is shown with its control characters visible, unless the filter `exact` says otherwise.
            finalize=_show,
        )
        self._environment.filters |= _FILTERS
        self._environment.globals |= {
            "asset": lambda name: f"{root}{self.assets.address(name)}",
            "page_specs": {each.key: each for each in pages},
            "version": __version__,
        }

    def render(self, template: str, page: "Page", /, **values: Any) -> str:
        """Render a template. It sees `page`, `url` and its own values."""
        shown = [each for each in self._pages if page.may(each.needs)]
        return self._environment.get_template(template).render(
            {"toast": None, **values, "page": page, "url": page.url, "navigation": shown}
        )


def _show(value: Any) -> Any:
    return (
        text.visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
    )


def _time(at: int) -> Markup:
    """Return a time as its age, with the full date in the title."""
    if not at:
        return Markup("")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        times.iso(at), times.full(at), times.age(at)
    )


def _clock(at: int) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        times.iso(at), times.full(at), times.clock(at)
    )


def _clock_or_day(at: int) -> Markup:
    shown = times.clock_or_day(at)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        times.iso(at), times.full(at), shown
    )


def _group_by_day(rows: Iterable[Any]) -> list[tuple[tuple[str, str], list[Any]]]:
    """Return rows with a time, in their order, by day."""
    return [
        (heading, list(several))
        for heading, several in groupby(rows, key=lambda row: times.day(row.at))
    ]


_FILTERS = {
    "groupby_day": _group_by_day,
    "bursts": bursts,
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
    "age": _time,
    "clock": _clock,
    "clock_or_day": _clock_or_day,
    "day": times.day,
    "plural": count_noun,
}
