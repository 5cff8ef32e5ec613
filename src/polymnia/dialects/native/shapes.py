"""The arguments of the native tools and the shapes of their replies. Few and short: a model reads all of them."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Limit = Annotated[int, Meta(ge=1, le=200)]
Tokens = Annotated[int, Meta(ge=200, le=20_000)]
ReviewKind = Literal["duplicates", "gaps", "orphans", "summaries", "similar"]
Detail = Literal["names", "summary", "full"]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    workspace: str = ""


class Bounded(Arguments, frozen=True, kw_only=True):
    limit: Limit = 10
    max_tokens: Tokens = 2_000
    cursor: str = ""


class RelationShape(Struct, frozen=True, forbid_unknown_fields=True):
    source: str = field(name="from")
    type: str
    target: str = field(name="to")


class EntityShape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    type: str = ""
    facts: list[str] = []
    when: Annotated[str, Meta(description="date the facts were true")] = ""
    tags: list[str] = []
    summary: str = ""


class Remember(Arguments, frozen=True, kw_only=True):
    entities: list[EntityShape] = []
    relations: list[RelationShape] = []
    source: str = ""


class Recall(Bounded, frozen=True, kw_only=True):
    query: str
    types: list[str] = []
    tags: list[str] = []
    since: Annotated[str, Meta(description="date or age: 7d")] = ""
    until: str = ""
    detail: Detail = "summary"
    also: list[str] = []
    context: Annotated[int, Meta(ge=0, le=10)] = 0


class Open(Bounded, frozen=True, kw_only=True):
    names: list[str]
    as_of: str = ""
    superseded: bool = False


class Explore(Bounded, frozen=True, kw_only=True):
    name: str
    to: Annotated[str, Meta(description="find the shortest path to it")] = ""
    depth: Annotated[int, Meta(ge=1, le=4)] = 1
    type: Annotated[str, Meta(description="relation type")] = ""


class EditShape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    old: Annotated[str, Meta(description="number or text")]
    new: str
    when: str = ""
    wrong: Annotated[bool, Meta(description="it was never true")] = False


class Revise(Arguments, frozen=True, kw_only=True):
    name: str
    rename: str = ""
    type: str = ""
    summary: str = ""
    add_tags: list[str] = []
    remove_tags: list[str] = []
    facts: list[EditShape] = []
    merge: Annotated[list[str], Meta(description="entities to merge into it")] = []


class Forget(Arguments, frozen=True, kw_only=True):
    name: str = ""
    facts: Annotated[list[str], Meta(description="numbers or texts")] = []
    relations: list[RelationShape] = []
    whole: bool = False
    dry_run: bool = False
    confirm: bool = False


class History(Bounded, frozen=True, kw_only=True):
    name: str = ""
    actor: str = ""
    since: str = ""


class Undo(Arguments, frozen=True, kw_only=True):
    changes: list[int] = []
    actor: str = ""
    since: str = ""
    dry_run: bool = False
    skip_conflicts: bool = False


class Review(Bounded, frozen=True, kw_only=True):
    kinds: Annotated[list[ReviewKind], Meta(description="default: all but similar")] = []


class Briefing(Arguments, frozen=True, kw_only=True):
    max_tokens: Tokens = 1_000


class Items(Struct, frozen=True, kw_only=True):
    """What a tool found or did, one object each, and where to read on."""

    items: list[dict[str, Any]]
    left_out: int = 0
    cursor: str = ""
    note: str = ""
