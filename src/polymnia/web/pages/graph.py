"""Graph: clusters, or the entities around one, drawn by `static/graph.js`, with a table for screen readers."""

from math import cos, pi, sin
from typing import Any

from msgspec import Struct

from polymnia.engine import traverse
from polymnia.engine.diagrams import as_dot, as_mermaid
from polymnia.engine.drawing import MAX_NODES, MAX_STEPS, Drawing, draw, drawn_graph
from polymnia.engine.entities import open_named
from polymnia.engine.graph_overview import GraphOverview, Group
from polymnia.engine.recall import recall
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.search.text import count_noun
from polymnia.web.forms import Fields
from polymnia.web.page import ROWS, Page
from polymnia.web.response import Response, download, json
from polymnia.web.routes import Route
from polymnia.web.text import type_number, visible

# How many entities a drawing starts with: hits of a search, and members of a cluster.
MAX_HITS = 30
MAX_MEMBERS = 150
# Longer names and labels are shortened in the drawing.
MAX_LABEL = 60
# Relation types that the filter lists.
MAX_TYPES = 40
_MAX_LEADERS = 8
_MAX_PANEL_FACTS = 3
_EXPORTS = {"mermaid": ("graph.mmd", as_mermaid), "dot": ("graph.dot", as_dot)}


class View(Struct, frozen=True):
    """What to draw: the address says where to start, the script adds what is on the screen.

    Without names, words and a cluster it is the overview.
    """

    names: tuple[str, ...] = ()
    expand: tuple[str, ...] = ()
    question: str = ""
    cluster: int | None = None
    path: tuple[str, str] | None = None
    steps: int = 1
    kinds: tuple[str, ...] | None = None
    is_exact: bool = False  # nothing is added to the names

    @classmethod
    def of(cls, fields: Fields) -> "View":
        """Return the view that the fields of an address or form describe. Raise BadInput."""
        ends = fields.get("from"), fields.get("to")
        return cls(
            names=tuple(fields.all("name")),
            expand=tuple(fields.all("expand")),
            question=fields.get("q").strip(),
            cluster=fields.number("cluster"),
            path=ends if all(ends) else None,
            steps=min(fields.number("steps") or 1, MAX_STEPS),
            kinds=tuple(fields.all("kind")) if "kind" in fields else None,
            is_exact="exact" in fields,
        )

    @property
    def is_overview(self) -> bool:
        return (
            not (self.names or self.expand or self.question or self.path) and self.cluster is None
        )


def show(page: Page) -> Response:
    """Show the page with the first part of the table; the script asks for the drawing."""
    view = View.of(page.query)
    if view.is_overview:
        return _show_overview(page, view)
    drawing, title, route = _drawing(page, view)
    start = page.query.number("after") or 0
    return page.render(
        "graph/page.html",
        view=view,
        overview=None,
        drawing=drawing,
        title=title,
        route=route,
        degrees=_degrees(drawing),
        nodes=drawing.nodes[start : start + ROWS],
        following=start + ROWS if start + ROWS < len(drawing.nodes) else None,
        kinds=drawing.types[:MAX_TYPES],
        limit=MAX_NODES,
    )


def _show_overview(page: Page, view: View) -> Response:
    """Show the groups if they are cached or quickly computed; otherwise the script asks for them."""
    is_asked = "refresh" in page.query
    overviews = page.site.overviews
    found = (
        overviews.find(page.memory, refresh=True) if is_asked else overviews.find_soon(page.memory)
    )
    start = page.query.number("after") or 0
    groups = list(enumerate(found.groups))[start : start + ROWS] if found else []
    return page.render(
        "graph/page.html",
        view=view,
        overview=found,
        groups=groups,
        following=start + ROWS if found and start + ROWS < len(found.groups) else None,
        kinds=[],
        limit=MAX_NODES,
    )


def data(page: Page) -> Response:
    """Return what to draw as JSON."""
    view = View.of(page.form)
    if view.is_overview:
        return json(_overview_json(page.site.overviews.find(page.memory)))
    drawing, title, route = _drawing(page, view)
    return json(
        {**_drawing_json(drawing), "title": title[:MAX_LABEL], "path": route.names if route else []}
    )


def panel(page: Page) -> Response:
    """Show what is known of the selected entity or cluster."""
    number = page.query.number("cluster")
    if number is not None:
        group = _group(page, number)
        shown = {
            each.name: each
            for each in drawn_graph(page.memory, group.names[:_MAX_LEADERS]).entities
        }
        return page.render(
            "graph/panel_page.html",
            fragment="graph/panel_cluster.html",
            number=number,
            group=group,
            leaders=[shown[name] for name in group.names[:_MAX_LEADERS] if name in shown],
        )
    name = page.query["name"]
    found = open_named(page.memory, [name])
    if not found.entities:
        raise EntityNotFound(name)
    return page.render(
        "graph/panel_page.html",
        fragment="graph/panel_entity.html",
        entity=found.entities[0],
        facts=found.entities[0].observations[::-1][:_MAX_PANEL_FACTS],
        relations=len(found.relations),
    )


def export(page: Page) -> Response:
    """Return what is visible as a diagram."""
    chosen = page.form["format"]
    if chosen not in _EXPORTS:
        raise BadInput(f"format: expected one of {', '.join(_EXPORTS)}, got {chosen!r}")
    file, render = _EXPORTS[chosen]
    view = View.of(page.form)
    if view.is_overview:
        graph = _overview_graph(page.site.overviews.find(page.memory))
    else:
        graph = drawn_graph(page.memory, view.names[:MAX_NODES], view.kinds)
    return download(render(graph).encode(), file, "text/plain; charset=utf-8")


def mini(page: Page) -> Response:
    """Show the entities around one as a small picture: a part of its page."""
    name = page.query["name"]
    drawing = draw(page.memory, [], expand=[name], added=12)
    if not drawing.nodes:
        raise EntityNotFound(name)
    return page.render("graph/mini_page.html", fragment="graph/mini.html", **_mini(drawing, name))


def _drawing(page: Page, view: View) -> tuple[Drawing, str, traverse.Route | None]:
    """Return what a view draws, what it is called, and the path that was asked for."""
    names, expand, title, route = list(view.names), list(view.expand), "", None
    if view.path:
        route = traverse.shortest_route(page.memory, *view.path)
        names += route.names or view.path
        title = f"{view.path[0]} to {view.path[1]}"
    if view.cluster is not None:
        group = _group(page, view.cluster)
        names += group.names[:MAX_MEMBERS]
        title = group.label
    if view.question:
        found = recall(page.memory, view.question, limit=MAX_HITS).hits
        names += [hit.passage.entity for hit in found if hit.passage.kind != "note"]
        title = view.question
    if len(view.names) == 1 and not (expand or title or view.is_exact):
        expand, title = list(view.names), view.names[0]
    drawing = draw(page.memory, names, expand=expand, steps=view.steps, kinds=view.kinds)
    if len(view.names) == 1 and not drawing.nodes:
        raise EntityNotFound(view.names[0])
    return drawing, title, route


def _group(page: Page, number: int) -> Group:
    groups = page.site.overviews.find(page.memory).groups
    if number >= len(groups):
        raise BadInput("there is no such cluster any more: open the overview again")
    return groups[number]


def _degrees(drawing: Drawing) -> dict[str, int]:
    """Return how many neighbours each entity has, drawn or not."""
    around: dict[str, set[str]] = {node.entity.name: set() for node in drawing.nodes}
    for each in drawing.relations:
        if each.source != each.target:
            around[each.source].add(each.target)
            around[each.target].add(each.source)
    return {node.entity.name: len(around[node.entity.name]) + node.hidden for node in drawing.nodes}


def _overview_json(found: GraphOverview) -> dict[str, Any]:
    return {
        "groups": [
            [_short(each.label), type_number(each.type), len(each.names), each.kind == "cluster"]
            for each in found.groups
        ],
        "links": [[each.one, each.other, each.count] for each in found.links],
        "entities": found.entities,
    }


def _drawing_json(drawing: Drawing) -> dict[str, Any]:
    place = {node.entity.name: number for number, node in enumerate(drawing.nodes)}
    types = list(dict.fromkeys([node.entity.type for node in drawing.nodes]))
    kinds = list(dict.fromkeys([each.type for each in drawing.relations]))
    return {
        "nodes": [
            [node.entity.name, types.index(node.entity.type), node.hidden] for node in drawing.nodes
        ],
        "types": [[_short(each), type_number(each)] for each in types],
        "edges": [
            [place[each.source], place[each.target], kinds.index(each.type)]
            for each in drawing.relations
        ],
        "kinds": [_short(each) for each in kinds],
        "relation_types": [[each.type, each.count] for each in drawing.types[:MAX_TYPES]],
        "entities": drawing.entities,
        "cut": drawing.is_cut,
    }


def _overview_graph(found: GraphOverview) -> Graph:
    """Return the clusters as a graph of their own, for a diagram."""
    labels = [f"{each.label} ({len(each.names):,})" for each in found.groups]
    entities = [Entity(label, each.type) for label, each in zip(labels, found.groups, strict=True)]
    ends = [(labels[each.one], labels[each.other], each.count) for each in found.links]
    return Graph(
        entities,
        [Relation(one, other, count_noun(count, "relation")) for one, other, count in ends],
    )


def _mini(drawing: Drawing, name: str) -> dict[str, Any]:
    """Return the nodes around the first one on an ellipse, as places in a picture of 264 x 168."""
    others = [node.entity for node in drawing.nodes if node.entity.name != name]
    centre = next(node for node in drawing.nodes if node.entity.name == name)
    angles = [2 * pi * number / max(1, len(others)) - pi / 2 for number in range(len(others))]
    return {
        "centre": centre.entity,
        "hidden": centre.hidden,
        "around": [
            (each, round(132 + 92 * cos(angle)), round(80 + 56 * sin(angle)))
            for each, angle in zip(others, angles, strict=True)
        ],
    }


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "\u2026"


ROUTES = (
    Route("GET", "/graph", show),
    Route("POST", "/graph/data", data, needs="read"),
    Route("GET", "/graph/panel", panel),
    Route("POST", "/graph/export", export, needs="read"),
    Route("GET", "/graph/mini", mini),
)
