"""Several hits at once: a preview of what an action does, and then one change."""

from starlette.responses import Response

from polymnia.engine.facts.forget import forget
from polymnia.engine.facts.merge import merge, move_facts
from polymnia.engine.facts.relocate import relocate
from polymnia.engine.facts.revise import Revision, revise, tag_entities
from polymnia.errors import BadInput
from polymnia.search.terms import count_noun
from polymnia.web.changes import join_words
from polymnia.web.page import Page, post
from polymnia.web.pages.facts import FactKey, load_row, parse_picks, unwanted
from polymnia.web.pages.search import SearchFilters, search

ACTIONS = ("delete", "move", "relocate", "tag", "type", "merge")


@post("/selection")
def preview(page: Page) -> Response:
    """Show what an action would do. Nothing is changed."""
    action, keys = page.form.choice("action", ACTIONS), parse_picks(page.form.getlist("pick"))
    if page.form.get("all"):  # every hit of the search
        hits = search(page.memory, page.form["q"], SearchFilters.of(page.form)).hits
        passages = [signed.hit.passage for signed in hits]
        keys = [FactKey(item.kind, item.entity, max(item.ordinal, 0)) for item in passages]
    if not keys:
        raise BadInput("nothing is selected: tick the hits first")
    keys = list(dict.fromkeys(keys))
    counts = ""
    if action == "delete":
        receipt = forget(page.memory, unwanted(keys), by=page.by, dry_run=True)
        numbers = (
            (len(receipt.entities), "entity"),
            (receipt.fact_count, "fact"),
            (len(receipt.relations), "relation"),
            (len(receipt.notes), "note"),
        )
        parts = [count_noun(count, noun) for count, noun in numbers if count]
        counts = join_words(parts) or "nothing"
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


@post("/selection/apply")
def apply(page: Page) -> Response:
    """Carry out an action as one change, if it is in one workspace."""
    form, memory = page.form, page.memory
    action = form.choice("action", ACTIONS)
    keys = parse_picks(form.getlist("pick"))
    if not keys:
        raise BadInput("nothing is selected")
    names = _entity_names(keys)
    changes: list[int] = []
    if action == "delete":
        changes = [forget(memory, unwanted(keys), by=page.by).change]
        text = f"Deleted {count_noun(len(keys), 'thing')}"
    elif action == "move":
        target = form["target"].strip()
        if not target:
            raise BadInput("the name of the other entity is missing")
        facts = [(key.name, key.ordinal) for key in keys if key.kind == "fact"]
        movable = [fact for fact in facts if fact[0] != target]
        new_type = form.get("type").strip() or None
        moved = move_facts(memory, movable, target, by=page.by, new_type=new_type)
        known = f"; it had {moved.known} of them already" if moved.known else ""
        text = f"Moved {count_noun(moved.moved, 'fact')} to {target}{known}"
        changes = [moved.change]
    elif action == "relocate":
        # Without an undo, which would concern two workspaces.
        goal = form["workspace"]
        count = _relocate(page, keys, goal)
        text = f"Moved {count_noun(count, 'thing')} to {goal}; select them there to move them back"
    elif action == "tag":
        tags = split_tags(form["tags"])
        if not tags:
            raise BadInput("the tag is missing")
        if form.get("how") == "remove":
            verb, tagged = "Untagged", tag_entities(memory, names, remove=tags, by=page.by)
        else:
            verb, tagged = "Tagged", tag_entities(memory, names, add=tags, by=page.by)
        text, changes = f"{verb} {count_noun(len(tagged.names), 'entity')}", [tagged.change]
    elif action == "type":
        revision = Revision(type=form["type"].strip())
        if not revision.type:
            raise BadInput("the type is missing")
        changes = [revise(memory, name, revision, by=page.by).change for name in names]
        text = f"Changed the type of {count_noun(len(names), 'entity')}"
    else:  # merge
        keep = form["keep"]
        if len(names) < 2 or keep not in names:
            raise BadInput("a merge needs two entities or more, and the one to keep among them")
        gone = [name for name in names if name != keep]
        changes = [merge(memory, gone, keep, by=page.by).change]
        text = f"Merged {count_noun(len(gone), 'entity')} into {keep[:60]}"
    return page.done(page.toast(text, *changes), page.own_address(form.get("back")))


def _relocate(page: Page, keys: list[FactKey], goal: str) -> int:
    """Move entities, or some of their facts, to another workspace. Return how many."""
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
    return len(whole) + sum(map(len, facts.values()))


def split_tags(text: str) -> list[str]:
    """Return the tags in a field, each once."""
    tags = [tag.strip() for tag in text.split(",")]
    return list(dict.fromkeys(tag for tag in tags if tag))


def _entity_names(keys: list[FactKey]) -> list[str]:
    return list(dict.fromkeys(key.name for key in keys if key.kind != "note"))
