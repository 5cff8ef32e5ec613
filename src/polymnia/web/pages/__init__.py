"""The table of pages. A page is one row here, one module in this package and one folder in `templates/`."""

from polymnia.web.routes import PageSpec

PAGES = (
    PageSpec(key="search", title="Search", path="/", icon="search", group="Memory", in_tabs=True),
    PageSpec(key="more", title="More", path="/more", icon="more"),
    PageSpec(key="undo", title="Undo", path="/undo", icon="undo"),
    PageSpec(key="login", title="Log in", path="/login", icon="key"),
)
