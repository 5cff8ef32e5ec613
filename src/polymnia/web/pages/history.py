"""History: every change by day, who made it, and how to undo it. The trash is one of its filters."""

from typing import Any

from msgspec import Struct

from polymnia.dialects.times import parse_moment
from polymnia.engine import history, trash
from polymnia.engine.memory import Memory
from polymnia.engine.undo import UndoReceipt, undo, undo_since
from polymnia.errors import BadInput
from polymnia.model import Rows, TrashItem, join_actor, split_actor
from polymnia.web.forms import Fields
from polymnia.web.page import ROWS, Page
from polymnia.web.pages.search import MAX_ROWS_READ, change_rows
from polymnia.web.response import Response
from polymnia.web.routes import Route

# The operations behind each word of the filter. A change of any other operation is found without the filter.
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
_MAX_CLIENTS = 20
_MAX_CONFLICTS = 50
# Differences on the page of one change.
_MAX_DIFFERENCES = 200


class Filters(Struct, frozen=True):
    """The filters in the address. `since` is a date, a date and time, or an age such as 7d."""

    client: str = ""
    token: str = ""
    operation: str = ""
    name: str = ""
    since: str = ""

    @classmethod
    def of(cls, fields: Fields) -> "Filters":
        """Return the filters in some fields."""
        return cls(*(fields.get(each) for each in cls.__struct_fields__))

    def __bool__(self) -> bool:
        return any(getattr(self, each) for each in self.__struct_fields__)

    def actors(self, memory: Memory) -> list[str] | None:
        """Return the actors of the chosen client and token; None for all."""
        if not (self.client or self.token):
            return None
        pairs = [(each, *split_actor(each)) for each in history.all_actors(memory)]
        return [
            actor
            for actor, client, token in pairs
            if (not self.client or client == self.client)
            and (not self.token or token == self.token)
        ]

    @property
    def since_at(self) -> int | None:
        """The time from which on changes are shown. Raise BadInput."""
        return parse_moment(self.since, "since") if self.since else None

    @property
    def fields(self) -> dict[str, str]:
        """The filters as fields of an address."""
        return {each: getattr(self, each) for each in self.__struct_fields__}


def show(page: Page) -> Response:
    """Show the changes that the filters select, or the trash."""
    if page.query.get("trash"):
        return _show_trash(page)
    filters = Filters.of(page.query)
    if filters.operation and filters.operation not in OPERATIONS:
        raise BadInput(
            f"operation: expected one of {', '.join(OPERATIONS)}, got {filters.operation!r}"
        )
    found = history.latest(
        page.memory,
        limit=ROWS,
        before=page.query.number("before"),
        actors=filters.actors(page.memory),
        names=[filters.name] if filters.name else None,
        operations=OPERATIONS[filters.operation] if filters.operation else None,
        since=filters.since_at,
        max_rows=MAX_ROWS_READ,
    )
    about = {"about": history.names_of(page.memory, filters.name)} if filters.name else {}
    rows = change_rows(page.memory, found.changes, **about)
    return _render(
        page, "history/page.html", filters=filters, days=rows, older=found.next, full=True
    )


def show_change(page: Page) -> Response:
    """Show one change with all its differences."""
    number = page.query.number("id")
    found = history.latest(
        page.memory, limit=1, before=None if number is None else number + 1
    ).changes
    if not found or found[0].id != number:
        raise BadInput(f"there is no change {page.query.get('id')}")
    (row,) = change_rows(page.memory, found, limit=_MAX_DIFFERENCES)
    return page.render("history/change.html", row=row, full=True)


def preview_undo(page: Page) -> Response:
    """Show what an undo would do: of one change, or of everything of one client since a time."""
    wanted = _Wanted.of(page.query)
    receipt = wanted.run(page, dry_run=True)
    return page.render(
        "history/undo_page.html",
        fragment="history/undo.html",
        wanted=wanted,
        receipt=receipt,
        sums=_sums(receipt),
        conflicts=receipt.conflicts[:_MAX_CONFLICTS],
        back=page.back,
    )


def run_undo(page: Page) -> Response:
    """Undo with the choices that were made: what others built upon stays, unless a choice says otherwise."""
    wanted = _Wanted.of(page.form)
    choices = [value for name, value in page.form.pairs() if name.startswith("choice") and value]
    receipt = wanted.run(page, skip_conflicts=True, overwrite=choices)
    if not receipt.change:
        return page.done("There is nothing left to undo", page.url("/history"))
    count = len(receipt.undone)
    text = f"Undid {count:,} {'change' if count == 1 else 'changes'}"
    return page.done(page.toast(text, receipt.change), page.url("/history"))


def restore(page: Page) -> Response:
    """Bring something back from the trash."""
    rows, change = trash.restore_item(page.memory, page.form["id"], by=page.by)
    return page.done(
        page.toast(f"Restored {_name_of(rows)}", change), page.url("/history", trash=1)
    )


class _Wanted(Struct, frozen=True):
    """What to undo: one change, or all of a client and token since a time."""

    change: int | None
    client: str
    token: str
    since: str

    @classmethod
    def of(cls, fields: Fields) -> "_Wanted":
        found = cls(
            fields.number("change"), fields.get("client"), fields.get("token"), fields.get("since")
        )
        if found.change is None and not found.since:
            raise BadInput("name a time: everything since then is undone")
        return found

    @property
    def actor(self) -> str:
        """Whose changes are undone, for the heading."""
        if not self.client:
            return f"the token {self.token}" if self.token else "everyone"
        return join_actor(self.client, self.token)

    def run(self, page: Page, **options: Any) -> UndoReceipt:
        if self.change is not None:
            return undo(page.memory, [self.change], by=page.by, **options)
        actors = Filters(client=self.client, token=self.token).actors(page.memory)
        return undo_since(
            page.memory, parse_moment(self.since, "since"), actors=actors, by=page.by, **options
        )


def _render(page: Page, template: str, **values: Any) -> Response:
    actors = [split_actor(each) for each in history.all_actors(page.memory)]
    return page.render(
        template,
        clients=list(dict.fromkeys(client for client, _ in actors))[:_MAX_CLIENTS],
        tokens=list(dict.fromkeys(token for _, token in actors if token))[:_MAX_CLIENTS],
        operations=list(OPERATIONS),
        **values,
    )


def _show_trash(page: Page) -> Response:
    start, words = page.query.number("from") or 0, page.query.get("q").strip().casefold()
    found = sorted(trash.items(page.memory), key=lambda each: -each.deleted_at)
    wanted = [each for each in found if not words or words in _text_of(each).casefold()]
    return _render(
        page,
        "history/trash.html",
        filters=Filters(),
        items=[
            (each, _kind_of(each.rows), _name_of(each.rows))
            for each in wanted[start : start + ROWS]
        ],
        total=len(wanted),
        start=start,
        next=start + ROWS if len(wanted) > start + ROWS else None,
    )


def _kind_of(rows: Rows) -> str:
    kinds = (("entity", rows.entities), ("observation", rows.observations), ("note", rows.notes))
    return next((kind for kind, found in kinds if found), "relation")


def _name_of(rows: Rows) -> str:
    if rows.entities:
        return rows.entities[0].name
    if rows.observations:
        return f"an observation of {rows.observations[0].entity}"
    if rows.notes:
        return rows.notes[0].key
    return " ".join((rows.relations[0].source, rows.relations[0].type, rows.relations[0].target))


def _text_of(item: TrashItem) -> str:
    rows = item.rows
    texts = [one.text for each in rows.entities for one in each.observations]
    texts += [one.text for each in rows.observations for one in each.observations]
    return "\n".join([_name_of(rows), *texts, *(each.content for each in rows.notes)])


def _sums(receipt: UndoReceipt) -> list[tuple[int, str]]:
    """Return how many rows an undo removes, restores and resets."""
    before = {
        (each.entity, one.ordinal)
        for each in receipt.before.observations
        for one in each.observations
    }
    after = {
        (each.entity, one.ordinal)
        for each in receipt.after.observations
        for one in each.observations
    }
    old, new = (
        {each.id: each for each in rows.entities} for rows in (receipt.before, receipt.after)
    )
    gone = len(before - after) + sum(
        len(each.observations) for key, each in old.items() if key not in new
    )
    back = len(after - before) + sum(
        len(each.observations) for key, each in new.items() if key not in old
    )
    set_back = len(before & after) + len(old.keys() & new.keys())
    conflicts = len(receipt.conflicts)
    return [
        (gone, "observation goes" if gone == 1 else "observations go"),
        (back, "observation returns" if back == 1 else "observations return"),
        (set_back, "text goes back" if set_back == 1 else "texts go back"),
        (conflicts, {0: "conflicts", 1: "needs a choice"}.get(conflicts, "need a choice")),
    ]


ROUTES = (
    Route("GET", "/history", show),
    Route("GET", "/history/change", show_change),
    Route("GET", "/history/undo", preview_undo, needs="write"),
    Route("POST", "/history/undo", run_undo),
    Route("POST", "/history/restore", restore),
)
