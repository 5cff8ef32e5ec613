"""The tools and the prompt of the conformance suites that ask their client something."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder, encode

from polymnia.dialects.base import Call, Prompt, Reply, tool
from polymnia.dialects.questions import Elicited, Question, elicitation, list_roots


class SampledContent(Struct, frozen=True):
    type: str
    text: str = ""


class Sampled(Struct, frozen=True):
    """What the client's model wrote."""

    content: SampledContent | list[SampledContent]
    model: str = ""

    @property
    def text(self) -> str:
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block.text for block in blocks if block.type == "text")


def sampling(
    key: str, text: str, *, max_tokens: int, system: str | None = None
) -> Question[Sampled]:
    """Return a request to the client's model to continue a text."""
    params: dict[str, Any] = {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": max_tokens,
    }
    if system is not None:
        params["systemPrompt"] = system
    return Question(key, "sampling/createMessage", "sampling", params, Decoder(Sampled))


TEXT = {"type": "string"}
NAME = elicitation("user_name", "What is your name?", {"name": TEXT}, required=["name"])
AGREEMENT = elicitation("confirm", "Please confirm", {"ok": {"type": "boolean"}}, required=["ok"])
STEPS = (
    elicitation("step1", "Step 1: What is your name?", {"name": TEXT}, required=["name"]),
    elicitation(
        "step2", "Step 2: What is your favorite color?", {"color": TEXT}, required=["color"]
    ),
)
CONTEXT = elicitation(
    "user_context", "What context should the prompt use?", {"context": TEXT}, required=["context"]
)
CAPITAL = sampling("capital_question", "What is the capital of France?", max_tokens=100)
GREETING = sampling("greeting", "Generate a greeting", max_tokens=50)
ROOTS = list_roots("client_roots")


class Nothing(Struct, frozen=True):
    pass


class Asked(Struct, frozen=True):
    message: str


class Prompted(Struct, frozen=True):
    prompt: str


@tool(Asked, needs="read")
def test_elicitation(call: Call, arguments: Asked) -> Reply:
    """Ask the user"""
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    found = call.ask(
        elicitation("user", arguments.message, properties, required=["username", "email"])
    )
    return Reply(f"User response: {_describe(found)}")


@tool(Prompted, needs="read")
def test_sampling(call: Call, arguments: Prompted) -> Reply:
    """Ask the client's model"""
    return Reply(
        f"LLM response: {call.ask(sampling('text', arguments.prompt, max_tokens=100)).text}"
    )


@tool(Nothing, needs="read")
def test_elicitation_sep1034_defaults(call: Call, arguments: Nothing) -> Reply:
    """Ask the user with defaults"""
    properties: dict[str, Any] = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    found = call.ask(elicitation("defaults", "Please review the defaults", properties, required=[]))
    return Reply(f"Elicitation completed: {_describe(found)}")


@tool(Nothing, needs="read")
def test_elicitation_sep1330_enums(call: Call, arguments: Nothing) -> Reply:
    """Ask the user to choose in every way there is"""
    plain = ["option1", "option2", "option3"]
    first = [
        {"const": f"value{number}", "title": f"{name} Option"}
        for number, name in enumerate(_ORDINALS, 1)
    ]
    choices = [
        {"const": f"value{number}", "title": f"{name} Choice"}
        for number, name in enumerate(_ORDINALS, 1)
    ]
    properties: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": first},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": choices}},
    }
    found = call.ask(elicitation("enums", "Please choose", properties, required=[]))
    return Reply(f"Elicitation completed: {_describe(found)}")


@tool(Nothing, needs="read")
def test_input_required_result_elicitation(call: Call, arguments: Nothing) -> Reply:
    """Ask for a name"""
    return Reply(f"Hello, {(call.ask(NAME).content or {}).get('name')}!")


@tool(Nothing, needs="read")
def test_input_required_result_sampling(call: Call, arguments: Nothing) -> Reply:
    """Ask the client's model"""
    return Reply(call.ask(CAPITAL).text)


@tool(Nothing, needs="read")
def test_input_required_result_list_roots(call: Call, arguments: Nothing) -> Reply:
    """Ask where the client works"""
    return Reply(", ".join(root.uri for root in call.ask(ROOTS).roots))


@tool(Nothing, needs="read")
def test_input_required_result_request_state(call: Call, arguments: Nothing) -> Reply:
    """Ask for an agreement; the state was checked when this runs again"""
    return Reply("state-ok" if call.ask(AGREEMENT).action == "accept" else "declined")


@tool(Nothing, needs="read")
def test_input_required_result_tampered_state(call: Call, arguments: Nothing) -> Reply:
    """Ask for an agreement"""
    return Reply(call.ask(AGREEMENT).action)


@tool(Nothing, needs="read")
def test_input_required_result_multiple_inputs(call: Call, arguments: Nothing) -> Reply:
    """Ask for three things at once"""
    call.require_answers(NAME, GREETING, ROOTS)
    return Reply(
        f"{call.ask(GREETING).text} {_describe(call.ask(NAME))} {len(call.ask(ROOTS).roots)}"
    )


@tool(Nothing, needs="read")
def test_input_required_result_multi_round(call: Call, arguments: Nothing) -> Reply:
    """Ask one thing after the other"""
    return Reply(" ".join([_describe(call.ask(step)) for step in STEPS]))


@tool(Nothing, needs="read")
def test_input_required_result_capabilities(call: Call, arguments: Nothing) -> Reply:
    """Ask whatever the client can be asked"""
    questions: list[Question[Any]] = [
        item for item in (NAME, GREETING, ROOTS) if call.may_ask(item.needs)
    ]
    call.require_answers(*questions)
    return Reply(f"Asked {len(questions)} questions.")


def _render(call: Call, given: Mapping[str, str]) -> str:
    return f"Use this context: {(call.ask(CONTEXT).content or {}).get('context')}"


ASKING_PROMPT = Prompt(
    name="test_input_required_result_prompt",
    title="With a question",
    description="A text to be asked for",
    render=_render,
)
ASKING_TOOLS = (
    test_elicitation,
    test_sampling,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
)
_ORDINALS = ("First", "Second", "Third")


def _describe(found: Elicited) -> str:
    return f"action={found.action}, content={encode(found.content or {}).decode()}"
