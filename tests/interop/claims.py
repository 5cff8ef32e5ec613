"""The claims that every client must confirm."""

from jsonschema import Draft202012Validator

from .conversation import GRAPH_URI, MISSING_ENTITY_TEXT, REFUSALS, STEPS, TOOLS, Call
from .transcript import Transcript, Watch


def the_nine_tools_are_listed(heard: Transcript) -> None:
    assert sorted(heard.tools) == sorted(TOOLS)


def every_schema_is_a_valid_schema(heard: Transcript) -> None:
    for tool in heard.tools.values():
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool["outputSchema"])


def every_reply_has_the_text_of_the_reference(heard: Transcript) -> None:
    said = [(step.call.tool, reply.text) for step, reply in zip(STEPS, heard.accepted, strict=True)]
    assert said == [(step.call.tool, step.text) for step in STEPS]


def every_reply_has_the_structured_content_of_the_reference(heard: Transcript) -> None:
    given = [
        (step.call.tool, reply.structured)
        for step, reply in zip(STEPS, heard.accepted, strict=True)
    ]
    assert given == [(step.call.tool, step.structured) for step in STEPS]


def every_structured_result_matches_its_output_schema(heard: Transcript) -> None:
    for step, reply in zip(STEPS, heard.accepted, strict=True):
        Draft202012Validator(heard.tools[step.call.tool]["outputSchema"]).validate(reply.structured)


def an_accepted_call_is_not_an_error(heard: Transcript) -> None:
    assert [reply.text for reply in heard.accepted if reply.is_error] == []


def accepted_arguments_match_the_input_schema(heard: Transcript) -> None:
    assert [step.call for step in STEPS if not _matches_input_schema(heard, step.call)] == []


def rejected_arguments_violate_the_input_schema(heard: Transcript) -> None:
    assert [
        refusal.call for refusal in REFUSALS if _matches_input_schema(heard, refusal.call)
    ] == []


def the_error_for_a_missing_entity_names_it(heard: Transcript) -> None:
    assert (heard.failed.is_error, heard.failed.text) == (True, MISSING_ENTITY_TEXT)


def invalid_arguments_are_tool_errors(heard: Transcript) -> None:
    assert [reply.text for reply in heard.refused if not reply.is_error] == []


def the_error_names_the_path_of_an_invalid_argument(heard: Transcript) -> None:
    for refusal, reply in zip(REFUSALS, heard.refused, strict=True):
        assert [part for part in refusal.path if part not in reply.text] == [], reply.text


def a_failed_call_changes_nothing(heard: Transcript) -> None:
    assert heard.last == heard.accepted[-1]


def the_graph_is_listed_as_a_json_resource(heard: Transcript) -> None:
    assert (GRAPH_URI, "application/json") in [
        (item["uri"], item.get("mimeType")) for item in heard.resources
    ]


def the_resource_reads_as_the_graph(heard: Transcript) -> None:
    [content] = heard.contents
    assert (content["uri"], content["mimeType"], content["text"]) == (
        GRAPH_URI,
        "application/json",
        heard.last.text,
    )


def nothing_is_announced_before_a_subscription(heard: Watch) -> None:
    assert heard.before == ()


def a_write_is_announced_to_a_subscriber(heard: Watch) -> None:
    assert set(heard.during) == {GRAPH_URI}


def nothing_is_announced_after_a_subscription(heard: Watch) -> None:
    assert heard.after == ()


def _matches_input_schema(heard: Transcript, call: Call) -> bool:
    return Draft202012Validator(heard.tools[call.tool]["inputSchema"]).is_valid(call.arguments)


ABOUT_A_CONVERSATION = (
    the_nine_tools_are_listed,
    every_schema_is_a_valid_schema,
    every_reply_has_the_text_of_the_reference,
    every_reply_has_the_structured_content_of_the_reference,
    every_structured_result_matches_its_output_schema,
    an_accepted_call_is_not_an_error,
    accepted_arguments_match_the_input_schema,
    rejected_arguments_violate_the_input_schema,
    the_error_for_a_missing_entity_names_it,
    invalid_arguments_are_tool_errors,
    the_error_names_the_path_of_an_invalid_argument,
    a_failed_call_changes_nothing,
    the_graph_is_listed_as_a_json_resource,
    the_resource_reads_as_the_graph,
)

ABOUT_A_SUBSCRIPTION = (
    nothing_is_announced_before_a_subscription,
    a_write_is_announced_to_a_subscriber,
    nothing_is_announced_after_a_subscription,
)
