"""The results to expect: the scenarios that pass, and the exceptions with their reasons.

`docs/conformance.md` has the same lists for people.
"""

from tests.conformance.suite import Suite

NO_TASKS = (
    "an extension that Polymnia does not offer: "
    "calls end within seconds, report progress and can be cancelled"
)
NO_SKILLS = "an extension that Polymnia does not offer: it keeps memories, not skills"
NO_ROUTED_ARGUMENTS = "no tool asks for an argument to be repeated in a header"

_HANDSHAKE = (
    "completion-complete",
    "logging-set-level",
    "ping",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-subscribe",
    "resources-templates-read",
    "resources-unsubscribe",
    "server-initialize",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-list",
)
_NEWEST_HANDSHAKE = (
    *_HANDSHAKE,
    "dns-rebinding-protection",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
)
_STATELESS = (
    "caching",
    "completion-complete",
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "server-sse-multiple-streams",
    "server-stateless",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-progress",
    "tools-list",
)

_ASKING = ("tools-call-elicitation", "tools-call-sampling")
_NEWEST_ASKING = (*_ASKING, "elicitation-sep1034-defaults", "elicitation-sep1330-enums")
_INPUT_REQUIRED = (
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
)
_TASKS = (
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-status-notifications",
    "tasks-wire-fields",
)
_SKILLS = ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")

FIRST = Suite("conformance-0.1", "2025-11-25", ("--suite", "all"))
OLDER = Suite("conformance-0.2", "2025-06-18", ("--suite", "all", "--spec-version", "2025-06-18"))
HANDSHAKE = Suite(
    "conformance-0.2", "2025-11-25", ("--suite", "all", "--spec-version", "2025-11-25")
)
STATELESS = Suite(
    "conformance-0.2", "2026-07-28", ("--suite", "all", "--spec-version", "2026-07-28")
)
# Extensions belong to no revision; they are run only along with everything else.
EXTENSIONS = Suite("conformance-0.2", "extension", ("--suite", "all"))

PASSING: dict[Suite, tuple[str, ...]] = {
    FIRST: (*_NEWEST_HANDSHAKE, *_NEWEST_ASKING, "server-sse-polling"),
    OLDER: (*_HANDSHAKE, *_ASKING, "server-session-lifecycle"),
    HANDSHAKE: (
        *_NEWEST_HANDSHAKE,
        *_NEWEST_ASKING,
        "server-session-lifecycle",
        "server-sse-polling",
    ),
    STATELESS: (*_STATELESS, *_INPUT_REQUIRED),
    EXTENSIONS: (),
}
EXCEPTIONS: dict[Suite, dict[str, str]] = {
    FIRST: {},
    OLDER: {},
    HANDSHAKE: {},
    STATELESS: {"http-custom-header-server-validation": NO_ROUTED_ARGUMENTS},
    EXTENSIONS: {**dict.fromkeys(_TASKS, NO_TASKS), **dict.fromkeys(_SKILLS, NO_SKILLS)},
}
