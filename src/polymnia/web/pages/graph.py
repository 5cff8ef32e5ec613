"""Graph: clusters, or the entities around one, drawn by `static/graph.js` or as a table."""

from math import cos, pi, sin
from typing import Any

from msgspec import Struct
from msgspec.json import encode
from starlette.responses import Response

from polymnia.engine.graph import traverse
from polymnia.engine.graph.diagrams import as_dot, as_mermaid
from polymnia.engine.graph.drawing import (
    MAX_NODES,
    MAX_STEPS,
    MAX_WHOLE,
    Drawing,
    draw,
    draw_graph,
    draw_whole,
    drawn_graph,
)
from polymnia.engine.graph.entities import open_named
from polymnia.engine.graph.overview import GraphOverview, Group, GroupPath, group_radius
from polymnia.engine.history.changes import as_of
from polymnia.engine.recall.passages import recall
from polymnia.errors import BadInput, EntityNotFound
from polymnia.model import Entity, Graph, Relation
from polymnia.search.terms import count_noun
from polymnia.web.page import ROWS, Fields, Page, download, get, post
from polymnia.web.pages.moments import parse_at, workspace_strip
from polymnia.web.text import type_number, visible

# How many hits of a search a drawing starts with.
MAX_HITS = 30
# Groups within groups that an address may lead to.
_MAX_DEPTH = 6
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
    cluster: GroupPath = ()
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
            cluster=_parse_group(fields.get("cluster")),
            path=ends if all(ends) else None,
            steps=min(fields.number("steps") or 1, MAX_STEPS),
            kinds=tuple(fields.getlist("kind")) if "kind" in fields else None,
            is_exact="exact" in fields,
        )

    @property
    def is_overview(self) -> bool:
        return not (self.names or self.expand or self.question or self.path or self.cluster)


def _parse_group(text: str) -> GroupPath:
    """Return the way to a group, such as `3.1`. Raise BadInput."""
    parts = text.split(".") if text else []
    if len(parts) > _MAX_DEPTH or not all(part.isdecimal() and len(part) < 6 for part in parts):
        raise BadInput(f"cluster: expected numbers such as 3.1, got {text[:40]!r}")
    return tuple(map(int, parts))


class Crumb(Struct, frozen=True):
    """A group on the way to the one that is open."""

    label: str
    path: str


@get("/graph")
def show(page: Page) -> Response:
    """Show the page with the first part of the table; the script asks for the drawing."""
    view = View.of(page.query)
    at = parse_at(page.query)
    if at is not None:
        return _show_drawing(page, view, _drawing_at(page, view, at), "As it was", None)
    overview: GraphOverview | None = None
    if view.is_overview:
        if "refresh" in page.query:
            page.site.overviews.find(page.memory, refresh=True)
        whole = draw_whole(page.memory, view.kinds)
        if whole is not None:
            return _show_drawing(page, view, whole, "All entities", None)
        overview = page.site.overviews.find_soon(page.memory)
        return _show_groups(page, view, overview)
    if view.cluster:
        overview = _open_group(page, view.cluster)
        if overview is not None:
            return _show_groups(page, view, overview)
    return _show_drawing(page, view, *_drawing(page, view))


def _show_drawing(
    page: Page, view: View, drawing: Drawing, title: str, route: traverse.Route | None
) -> Response:
    start = page.query.number("after") or 0
    return page.render(
        "graph/page.html",
        view=view,
        overview=None,
        crumbs=_crumbs(page, view),
        drawing=drawing,
        title=title,
        route=route,
        nodes=drawing.nodes[start : start + ROWS],
        following=start + ROWS if start + ROWS < len(drawing.nodes) else None,
        kinds=drawing.types[:MAX_TYPES],
        limit=MAX_NODES,
        strip=workspace_strip(page, "/graph", parse_at(page.query)),
    )


def _drawing_at(page: Page, view: View, at: int) -> Drawing:
    """Return what was there at a time: all, or some entities. Raise BadInput for too many."""
    names = set(view.names) or None
    if names is None and draw_whole(page.memory) is None:
        raise BadInput(
            f"the graph of an earlier time shows up to {MAX_WHOLE} entities: choose one first"
        )
    return draw_graph(as_of(page.memory, at, names), view.kinds)


def _show_groups(page: Page, view: View, overview: GraphOverview | None) -> Response:
    """Show groups. The first overview of a large memory may still be computed."""
    groups = list(enumerate(overview.groups)) if overview else []
    start = page.query.number("after") or 0
    end = start + ROWS
    return page.render(
        "graph/page.html",
        view=view,
        overview=overview,
        crumbs=_crumbs(page, view),
        prefix=_path_text(view.cluster),
        drawing=None,
        groups=groups[start:end],
        following=end if end < len(groups) else None,
        kinds=[],
        limit=MAX_NODES,
        strip=None,
    )


def _open_group(page: Page, path: GroupPath) -> GraphOverview | None:
    """Return the groups within a group; None if its entities are drawn themselves."""
    if len(_group(page, path).names) <= MAX_WHOLE:
        return None
    overview = page.site.overviews.find(page.memory, path)
    # A group that does not fall apart, such as a star, is drawn from its best connected entity on.
    return overview if len(overview.groups) > 1 else None


def _path_text(path: GroupPath) -> str:
    return "".join(f"{place}." for place in path)


def _crumbs(page: Page, view: View) -> list[Crumb]:
    crumbs = []
    for depth in range(1, len(view.cluster) + 1):
        path = view.cluster[:depth]
        crumbs.append(Crumb(_short(_group(page, path).label), ".".join(map(str, path))))
    return crumbs


@post("/graph/data", needs="read")
def data(page: Page) -> Response:
    """Return what to draw as JSON."""
    view = View.of(page.form)
    content: dict[str, Any] | None = None
    at = parse_at(page.form)
    if at is not None:
        content = _drawing_json(_drawing_at(page, view, at))
        content["title"] = "an earlier time"
    elif view.is_overview:
        whole = draw_whole(page.memory, view.kinds)
        if whole is None:
            content = _overview_json(page.site.overviews.find(page.memory), "")
        else:
            content = _drawing_json(whole)
    elif view.cluster:
        overview = _open_group(page, view.cluster)
        if overview is not None:
            content = _overview_json(overview, _path_text(view.cluster))
    if content is None:
        drawing, title, route = _drawing(page, view)
        content = _drawing_json(drawing)
        content |= {"title": title[:MAX_LABEL], "path": route.names if route else []}
    content["crumbs"] = [(crumb.label, crumb.path) for crumb in _crumbs(page, view)]
    return Response(encode(content), media_type="application/json")


@get("/graph/find")
def find(page: Page) -> Response:
    """Return the way to the group that has an entity, as far as groups are drawn as groups."""
    name = page.query["name"]
    if not open_named(page.memory, [name]).entities:
        raise EntityNotFound(name)
    path: GroupPath = ()
    overview: GraphOverview | None = None
    if draw_whole(page.memory) is None:
        overview = page.site.overviews.find(page.memory)
    while overview is not None and len(path) < _MAX_DEPTH:
        place = overview.group_of(name)
        if place is None:  # it came after the overview
            break
        path = (*path, place)
        overview = _open_group(page, path)
    return Response(encode({"cluster": ".".join(map(str, path))}), media_type="application/json")


@get("/graph/panel")
def panel(page: Page) -> Response:
    """Show what is known of the selected entity or cluster."""
    path = _parse_group(page.query.get("cluster"))
    if path:
        return _show_cluster(page, path)
    name = page.query["name"]
    graph = open_named(page.memory, [name])
    if not graph.entities:
        raise EntityNotFound(name)
    entity = graph.entities[0]
    return page.render(
        "graph/panel_page.html",
        fragment="graph/panel_entity.html",
        entity=entity,
        facts=entity.facts[::-1][:_MAX_PANEL_FACTS],
        relations=len(graph.relations),
    )


def _show_cluster(page: Page, path: GroupPath) -> Response:
    group = _group(page, path)
    names = group.names[:_MAX_LEADERS]
    entities = {entity.name: entity for entity in drawn_graph(page.memory, names).entities}
    return page.render(
        "graph/panel_page.html",
        fragment="graph/panel_cluster.html",
        path=".".join(map(str, path)),
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
    if view.is_overview and draw_whole(page.memory) is None:
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
    if view.cluster:
        group = _group(page, view.cluster)
        names += group.names[:MAX_WHOLE]
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


def _group(page: Page, path: GroupPath) -> Group:
    groups = page.site.overviews.find(page.memory, path[:-1]).groups
    if path[-1] >= len(groups):
        raise BadInput("there is no such cluster any more: open the overview again")
    return groups[path[-1]]


def _overview_json(overview: GraphOverview, prefix: str) -> dict[str, Any]:
    groups = []
    for place, group in enumerate(overview.groups):
        groups.append(
            {
                "path": f"{prefix}{place}",
                "label": _short(group.label),
                "type": type_number(group.type) if group.kind == "cluster" else 0,
                "types": [_short(kind) for kind in group.types],
                "count": len(group.names),
                "radius": round(group_radius(group), 2),
                "x": group.x,
                "y": group.y,
            }
        )
    return {
        "groups": groups,
        "links": [(link.one, link.other, link.count) for link in overview.links],
        "entities": overview.entities,
        "change": overview.change,
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
