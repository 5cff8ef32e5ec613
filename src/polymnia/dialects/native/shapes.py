"""The arguments and replies of the native tools: few and short, as a model reads all of them."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

# Also numbers. A union would need `anyOf`, which some clients reject.
Reference = Annotated[Any, Meta(extra_json_schema={"type": "string"})]
Limit = Annotated[int, Meta(ge=1, le=200)]
MAX_TOKENS = 20_000
Tokens = Annotated[int, Meta(ge=50, le=MAX_TOKENS)]
ReviewKind = Literal["contradictions", "overdue", "duplicates", "files"]


# Names that models use for arguments, and the arguments that they mean.
_SYNONYMS = {
    "name": "names",
    "names": "name",
    "entity": "name",
    "entityName": "name",
    "entityType": "type",
    "type": "types",
    "tag": "tags",
    "kind": "kinds",
    "content": "facts",
    "contents": "facts",
    "text": "facts",
    "change": "changes",
    "observations": "facts",
    "observation": "facts",
    "fact": "facts",
    "replaced": "superseded",
}
# The ends and the type of a relation, as other memory servers name them.
_RELATION_SYNONYMS = {"source": "from", "target": "to", "relation": "type", "relationType": "type"}


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    synonyms: ClassVar[dict[str, str]] = _SYNONYMS
    workspace: str = ""


class Bounded(Arguments, frozen=True, kw_only=True):
    limit: Limit = 10
    max_tokens: Tokens = 2_000
    cursor: str = ""


class GivenRelation(Struct, frozen=True, forbid_unknown_fields=True):
    synonyms: ClassVar[dict[str, str]] = _RELATION_SYNONYMS
    source: str = field(name="from")
    type: str
    target: str = field(name="to")


class FactShape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    synonyms: ClassVar[dict[str, str]] = {"fact": "text", "content": "text", "observation": "text"}
    text: str
    replaces: Reference = None
    when: str = ""
    expires: str = ""


class GivenEntity(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    synonyms: ClassVar[dict[str, str]] = _SYNONYMS
    name: str
    type: str = ""
    facts: list[Reference] = []  # a fact may also be a FactShape
    replaces: Annotated[
        list[Reference],
        Meta(description="#numbers or texts of older facts, one for each fact"),
    ] = []
    when: Annotated[str, Meta(description="day the facts became true")] = ""
    due: Annotated[str, Meta(description="day it is due")] = ""
    status: Annotated[str, Meta(description="open or done")] = ""
    expires: Annotated[str, Meta(description="day from which they are not recalled")] = ""
    tags: list[str] = []
    summary: Annotated[str, Meta(description="one line: what it is")] = ""


class Remember(Arguments, frozen=True, kw_only=True):
    sole_item_of: ClassVar[str] = "entities"  # what `name` and `facts` beside it mean
    entities: list[GivenEntity] = []
    relations: list[GivenRelation] = []
    source: str = ""


class Recall(Arguments, frozen=True, kw_only=True):
    query: str = ""
    also: list[str] = []
    types: list[str] = []
    tags: list[str] = []
    status: Annotated[str, Meta(description="open, done or overdue")] = ""
    since: Annotated[str, Meta(description="date or age: 7d")] = ""
    until: Annotated[str, Meta(description="with status: due before it")] = ""
    limit: Annotated[int, Meta(ge=0, le=200, description="at most so many facts")] = 0
    max_tokens: Tokens = 900
    cursor: str = ""


class Open(Bounded, frozen=True, kw_only=True):
    names: list[str]
    limit: Limit = 200
    true_on: Annotated[str, Meta(description="a day")] = ""
    as_of: Annotated[str, Meta(description="a day or time")] = ""
    superseded: Annotated[bool, Meta(description="also facts that were replaced")] = False


class Explore(Bounded, frozen=True, kw_only=True):
    name: str
    to: Annotated[str, Meta(description="find the shortest path to it")] = ""
    depth: Annotated[int, Meta(ge=1, le=4)] = 1
    type: Annotated[str, Meta(description="only relations of this type")] = ""


class EditShape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    shorthand: ClassVar[str] = "old"  # what a text instead of an object means
    old: Annotated[Reference, Meta(description="#number, text, or how it begins")]
    new: Annotated[Reference, Meta(description="new text, or #number of a stored fact")] = None
    when: str = ""
    wrong: Annotated[bool, Meta(description="never true; without new, it is forgotten")] = False


class Revise(Arguments, frozen=True, kw_only=True):
    name: str
    rename: str = ""
    type: str = ""
    summary: str = ""
    due: str = ""
    status: Annotated[str, Meta(description="open or done")] = ""
    expires: str = ""
    add_tags: list[str] = []
    remove_tags: list[str] = []
    facts: list[EditShape] = []
    merge: Annotated[list[str], Meta(description="entities to merge into it")] = []
    move_to: Annotated[str, Meta(description="workspace; with facts: only those (old)")] = ""


class Forget(Arguments, frozen=True, kw_only=True):
    name: str = ""
    facts: Annotated[list[Reference], Meta(description="#numbers, texts, or how they begin")] = []
    relations: list[GivenRelation] = []
    whole: Annotated[bool, Meta(description="the entity with all its facts")] = False
    erase: Annotated[bool, Meta(description="for good, also from history")] = False
    dry_run: bool = False
    confirm: Annotated[
        bool,
        Meta(description="for erase, whole and over 20 facts: ask the user first"),
    ] = False


class History(Bounded, frozen=True, kw_only=True):
    name: str = ""
    actor: str = ""
    since: str = ""


class Undo(Arguments, frozen=True, kw_only=True):
    changes: Annotated[list[Reference], Meta(description="ids: shop:17")] = []
    actor: str = ""
    since: str = ""
    dry_run: bool = False
    skip_conflicts: bool = False


class Review(Bounded, frozen=True, kw_only=True):
    kinds: Annotated[list[ReviewKind], Meta(description="default: all")] = []


class Briefing(Arguments, frozen=True, kw_only=True):
    max_tokens: Tokens = 800


class Found(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What programs get that ask for JSON: one object for each hit or note, best first."""

    items: list[dict[str, Any]]
    cursor: str = ""  # where to read on
    unknown: list[str] = []  # the words of the question that no fact has
