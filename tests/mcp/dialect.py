"""A dialect with one of everything the protocol can carry, for tests to talk to."""

from collections.abc import Mapping, Sequence
from threading import Event
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct
from msgspec.json import encode

from polymnia.dialects.base import (
    Call,
    Client,
    Dialect,
    Prompt,
    PromptArgument,
    Reply,
    Resource,
    ResourceTemplate,
    Tool,
    catalogue,
    tool,
)
from polymnia.engine.graph import entities
from polymnia.errors import BadInput
from polymnia.model import Change, EntityDraft
from tests.processes import TIMEOUT_S

NAMES_URI = "test://names"
CLOCK_URI = "test://clock"
ENTITY_TEMPLATE = "test://entity/{name}"
SECRET = "what only the log may say"


def entity_uri(name: str) -> str:
    return ENTITY_TEMPLATE.replace("{name}", name)


class Gate:
    """Where a tool and its test meet: the tool says that it has begun, the test lets it go on."""

    def __init__(self) -> None:
        self.begun = Event()
        self.may_go_on = Event()

    def pass_through(self) -> None:
        self.begun.set()
        assert self.may_go_on.wait(TIMEOUT_S)


class Box(Struct, frozen=True, forbid_unknown_fields=True):
    width: Annotated[int, Meta(ge=1)]
    label: str | None = None


class Measure(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    how_many: Annotated[int, Meta(ge=1, le=10, description="From one to ten")]
    ratio: Annotated[float, Meta(gt=0)] = 1.0
    tone: Literal["calm", "loud"] = "calm"
    step: Literal[1, 2] = 1
    code: Annotated[str, Meta(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    note: str | None = None
    box: Box | None = None
    boxes: list[Box] = []
    matrix: Annotated[list[list[int]], Meta(max_length=2)] = []
    really: bool = False
    sizes: dict[Annotated[str, Meta(max_length=2)], int] = {}
    pair: tuple[int, str] = (0, "")


class Measured(Struct, frozen=True, rename="camel"):
    how_many: int
    tone: str


class Nothing(Struct, frozen=True):
    pass


class Named(Struct, frozen=True):
    name: str


class Steps(Struct, frozen=True):
    steps: int


@tool(Measure, needs="read", returns=Measured, idempotent=True)
def measure(call: Call, arguments: Measure) -> Reply:
    """Say back some of what was given"""
    return Reply("measured", Raw(encode(Measured(arguments.how_many, arguments.tone))))


@tool(Nothing, needs="read")
def nothing(call: Call, arguments: Nothing) -> Reply:
    """Take nothing and ignore the rest"""
    return Reply("nothing")


@tool(Nothing, needs="read")
def whoami(call: Call, arguments: Nothing) -> Reply:
    """Say who is asking"""
    return Reply(call.by)


@tool(Steps, needs="read")
def count(call: Call, arguments: Steps) -> Reply:
    """Report each step, with all there is to report"""
    for step in range(1, arguments.steps + 1):
        call.progress(step, arguments.steps, f"step {step}")
    return Reply("counted")


@tool(Nothing, needs="read")
def hint(call: Call, arguments: Nothing) -> Reply:
    """Report progress without an end or a message"""
    call.progress(0.5, None, None)
    return Reply("hinted")


@tool(Nothing, needs="read")
def footnote(call: Call, arguments: Nothing) -> Reply:
    """Answer, and add a note"""
    return Reply("the answer", note="and a note")


@tool(Nothing, needs="read")
def explode(call: Call, arguments: Nothing) -> Reply:
    """Fail as nobody expected"""
    raise ZeroDivisionError(SECRET)


@tool(Nothing, needs="read")
def refuse(call: Call, arguments: Nothing) -> Reply:
    """Fail as the tool knows it may"""
    raise BadInput("that cannot be done; try something else")


@tool(Named, needs="write")
def remember(call: Call, arguments: Named) -> Reply:
    """Create an entity"""
    entities.create(call.memory, [EntityDraft(arguments.name, "thing")], by=call.by)
    return Reply("remembered")


@tool(Named, needs="write", destructive=True, idempotent=True)
def forget(call: Call, arguments: Named) -> Reply:
    """Delete an entity"""
    entities.delete(call.memory, [arguments.name], by=call.by)
    return Reply("forgotten")


def one_of_everything(gate: Gate) -> Dialect:
    """The dialect; its tools `ponder` and `heed` stop at the gate."""
    return Dialect(
        name="test",
        server_name="test-server",
        server_version="7.0",
        instructions="Try everything.",
        tools=catalogue(
            measure,
            nothing,
            whoami,
            count,
            hint,
            footnote,
            explode,
            refuse,
            remember,
            forget,
            *_gated(gate),
        ),
        resources=(NAMES, CLOCK),
        templates=(ENTITY,),
        prompts=(GREETING, PLAIN),
        resource_set_changed=_comes_or_goes,
    )


def only_tools() -> Dialect:
    return Dialect(
        name="bare",
        server_name="bare",
        server_version="1",
        instructions="",
        tools=catalogue(nothing, remember),
    )


def _gated(gate: Gate) -> tuple[Tool, Tool]:
    @tool(Nothing, needs="read")
    def ponder(call: Call, arguments: Nothing) -> Reply:
        """Stop at the gate, then look whether anybody still wants to know"""
        gate.pass_through()
        call.check()
        return Reply("pondered")

    @tool(Nothing, needs="read")
    def heed(call: Call, arguments: Nothing) -> Reply:
        """Stop at the gate and never look whether anybody still wants to know"""
        gate.pass_through()
        return Reply("heeded nobody")

    return ponder, heed


def _names(call: Call) -> list[str]:
    return [entity.name for entity in entities.read_all(call.memory).entities]


def _named_in(change: Change) -> list[str]:
    return [entity.name for rows in (change.before, change.after) for entity in rows.entities]


def _comes_or_goes(client: Client, change: Change) -> bool:
    return bool(_named_in(change))


def _read_entity(call: Call, uri: str) -> str | None:
    prefix, suffix = ENTITY_TEMPLATE.split("{name}")
    if not uri.startswith(prefix):
        return None
    name = uri.removeprefix(prefix).removesuffix(suffix)
    if name not in _names(call):
        raise BadInput(f"nobody is called {name}")
    return name


def _complete(call: Call, argument: str, value: str) -> Sequence[str]:
    if argument == "many":
        return [f"{value}{number}" for number in range(250)]
    return [name for name in _names(call) if name.startswith(value)]


def _greet(call: Call, arguments: Mapping[str, str]) -> str:
    if arguments["name"] == "Nobody":
        raise BadInput("there is no greeting for Nobody")
    return f"Greet {arguments['name']} {arguments.get('tone', 'kindly')}."


NAMES = Resource(
    uri=NAMES_URI,
    name="names",
    title="Names",
    description="Every name",
    mime_type="text/plain",
    read=lambda call: "\n".join(_names(call)),
    touched_by=_comes_or_goes,
)
CLOCK = Resource(
    uri=CLOCK_URI,
    name="clock",
    title="Clock",
    description="What no change of the memory touches",
    read=lambda call: "{}",
    touched_by=lambda client, change: False,
)
ENTITY = ResourceTemplate(
    uri_template=ENTITY_TEMPLATE,
    name="entity",
    title="Entity",
    description="One entity",
    mime_type="text/plain",
    read=_read_entity,
    touched=lambda client, change, uri: uri in [entity_uri(name) for name in _named_in(change)],
    complete=_complete,
)
GREETING = Prompt(
    name="greeting",
    title="Greeting",
    description="How to greet somebody",
    arguments=(
        PromptArgument(name="name", description="Whom", required=True),
        PromptArgument(name="tone", description="How"),
    ),
    render=_greet,
    complete=_complete,
)
PLAIN = Prompt(
    name="plain",
    title="Plain",
    description="A prompt without blanks",
    render=lambda call, arguments: "Just this.",
)
