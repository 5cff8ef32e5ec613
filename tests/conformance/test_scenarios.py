"""Check that every scenario of the official suites passes or is an exception with a reason, at
every revision.
"""

import re
from pathlib import Path

import pytest

from tests.conformance.scenarios import EXCEPTIONS, PASSING
from tests.conformance.suite import Finding, Suite

SUITES = tuple(PASSING)
PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"

Findings = dict[str, Finding]


@pytest.fixture(scope="module")
def found(
    judges: Path, url: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[Suite, Findings]:
    """Return the findings of each suite; run a suite when the first test needs it."""
    return _Found(judges, url, tmp_path_factory)


class _Found(dict[Suite, Findings]):
    def __init__(self, judges: Path, url: str, directories: pytest.TempPathFactory) -> None:
        super().__init__()
        self._judges, self._url, self._directories = judges, url, directories

    def __missing__(self, suite: Suite) -> Findings:
        self[suite] = suite.findings(self._judges, self._url, self._directories.mktemp("findings"))
        return self[suite]


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_our_lists_have_every_scenario_of_the_suite(suite: Suite, judges: Path) -> None:
    assert {*PASSING[suite], *EXCEPTIONS[suite]} == suite.listed(judges)


@pytest.mark.parametrize(
    ("suite", "scenario"),
    [(suite, scenario) for suite in SUITES for scenario in PASSING[suite]],
    ids=str,
)
def test_a_scenario_passes(suite: Suite, scenario: str, found: dict[Suite, Findings]) -> None:
    finding = found[suite][scenario]
    assert finding.complaints == []
    assert finding.is_passed


@pytest.mark.parametrize(
    ("suite", "scenario"),
    [(suite, scenario) for suite in SUITES for scenario in EXCEPTIONS[suite]],
    ids=str,
)
def test_an_exception_still_fails(
    suite: Suite, scenario: str, found: dict[Suite, Findings]
) -> None:
    assert not found[suite][scenario].is_passed, f"{scenario} passes now: move it to PASSING"


@pytest.mark.parametrize(
    ("suite", "scenario"),
    [(suite, scenario) for suite in SUITES for scenario in EXCEPTIONS[suite]],
    ids=str,
)
def test_an_exception_does_not_violate_the_schema(
    suite: Suite, scenario: str, found: dict[Suite, Findings]
) -> None:
    assert not found[suite][scenario].violates_the_schema


def test_the_page_names_every_exception_with_its_reason() -> None:
    page = PAGE.read_text("utf-8")
    named = {
        (scenario, reason)
        for exceptions in EXCEPTIONS.values()
        for scenario, reason in exceptions.items()
    }
    assert [
        item for item in sorted(named) if f"`{item[0]}`" not in page or item[1] not in page
    ] == []


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_the_counts_on_the_page_are_right(suite: Suite) -> None:
    passing, exceptions = len(PASSING[suite]), len(EXCEPTIONS[suite])
    counts = rf"{passing + exceptions} \| {passing} \| {exceptions}"
    row = rf"^\| {suite.package[-3:]}\.\S+ \| {suite.revision}s? \| {counts} \|$"
    assert re.search(row, PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("suite", [suite for suite in SUITES if PASSING[suite]], ids=str)
def test_the_page_lists_every_scenario_with_its_result(suite: Suite) -> None:
    column = [suite for suite in SUITES if PASSING[suite]].index(suite)
    rows = re.findall(r"^\| `(\S+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name for name, cells in rows if cells.split(" | ")[column] == "passes"} == set(
        PASSING[suite]
    )
