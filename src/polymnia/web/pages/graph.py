"""Graph: the best connected entities, or those around one, drawn by `graph.js` or as a table."""

from math import cos, pi, sin

from msgspec import Struct
from msgspec.json import encode
from starlette.responses import Response

from polymnia.engine.graph import traverse
from polymnia.engine.graph.drawing import (
    MAX_NODES,
    MAX_STEPS,
    Drawing,
    draw,
    draw_connected,
)
from polymnia.engine.graph.entities import open_named
from polymnia.engine.recall.passages import recall
from polymnia.errors import EntityNotFound
from polymnia.web.page import ROWS, Fields, Page, get, post
from polymnia.web.text import TYPE_NUMBERS, type_number, visible

# How many entities the page starts with, and how many hits of a search a drawing starts with.
MAX_FIRST, MAX_HITS = 60, 30
# Longer names and labels are shortened in the drawing.
MAX_LABEL = 60
# Relation types that the filter lists.
MAX_TYPES = 40


class View(Struct, frozen=True):
    """What to draw: the address says where to start, the script adds what is on the screen.

    Without names, words and a path it is the `count` best connected entities.
    """

    names: tuple[str, ...] = ()
    expand: tuple[str, ...] = ()
    question: str = ""
    path: tuple[str, str] | None = None
    steps: int = 1
    count: int = MAX_FIRST
    kinds: tuple[str, ...] | None = None
    is_exact: bool = False  # nothing is added to the names

    @classmethod
    def of(cls, fields: Fields) -> "View":
        """Return the view that the fields of an address or form describe. Raise BadInput."""
        ends = fields.get("from"), fields.get("to")
        return cls(
            names=tuple(fields.getlist("name")),
            expand=tuple(fields.getlist("expand")),
            question=fields.get("q").strip(),
            path=ends if all(ends) else None,
            steps=min(fields.number("steps") or 1, MAX_STEPS),
            count=min(fields.number("count") or MAX_FIRST, MAX_NODES),
            kinds=tuple(fields.getlist("kind")) if "kind" in fields else None,
            is_exact="exact" in fields,
        )

    @property
    def is_overview(self) -> bool:
        return not (self.names or self.expand or self.question or self.path)


@get("/graph")
def show(page: Page) -> Response:
    """Show the page with the first part of the table; the script asks for the drawing."""
    view = View.of(page.query)
    drawing, title, route = _draw(page, view)
    start = page.query.number("after") or 0
    return page.render(
        "graph/page.html",
        view=view,
        drawing=drawing,
        title=title,
        route=route,
        nodes=drawing.nodes[start : start + ROWS],
        following=start + ROWS if start + ROWS < len(drawing.nodes) else None,
        kinds=drawing.types[:MAX_TYPES],
        limit=MAX_NODES,
    )


@post("/graph/data", needs="read")
def data(page: Page) -> Response:
    """Return what to draw as JSON, in numbers: a name is long and occurs in many relations."""
    drawing, title, route = _draw(page, View.of(page.form))
    place = {node.entity.name: number for number, node in enumerate(drawing.nodes)}
    types = list(dict.fromkeys(node.entity.type for node in drawing.nodes))
    kinds = list(dict.fromkeys(relation.type for relation in drawing.relations))
    nodes = []
    for node in drawing.nodes:
        nodes.append((node.entity.name, types.index(node.entity.type), node.hidden))
    edges = []
    for relation in drawing.relations:
        ends = place[relation.source], place[relation.target]
        edges.append((*ends, kinds.index(relation.type)))
    # The first ten types have colours of their own; the legend says which.
    numbers: dict[str, int] = {}
    for kind in types:
        number = type_number(kind)
        while number in numbers.values() and len(numbers) < TYPE_NUMBERS:
            number = number % TYPE_NUMBERS + 1
        numbers[kind] = number
    content = {
        "nodes": nodes,
        "types": [(_short(kind), numbers[kind]) for kind in types],
        "edges": edges,
        "kinds": [_short(kind) for kind in kinds],
        "relation_types": [(kind.type, kind.count) for kind in drawing.types[:MAX_TYPES]],
        "entities": drawing.entities,
        "cut": drawing.is_cut,
        "title": title[:MAX_LABEL],
        "path": route.names if route else [],
    }
    return Response(encode(content), media_type="application/json")


def _draw(page: Page, view: View) -> tuple[Drawing, str, traverse.Route | None]:
    """Return what a view draws, what it is called, and the path that was asked for."""
    if view.is_overview:
        return draw_connected(page.memory, view.count, kinds=view.kinds), "", None
    names, expand, title, route = list(view.names), list(view.expand), "", None
    if view.path:
        route = traverse.shortest_path(page.memory, *view.path)
        names += route.names or view.path
        title = f"{view.path[0]} to {view.path[1]}"
    if view.question:
        hits = recall(page.memory, view.question, limit=MAX_HITS).hits
        names += [hit.passage.entity for hit in hits if hit.passage.kind != "note"]
        title = view.question
    if len(view.names) == 1 and not (expand or title or view.is_exact):
        expand, title = list(view.names), view.names[0]
    drawing = draw(page.memory, names, expand=expand, steps=view.steps, kinds=view.kinds)
    if len(view.names) == 1 and not drawing.nodes:
        raise EntityNotFound(view.names[0])
    return drawing, title, route


@get("/graph/panel")
def panel(page: Page) -> Response:
    """Show the facts of the selected entity."""
    name = page.query["name"]
    graph = open_named(page.memory, [name])
    if not graph.entities:
        raise EntityNotFound(name)
    entity = graph.entities[0]
    return page.render(
        "graph/panel_page.html",
        fragment="graph/panel.html",
        entity=entity,
        facts=entity.facts[::-1][:3],
        relations=len(graph.relations),
    )


@get("/graph/mini")
def mini(page: Page) -> Response:
    """Show the entities around one as a small picture of 264 x 168: a part of its page."""
    name = page.query["name"]
    drawing = draw(page.memory, [], expand=[name], added=12)
    if not drawing.nodes:
        raise EntityNotFound(name)
    centre, *others = drawing.nodes
    around = []
    for number, other in enumerate(others):
        angle = 2 * pi * number / len(others) - pi / 2
        place = round(132 + 92 * cos(angle)), round(80 + 56 * sin(angle))
        around.append((other.entity, *place))
    return page.render(
        "graph/mini_page.html",
        fragment="graph/mini.html",
        centre=centre.entity,
        hidden=centre.hidden,
        around=around,
    )


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "\u2026"
