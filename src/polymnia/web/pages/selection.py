"""Several hits at once: a preview of what will be deleted, moved, tagged or exported, and then one change."""

from polymnia.dialects.document import encode_document
from polymnia.engine import notes, selection
from polymnia.engine.entities import open_named
from polymnia.engine.forget import ForgetReceipt, forget
from polymnia.errors import BadInput
from polymnia.model import Graph
from polymnia.search.text import count_noun
from polymnia.web.facts import FactKey, load_row, parse_picks
from polymnia.web.page import Page
from polymnia.web.pages.facts import unwanted
from polymnia.web.pages.search import Filters, search
from polymnia.web.response import Response, download
from polymnia.web.routes import Route

ACTIONS = ("delete", "move", "tag", "export")
# Examples in a preview.
_MAX_EXAMPLES = 8


def preview(page: Page) -> Response:
    """Show what an action would do. Nothing is changed."""
    action, keys = page.form["action"], _chosen_keys(page)
    if action not in ACTIONS:
        raise BadInput(f"action: expected one of {', '.join(ACTIONS)}, got {action!r}")
    if action == "export":
        return _export(page, keys)
    page.principal.require("write", "this")
    counted = (
        forget(page.memory, unwanted(keys), by=page.by, dry_run=True)
        if action == "delete"
        else None
    )
    return page.render(
        "selection/page.html",
        fragment="selection/dialog.html",
        action=action,
        keys=keys,
        examples=[load_row(page.memory, each) for each in keys[:_MAX_EXAMPLES]],
        counts=_describe(counted) if counted else "",
        movable=[each for each in keys if each.kind == "observation"],
        names=_entity_names(keys),
        back=page.back,
    )


def _describe(receipt: ForgetReceipt) -> str:
    """Return how much would be deleted, in words."""
    observations = sum(len(each.observations) for each in receipt.observations)
    observations += sum(len(each.observations) for each in receipt.entities)
    counts = (
        (len(receipt.entities), "entity"),
        (observations, "observation"),
        (len(receipt.relations), "relation"),
        (len(receipt.notes), "note"),
    )
    parts = [count_noun(*each) for each in counts if each[0]]
    return (
        " and ".join([", ".join(parts[:-1]), parts[-1]])
        if len(parts) > 1
        else "".join(parts) or "nothing"
    )


def apply(page: Page) -> Response:
    """Carry out an action as one change."""
    action, keys = page.form["action"], parse_picks(page.form.all("pick"))
    if not keys:
        raise BadInput("nothing is selected")
    run = {"delete": _delete, "move": _move, "tag": _tag}.get(action)
    if run is None:
        raise BadInput(f"action: expected delete, move or tag, got {action!r}")
    text, change = run(page, keys)
    return page.done(page.toast(text, change), page.own_address(page.form.get("back")))


def _chosen_keys(page: Page) -> list[FactKey]:
    """Return the ticked hits, or all hits of the search. Raise BadInput if there are none."""
    keys = parse_picks(page.form.all("pick"))
    if page.form.get("all"):
        found = search(page.memory, page.form["q"], Filters.of(page.form))
        passages = [each.hit.passage for each in found.hits]
        keys = [FactKey(each.kind, each.entity, max(each.ordinal, 0)) for each in passages]
    if not keys:
        raise BadInput("nothing is selected: tick the hits first")
    return list(dict.fromkeys(keys))


def _delete(page: Page, keys: list[FactKey]) -> tuple[str, int]:
    receipt = forget(page.memory, unwanted(keys), by=page.by)
    return f"Deleted {count_noun(len(keys), 'thing')}", receipt.change


def _move(page: Page, keys: list[FactKey]) -> tuple[str, int]:
    chosen = [(each.name, each.ordinal) for each in keys if each.kind == "observation"]
    target, kind = page.form["target"].strip(), page.form.get("type").strip()
    if not target:
        raise BadInput("the name of the other entity is missing")
    moved = [each for each in chosen if each[0] != target]
    receipt = selection.move_observations(
        page.memory, moved, target, by=page.by, new_type=kind or None
    )
    known = f"; it had {receipt.known} of them already" if receipt.known else ""
    return f"Moved {count_noun(receipt.moved, 'observation')} to {target}{known}", receipt.change


def _tag(page: Page, keys: list[FactKey]) -> tuple[str, int]:
    tags = [each.strip() for each in page.form["tags"].split(",") if each.strip()]
    if not tags:
        raise BadInput("the tag is missing")
    remove = page.form.get("how") == "remove"
    names = _entity_names(keys)
    receipt = selection.tag(
        page.memory, names, add=() if remove else tags, remove=tags if remove else (), by=page.by
    )
    return (
        f"{'Untagged' if remove else 'Tagged'} {count_noun(len(receipt.names), 'entity')}",
        receipt.change,
    )


def _export(page: Page, keys: list[FactKey]) -> Response:
    """Return the chosen entities and notes, and the relations among them, as a document."""
    graph = open_named(page.memory, _entity_names(keys))
    names = {each.name for each in graph.entities}
    among = [each for each in graph.relations if {each.source, each.target} <= names]
    found = [notes.in_vault(page.memory, each.name) for each in keys if each.kind == "note"]
    data = encode_document(
        Graph(graph.entities, among), [each for each in found if each is not None]
    )
    return download(data, "selection.json", "application/json")


def _entity_names(keys: list[FactKey]) -> list[str]:
    return list(dict.fromkeys(each.name for each in keys if each.kind != "note"))


ROUTES = (
    Route("POST", "/selection", preview, needs="read"),
    Route("POST", "/selection/apply", apply),
)
