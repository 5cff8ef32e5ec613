"""Several hits at once: a preview of what an action does, and then one change."""

from starlette.responses import Response

from polymnia.engine.facts.forget import ForgetReceipt, forget
from polymnia.engine.facts.merge import merge, move_facts
from polymnia.engine.facts.relocate import relocate
from polymnia.engine.facts.revise import Revision, revise, tag_entities
from polymnia.errors import BadInput
from polymnia.search.terms import count_noun
from polymnia.web.page import Page, post
from polymnia.web.pages.facts import FactKey, load_row, parse_picks, unwanted
from polymnia.web.pages.search import SearchFilters, search

ACTIONS = ("delete", "move", "relocate", "tag", "type", "merge")


@post("/selection")
def preview(page: Page) -> Response:
    """Show what an action would do. Nothing is changed."""
    action, keys = page.form["action"], _chosen_keys(page)
    if action not in ACTIONS:
        raise BadInput(f"action: expected one of {', '.join(ACTIONS)}, got {action!r}")
    counts = ""
    if action == "delete":
        counts = _describe(forget(page.memory, unwanted(keys), by=page.by, dry_run=True))
    # Examples in a preview.
    return page.render(
        "selection/page.html",
        fragment="selection/dialog.html",
        action=action,
        keys=keys,
        examples=[load_row(page.memory, key) for key in keys[:8]],
        counts=counts,
        movable=[key for key in keys if key.kind == "fact"],
        names=_entity_names(keys),
        back=page.back,
    )


def _describe(receipt: ForgetReceipt) -> str:
    """Return how much would be deleted, in words."""
    counts = (
        (len(receipt.entities), "entity"),
        (receipt.fact_count, "fact"),
        (len(receipt.relations), "relation"),
        (len(receipt.notes), "note"),
    )
    parts = [count_noun(count, noun) for count, noun in counts if count]
    if len(parts) < 2:
        return "".join(parts) or "nothing"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


@post("/selection/apply")
def apply(page: Page) -> Response:
    """Carry out an action as one change."""
    action, keys = page.form["action"], parse_picks(page.form.getlist("pick"))
    if not keys:
        raise BadInput("nothing is selected")
    run = _RUNS.get(action)
    if run is None:
        raise BadInput(f"action: expected one of {', '.join(_RUNS)}, got {action!r}")
    text, changes = run(page, keys)
    return page.done(page.toast(text, *changes), page.own_address(page.form.get("back")))


def _chosen_keys(page: Page) -> list[FactKey]:
    """Return the ticked hits, or all hits of the search. Raise BadInput if there are none."""
    keys = parse_picks(page.form.getlist("pick"))
    if page.form.get("all"):
        hits = search(page.memory, page.form["q"], SearchFilters.of(page.form)).hits
        passages = [signed.hit.passage for signed in hits]
        keys = [FactKey(item.kind, item.entity, max(item.ordinal, 0)) for item in passages]
    if not keys:
        raise BadInput("nothing is selected: tick the hits first")
    return list(dict.fromkeys(keys))


def _delete(page: Page, keys: list[FactKey]) -> tuple[str, list[int]]:
    receipt = forget(page.memory, unwanted(keys), by=page.by)
    return f"Deleted {count_noun(len(keys), 'thing')}", [receipt.change]


def _move(page: Page, keys: list[FactKey]) -> tuple[str, list[int]]:
    target = page.form["target"].strip()
    if not target:
        raise BadInput("the name of the other entity is missing")
    movable = [key for key in keys if key.kind == "fact" and key.name != target]
    receipt = move_facts(
        page.memory,
        [(key.name, key.ordinal) for key in movable],
        target,
        by=page.by,
        new_type=page.form.get("type").strip() or None,
    )
    known = f"; it had {receipt.known} of them already" if receipt.known else ""
    return f"Moved {count_noun(receipt.moved, 'fact')} to {target}{known}", [receipt.change]


def _relocate(page: Page, keys: list[FactKey]) -> tuple[str, list[int]]:
    """Move entities, or some of their facts, to another workspace."""
    goal = page.form["workspace"]
    if goal == page.workspace:
        raise BadInput("choose another workspace: they are in this one already")
    target = page.memory_of(goal)
    whole = {key.name for key in keys if key.kind == "entity"}
    facts: dict[str, list[int]] = {}
    for key in keys:
        if key.kind == "fact" and key.name not in whole:
            facts.setdefault(key.name, []).append(key.ordinal)
    for name in sorted(whole):
        relocate(page.memory, target, name, by=page.by)
    for name, ordinals in facts.items():
        relocate(page.memory, target, name, ordinals, by=page.by)
    count = len(whole) + sum(map(len, facts.values()))
    # An undo would concern two workspaces; moving back is the same action over there.
    text = f"Moved {count_noun(count, 'thing')} to {goal}; select them there to move them back"
    return text, []


def _tag(page: Page, keys: list[FactKey]) -> tuple[str, list[int]]:
    tags = split_tags(page.form["tags"])
    if not tags:
        raise BadInput("the tag is missing")
    names = _entity_names(keys)
    if page.form.get("how") == "remove":
        verb, receipt = "Untagged", tag_entities(page.memory, names, remove=tags, by=page.by)
    else:
        verb, receipt = "Tagged", tag_entities(page.memory, names, add=tags, by=page.by)
    return f"{verb} {count_noun(len(receipt.names), 'entity')}", [receipt.change]


def _set_type(page: Page, keys: list[FactKey]) -> tuple[str, list[int]]:
    kind = page.form["type"].strip()
    if not kind:
        raise BadInput("the type is missing")
    names = _entity_names(keys)
    changes = [revise(page.memory, name, Revision(type=kind), by=page.by).change for name in names]
    return f"Changed the type of {count_noun(len(names), 'entity')}", changes


def _merge(page: Page, keys: list[FactKey]) -> tuple[str, list[int]]:
    names, keep = _entity_names(keys), page.form["keep"]
    if len(names) < 2 or keep not in names:
        raise BadInput("a merge needs two entities or more, and the one to keep among them")
    gone = [name for name in names if name != keep]
    receipt = merge(page.memory, gone, keep, by=page.by)
    return f"Merged {count_noun(len(gone), 'entity')} into {keep[:60]}", [receipt.change]


# What carries out each action, and returns what it did and the changes.
_RUNS = {
    "delete": _delete,
    "move": _move,
    "relocate": _relocate,
    "tag": _tag,
    "type": _set_type,
    "merge": _merge,
}


def split_tags(text: str) -> list[str]:
    """Return the tags in a field, each once."""
    tags = [tag.strip() for tag in text.split(",")]
    return list(dict.fromkeys(tag for tag in tags if tag))


def _entity_names(keys: list[FactKey]) -> list[str]:
    return list(dict.fromkeys(key.name for key in keys if key.kind != "note"))
