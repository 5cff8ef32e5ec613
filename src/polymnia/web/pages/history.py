"""History: every change by day, who made it, how to undo it, and the trash."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from starlette.responses import Response

from polymnia.engine.history import changes as history
from polymnia.engine.history import trash
from polymnia.engine.history.undo import UndoReceipt, undo
from polymnia.engine.memory import Memory
from polymnia.errors import BadInput
from polymnia.model import ChangeQuery, Rows, split_actor, texts_in
from polymnia.search.terms import count_noun
from polymnia.search.times import parse_moment
from polymnia.web.changes import change_rows
from polymnia.web.page import ROWS, Fields, Page, get, post

# The operations behind each word of the filter. Other operations show only without it.
OPERATIONS = {
    "added": (
        "remember",
        "create_entities",
        "upsert_entities",
        "add_observations",
        "commit_memory",
    ),
    "changed": (
        "revise",
        "correct",
        "replace_observation",
        "set_summary",
        "set_tags",
        "tag_entities",
        "move_observations",
    ),
    "related": ("create_relations", "update_relation_type"),
    "merged": ("merge_entities",),
    "deleted": (
        "forget",
        "delete_entities",
        "delete_observations",
        "delete_relations",
        "prune_memory",
    ),
    "imported": ("import",),
    "undone": ("undo", "restore"),
}
# Changes that are undone together.
MAX_UNDONE = 1_000


class HistoryFilters(Struct, frozen=True):
    """The filters in the address. `since` is a date, a date and time, or an age such as 7d."""

    client: str = ""
    token: str = ""
    operation: str = ""
    name: str = ""
    since: str = ""

    @classmethod
    def of(cls, fields: Fields) -> "HistoryFilters":
        """Return the filters in some fields."""
        return cls(*(fields.get(name) for name in cls.__struct_fields__))

    def __bool__(self) -> bool:
        return self != HistoryFilters()

    def actors(self, memory: Memory) -> list[str] | None:
        """Return the actors of the chosen client and token; None for all."""
        if not (self.client or self.token):
            return None
        chosen = []
        for actor in history.all_actors(memory):
            client, token = split_actor(actor)
            if self.client in ("", client) and self.token in ("", token):
                chosen.append(actor)
        return chosen

    @property
    def operations(self) -> tuple[str, ...] | None:
        """The operations behind the chosen word; None for all. Raise BadInput."""
        if not self.operation:
            return None
        if self.operation not in OPERATIONS:
            raise BadInput(
                f"operation: expected one of {', '.join(OPERATIONS)}, got {self.operation!r}"
            )
        return OPERATIONS[self.operation]

    def query(self, memory: Memory, limit: int) -> ChangeQuery:
        """Return what the store is asked for. Raise BadInput."""
        actors = self.actors(memory)
        return ChangeQuery(
            limit=limit,
            actors=None if actors is None else tuple(actors),
            names=(self.name,) if self.name else None,
            operations=self.operations,
            since=parse_moment(self.since, "since") if self.since else None,
        )

    @property
    def fields(self) -> dict[str, str]:
        """The filters as fields of an address."""
        return asdict(self)


@get("/history")
def show(page: Page) -> Response:
    """Show the changes that the filters select, or the trash."""
    if page.query.get("trash"):
        start, words = page.query.number("from") or 0, page.query.get("q").strip().casefold()
        matching = [
            item
            for item in trash.items(page.memory)
            if words in "\n".join(texts_in(item.rows)).casefold()
        ]
        matching.sort(key=lambda item: -item.deleted_at)
        end = start + ROWS
        items = [(item, *_heading(item.rows)) for item in matching[start:end]]
        return _render(
            page,
            "history/trash.html",
            filters=HistoryFilters(),
            items=items,
            total=len(matching),
            start=start,
            next=end if len(matching) > end else None,
        )
    filters = HistoryFilters.of(page.query)
    latest = history.latest(
        page.memory,
        limit=ROWS,
        before=page.query.number("before"),
        actors=filters.actors(page.memory),
        names=[filters.name] if filters.name else None,
        operations=filters.operations,
        since=parse_moment(filters.since, "since") if filters.since else None,
        max_rows=history.MAX_WHOLE_ROWS,
    )
    about = history.names_of(page.memory, filters.name) if filters.name else None
    after = page.query.number("after")
    if after is not None:  # a page that follows asks for what it has not shown yet
        fresh = tuple(change for change in latest.changes if change.id > after)
        rows = change_rows(page.memory, replace(latest, changes=fresh), about=about)
        return page.render("history/fresh.html", rows=rows, full=True)
    rows = change_rows(page.memory, latest, about=about)
    with page.memory.reading() as read:
        last = history.last_change(page.memory, read)
    return _render(
        page,
        "history/page.html",
        filters=filters,
        days=rows,
        older=latest.next,
        last=last,
        full=True,
    )


@get("/history/change")
def show_change(page: Page) -> Response:
    """Show one change with all its differences."""
    number = page.query.number("id") or 0
    latest = history.latest(page.memory, limit=1, before=number + 1)
    if not latest.changes or latest.changes[0].id != number:
        raise BadInput(f"there is no change {page.query.get('id')}")
    (row,) = change_rows(page.memory, latest, limit=200)
    return page.render("history/change.html", row=row, full=True)


@get("/history/undo", needs="write")
def preview_undo(page: Page) -> Response:
    """Show what an undo would do: of one change, or of all that the filters of the page select."""
    request = _UndoRequest.of(page.query)
    receipt = request.run(page, dry_run=True)
    # Count the texts that the undo removes, restores and resets.
    before, after = _text_keys(receipt.before), _text_keys(receipt.after)
    gone, back = len(before - after), len(after - before)
    old_ids = {entity.id for entity in receipt.before.entities}
    new_ids = {entity.id for entity in receipt.after.entities}
    reset = len(before & after) + len(old_ids & new_ids)
    conflicts = len(receipt.conflicts)
    return page.render(
        "history/undo_page.html",
        fragment="history/undo.html",
        wanted=request,
        receipt=receipt,
        sums=[
            (gone, "fact goes" if gone == 1 else "facts go"),
            (back, "fact returns" if back == 1 else "facts return"),
            (reset, "text goes back" if reset == 1 else "texts go back"),
            (conflicts, {0: "conflicts", 1: "needs a choice"}.get(conflicts, "need a choice")),
        ],
        conflicts=receipt.conflicts[:ROWS],
        back=page.back,
    )


@post("/history/undo")
def run_undo(page: Page) -> Response:
    """Undo. What others built upon stays, unless a choice says otherwise."""
    request = _UndoRequest.of(page.form)
    choices = [
        value for name, value in page.form.multi_items() if name.startswith("choice") and value
    ]
    receipt = request.run(page, skip_conflicts=True, overwrite=choices)
    if not receipt.change:
        return page.done("There is nothing left to undo", page.url("/history"))
    text = f"Undid {count_noun(len(receipt.undone), 'change')}"
    return page.done(page.toast(text, receipt.change), page.url("/history"))


@post("/undo")
def undo_change(page: Page) -> Response:
    """Undo a change, or the user's last one. If others built upon it, ask what to do."""
    numbers = page.form.numbers("change")
    is_redo = "redo" in page.form
    groups, nothing = [numbers], "Nothing of it is left to undo"
    if not numbers:
        # The user's own changes, newest first; undoing one that is undone already does nothing.
        # Undos are left out, so that the key `u` walks back step by step instead of doing again.
        with page.memory.reading() as read:
            reader = history.history_of(page.memory, read)
            heads = reader.change_heads(ChangeQuery(limit=50, actors=(page.by,)))
        groups = [[head.id] for head in heads if head.operation != "undo"]
        nothing = "You have changed nothing lately; the history has the changes of others"
    for changes in groups:
        receipt = undo(page.memory, changes, by=page.by)
        if receipt.conflicts:
            return page.redirect(page.url("/history/undo", change=changes[-1]))
        if receipt.change:
            toast = page.toast("Done again" if is_redo else "Undone", receipt.change)
            return page.done(replace(toast, is_undo=not is_redo), page.back)
    return page.done(nothing, page.back)


@post("/history/restore")
def restore(page: Page) -> Response:
    """Bring something back from the trash."""
    rows, change = trash.restore_item(page.memory, page.form["id"], by=page.by)
    return page.done(
        page.toast(f"Restored {_heading(rows)[1]}", change), page.url("/history", trash=1)
    )


class _UndoRequest(Struct, frozen=True):
    """What to undo: one change, or all that some filters select."""

    change: int | None
    filters: HistoryFilters

    @classmethod
    def of(cls, fields: Fields) -> "_UndoRequest":
        change, filters = fields.number("change"), HistoryFilters.of(fields)
        if change is None and not filters:
            raise BadInput("choose a filter, such as a time: the changes it shows are undone")
        return cls(change, filters)

    def run(self, page: Page, **options: Any) -> UndoReceipt:
        if self.change is not None:
            return undo(page.memory, [self.change], by=page.by, **options)
        with page.memory.reading() as read:
            query = self.filters.query(page.memory, MAX_UNDONE + 1)
            heads = history.history_of(page.memory, read).change_heads(query)
        if len(heads) > MAX_UNDONE:
            raise BadInput(f"more than {MAX_UNDONE} changes match: name a later time")
        return undo(page.memory, [head.id for head in heads], by=page.by, **options)


def _render(page: Page, template: str, **values: Any) -> Response:
    actors = [split_actor(actor) for actor in history.all_actors(page.memory)]
    clients = dict.fromkeys(client for client, _ in actors)
    tokens = dict.fromkeys(token for _, token in actors if token)
    return page.render(
        template,
        clients=list(clients)[:20],
        tokens=list(tokens)[:20],
        operations=list(OPERATIONS),
        **values,
    )


def _heading(rows: Rows) -> tuple[str, str]:
    """Return the kind and the name of something in the trash."""
    if rows.entities:
        return "entity", rows.entities[0].name
    if rows.facts:
        return "fact", f"a fact of {rows.facts[0].entity}"
    if rows.notes:
        return "note", rows.notes[0].key
    relation = rows.relations[0]
    return "relation", f"{relation.source} {relation.type} {relation.target}"


def _text_keys(rows: Rows) -> set[tuple[str, int]]:
    """Return what identifies each fact."""
    keys = {(several.entity, item.ordinal) for several in rows.facts for item in several.facts}
    for entity in rows.entities:
        keys |= {(entity.name, item.ordinal) for item in entity.facts}
    return keys
