"""Graph: clusters, or the entities around one, drawn by `static/graph.js` or as a table."""

from math import cos, pi, sin
from typing import Any

from msgspec import Struct
from msgspec.json import encode
from starlette.responses import Response

from polymnia.engine.graph import traverse
from polymnia.engine.graph.drawing import (
    MAX_NODES,
    MAX_STEPS,
    Drawing,
    GraphOverview,
    Group,
    as_dot,
    as_mermaid,
    draw,
    drawn_graph,
)
from polymnia.engine.graph.entities import open_named
from polymnia.engine.recall.passages import recall
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.search.terms import count_noun
from polymnia.web.page import ROWS, Fields, Page, download, get, post
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
            names=tuple(fields.getlist("name")),
            expand=tuple(fields.getlist("expand")),
            question=fields.get("q").strip(),
            cluster=fields.number("cluster"),
            path=ends if all(ends) else None,
            steps=min(fields.number("steps") or 1, MAX_STEPS),
            kinds=tuple(fields.getlist("kind")) if "kind" in fields else None,
            is_exact="exact" in fields,
        )

    @property
    def is_overview(self) -> bool:
        return (
            not (self.names or self.expand or self.question or self.path) and self.cluster is None
        )


@get("/graph")
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
    """Show the groups if they are quickly computed; otherwise the script asks for them."""
    overview: GraphOverview | None
    if "refresh" in page.query:
        overview = page.site.overviews.find(page.memory, refresh=True)
    else:
        overview = page.site.overviews.find_soon(page.memory)
    groups = list(enumerate(overview.groups)) if overview else []
    start = page.query.number("after") or 0
    end = start + ROWS
    return page.render(
        "graph/page.html",
        view=view,
        overview=overview,
        groups=groups[start:end],
        following=end if end < len(groups) else None,
        kinds=[],
        limit=MAX_NODES,
    )


@post("/graph/data", needs="read")
def data(page: Page) -> Response:
    """Return what to draw as JSON."""
    view = View.of(page.form)
    if view.is_overview:
        content = _overview_json(page.site.overviews.find(page.memory))
    else:
        drawing, title, route = _drawing(page, view)
        content = _drawing_json(drawing)
        content |= {"title": title[:MAX_LABEL], "path": route.names if route else []}
    return Response(encode(content), media_type="application/json")


@get("/graph/panel")
def panel(page: Page) -> Response:
    """Show what is known of the selected entity or cluster."""
    number = page.query.number("cluster")
    if number is not None:
        return _show_cluster(page, number)
    name = page.query["name"]
    graph = open_named(page.memory, [name])
    if not graph.entities:
        raise EntityNotFound(name)
    entity = graph.entities[0]
    return page.render(
        "graph/panel_page.html",
        fragment="graph/panel_entity.html",
        entity=entity,
        facts=entity.observations[::-1][:_MAX_PANEL_FACTS],
        relations=len(graph.relations),
    )


def _show_cluster(page: Page, number: int) -> Response:
    group = _group(page, number)
    names = group.names[:_MAX_LEADERS]
    entities = {entity.name: entity for entity in drawn_graph(page.memory, names).entities}
    return page.render(
        "graph/panel_page.html",
        fragment="graph/panel_cluster.html",
        number=number,
        group=group,
        leaders=[entities[name] for name in names if name in entities],
    )


@post("/graph/export", needs="read")
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


@get("/graph/mini")
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
        route = traverse.shortest_path(page.memory, *view.path)
        names += route.names or view.path
        title = f"{view.path[0]} to {view.path[1]}"
    if view.cluster is not None:
        group = _group(page, view.cluster)
        names += group.names[:MAX_MEMBERS]
        title = group.label
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


def _group(page: Page, number: int) -> Group:
    groups = page.site.overviews.find(page.memory).groups
    if number >= len(groups):
        raise BadInput("there is no such cluster any more: open the overview again")
    return groups[number]


def _degrees(drawing: Drawing) -> dict[str, int]:
    """Return how many neighbours each entity has, drawn or not."""
    around: dict[str, set[str]] = {node.entity.name: set() for node in drawing.nodes}
    for relation in drawing.relations:
        if relation.source != relation.target:
            around[relation.source].add(relation.target)
            around[relation.target].add(relation.source)
    return {node.entity.name: len(around[node.entity.name]) + node.hidden for node in drawing.nodes}


def _overview_json(overview: GraphOverview) -> dict[str, Any]:
    groups = []
    for group in overview.groups:
        is_cluster = group.kind == "cluster"
        groups.append((_short(group.label), type_number(group.type), len(group.names), is_cluster))
    return {
        "groups": groups,
        "links": [(link.one, link.other, link.count) for link in overview.links],
        "entities": overview.entities,
    }


def _drawing_json(drawing: Drawing) -> dict[str, Any]:
    """Return a drawing in numbers: a name is long and occurs in many relations."""
    place = {node.entity.name: number for number, node in enumerate(drawing.nodes)}
    types = list(dict.fromkeys(node.entity.type for node in drawing.nodes))
    kinds = list(dict.fromkeys(relation.type for relation in drawing.relations))
    nodes = [
        (node.entity.name, types.index(node.entity.type), node.hidden) for node in drawing.nodes
    ]
    edges = []
    for relation in drawing.relations:
        ends = place[relation.source], place[relation.target]
        edges.append((*ends, kinds.index(relation.type)))
    return {
        "nodes": nodes,
        "types": [(_short(kind), type_number(kind)) for kind in types],
        "edges": edges,
        "kinds": [_short(kind) for kind in kinds],
        "relation_types": [(kind.type, kind.count) for kind in drawing.types[:MAX_TYPES]],
        "entities": drawing.entities,
        "cut": drawing.is_cut,
    }


def _overview_graph(overview: GraphOverview) -> Graph:
    """Return the clusters as a graph of their own, for a diagram."""
    labels = [f"{group.label} ({len(group.names):,})" for group in overview.groups]
    entities = []
    for label, group in zip(labels, overview.groups, strict=True):
        entities.append(Entity(label, group.type))
    relations = []
    for link in overview.links:
        kind = count_noun(link.count, "relation")
        relations.append(Relation(labels[link.one], labels[link.other], kind))
    return Graph(entities, relations)


def _mini(drawing: Drawing, name: str) -> dict[str, Any]:
    """Return the nodes around the first one on an ellipse, as places in a picture of 264 x 168."""
    centre = next(node for node in drawing.nodes if node.entity.name == name)
    others = [node.entity for node in drawing.nodes if node is not centre]
    around = []
    for number, entity in enumerate(others):
        angle = 2 * pi * number / len(others) - pi / 2
        around.append((entity, round(132 + 92 * cos(angle)), round(80 + 56 * sin(angle))))
    return {"centre": centre.entity, "hidden": centre.hidden, "around": around}


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "\u2026"
