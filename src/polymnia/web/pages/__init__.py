"""The table of pages in the navigation, and the modules that answer requests."""

from polymnia.web.page import PageSpec

# Each has a folder of its name in `templates/`.
MODULES = (
    "access",
    "agents",
    "curation",
    "entities",
    "entity",
    "facts",
    "graph",
    "health",
    "history",
    "imports",
    "live",
    "login",
    "look",
    "moments",
    "new",
    "palette",
    "playground",
    "search",
    "selection",
    "start",
    "timeline",
)
PAGES = (
    PageSpec(key="search", title="Search", path="/", icon="search", group="Memory", in_tabs=True),
    PageSpec(
        key="history", title="History", path="/history", icon="clock", group="Memory", in_tabs=True
    ),
    PageSpec(key="live", title="Live", path="/live", icon="live", group="Memory"),
    PageSpec(key="graph", title="Graph", path="/graph", icon="graph", group="Memory", in_tabs=True),
    PageSpec(key="timeline", title="Timeline", path="/timeline", icon="calendar", group="Memory"),
    PageSpec(key="agents", title="Agents", path="/agents", icon="agent", group="Memory"),
    PageSpec(
        key="curation",
        title="Curation",
        path="/curation",
        icon="tidy",
        group="Improve",
        in_tabs=True,
    ),
    PageSpec(
        key="playground", title="Playground", path="/playground", icon="play", group="Improve"
    ),
    PageSpec(key="imports", title="Import and export", path="/import", icon="swap", group="Run"),
    PageSpec(key="access", title="Access", path="/access", icon="key", group="Run", needs="admin"),
    PageSpec(key="health", title="Health", path="/health", icon="health", group="Run"),
    PageSpec(key="more", title="More", path="/more", icon="more"),
)
