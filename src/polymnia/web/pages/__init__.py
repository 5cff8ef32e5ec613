"""The table of pages in the navigation, and the modules that answer requests."""

from polymnia.web.page import PageSpec

# Each has a folder of its name in `templates/`.
MODULES = (
    "access",
    "curation",
    "entities",
    "entity",
    "facts",
    "graph",
    "health",
    "history",
    "imports",
    "login",
    "search",
    "selection",
    "start",
)
PAGES = (
    PageSpec(key="search", title="Search", path="/", icon="search", group="Memory", in_tabs=True),
    PageSpec(
        key="history", title="History", path="/history", icon="clock", group="Memory", in_tabs=True
    ),
    PageSpec(key="graph", title="Graph", path="/graph", icon="graph", group="Memory", in_tabs=True),
    PageSpec(
        key="curation",
        title="Curation",
        path="/curation",
        icon="tidy",
        group="Memory",
        in_tabs=True,
    ),
    PageSpec(key="imports", title="Import", path="/import", icon="swap", group="Server"),
    PageSpec(
        key="access", title="Access", path="/access", icon="key", group="Server", needs="admin"
    ),
    PageSpec(key="health", title="Health", path="/health", icon="health", group="Server"),
    PageSpec(key="more", title="More", path="/more", icon="more"),
)
