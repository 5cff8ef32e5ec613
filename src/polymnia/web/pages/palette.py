"""Go to: one box for entities, actions, agents, saved questions and workspaces."""

from msgspec import Struct
from starlette.responses import Response

from polymnia.engine.history.changes import all_actors
from polymnia.engine.recall.names import names_containing
from polymnia.errors import PolymniaError
from polymnia.model import split_actor
from polymnia.search.terms import fold
from polymnia.web.page import Page, get

# Entities that are listed of each workspace, and workspaces that are asked besides the chosen one.
_MAX_NAMES = 5
_MAX_OTHERS = 7
_MAX_QUESTIONS = 5
_MAX_AGENTS = 8
# A first character that limits the list to one group.
_PREFIXES = {">": "Actions", "@": "Agents", ":": "Workspaces"}


class Target(Struct, frozen=True):
    """A row of the list: what it is called, where it leads, and what is said beside it."""

    title: str
    url: str
    icon: str = ""
    type: str = ""
    about: str = ""


@get("/goto")
def show(page: Page) -> Response:
    """List what matches the words, by group."""
    typed = page.query.get("q").strip()
    only = _PREFIXES.get(typed[:1], "")
    words = fold(typed[1:].strip()) if only else fold(typed)
    groups: dict[str, list[Target]] = {}
    if words and not only:
        groups["Entities"] = _entities(page, typed)
    groups["Actions"] = _actions(page, words)
    if words or only:
        groups["Agents"] = _agents(page, words)
    if words:
        groups["Saved questions"] = _questions(page, words)
    groups["Workspaces"] = _workspaces(page, words)
    shown = {}
    for title, targets in groups.items():
        if targets and only in ("", title):
            shown[title] = targets
    return page.render(
        "palette/page.html", fragment="palette/options.html", groups=shown, typed=typed
    )


def _entities(page: Page, typed: str) -> list[Target]:
    others = [name for name in page.workspaces if name != page.chosen]
    workspaces = others[:_MAX_OTHERS]
    if page.chosen:
        workspaces.insert(0, page.chosen)
    targets = []
    for workspace in workspaces:
        try:
            entities = names_containing(page.memory_of(workspace), typed, _MAX_NAMES)
        except PolymniaError:  # archived meanwhile: the others still answer
            continue
        for entity in entities:
            url = page.url("/entity", name=entity.name, w=workspace)
            about = workspace if workspace != page.chosen else ""
            targets.append(Target(entity.name, url, type=entity.type, about=about))
    return targets


def _actions(page: Page, words: str) -> list[Target]:
    targets = []
    if page.may("write") and page.chosen:
        targets.append(Target("Add an entity", page.url("/new"), "plus"))
    for spec in page.site.templates.pages:
        if page.may(spec.needs):
            targets.append(Target(f"Open {spec.title}", page.url(spec.path), spec.icon))
    return [target for target in targets if words in fold(target.title)]


def _agents(page: Page, words: str) -> list[Target]:
    if not page.chosen or not page.memory.store.capabilities.history:
        return []
    clients = dict.fromkeys(split_actor(actor)[0] for actor in all_actors(page.memory))
    targets = []
    for client in clients:
        if words in fold(client):
            targets.append(Target(client, page.url("/agents/agent", client=client), "agent"))
    return targets[:_MAX_AGENTS]


def _questions(page: Page, words: str) -> list[Target]:
    if not page.chosen:
        return []
    targets = []
    for saved in page.site.state.read(page.chosen).questions:
        if words in fold(saved.question):
            url = page.url("/", q=saved.question)
            targets.append(Target(saved.question, url, "search", about=f"finds {saved.expected}"))
    return targets[:_MAX_QUESTIONS]


def _workspaces(page: Page, words: str) -> list[Target]:
    targets = []
    for name in page.workspaces:
        if words in fold(name) and name != page.chosen:
            targets.append(Target(name, page.url("/", w=name), "box"))
    return targets
