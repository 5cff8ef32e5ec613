"""The table of pages. A page is one row here, one module in this package and one folder in `templates/`."""

from polymnia.web.routes import PageSpec

PAGES = (
    PageSpec(key="search", title="Search", path="/", icon="search", group="Memory", in_tabs=True),
    PageSpec(
        key="history", title="History", path="/history", icon="clock", group="Memory", in_tabs=True
    ),
    PageSpec(key="live", title="Live", path="/live", icon="live", group="Memory", in_tabs=True),
    PageSpec(key="graph", title="Graph", path="/graph", icon="graph", group="Memory", in_tabs=True),
    PageSpec(
        key="playground", title="Playground", path="/playground", icon="play", group="Improve"
    ),
    PageSpec(key="curation", title="Curation", path="/curation", icon="tidy", group="Improve"),
    PageSpec(key="imports", title="Import and export", path="/import", icon="swap", group="Run"),
    PageSpec(key="access", title="Access", path="/access", icon="key", group="Run", needs="admin"),
    PageSpec(key="health", title="Health", path="/health", icon="health", group="Run"),
    PageSpec(key="entity", title="Entity", path="/entity", icon="search"),
    PageSpec(key="facts", title="Facts", path="/fact", icon="edit"),
    PageSpec(key="selection", title="Selection", path="/selection", icon="check"),
    PageSpec(key="more", title="More", path="/more", icon="more"),
    PageSpec(key="undo", title="Undo", path="/undo", icon="undo"),
    PageSpec(key="login", title="Log in", path="/login", icon="key"),
)
