"""Every scenario of the official suites, at every revision they judge: it passes or is an exception with a reason."""

import re
from pathlib import Path

import pytest

from tests.conformance.scenarios import EXCEPTIONS, PASSING
from tests.conformance.suite import Finding, Suite

SUITES = tuple(PASSING)
PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"

Findings = dict[str, Finding]


@pytest.fixture(scope="module")
def found(judges: Path, url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[Suite, Findings]:
    """What each suite finds; a suite is run when the first test asks for it."""
    return _Found(judges, url, tmp_path_factory)


class _Found(dict[Suite, Findings]):
    def __init__(self, judges: Path, url: str, directories: pytest.TempPathFactory) -> None:
        super().__init__()
        self._judges, self._url, self._directories = judges, url, directories

    def __missing__(self, suite: Suite) -> Findings:
        self[suite] = suite.findings(self._judges, self._url, self._directories.mktemp("findings"))
        return self[suite]


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_the_scenarios_are_those_the_suite_lists(suite: Suite, judges: Path) -> None:
    assert {*PASSING[suite], *EXCEPTIONS[suite]} == suite.listed(judges)


@pytest.mark.parametrize(
    ("suite", "scenario"), [(suite, scenario) for suite in SUITES for scenario in PASSING[suite]], ids=str
)
def test_a_scenario_passes(suite: Suite, scenario: str, found: dict[Suite, Findings]) -> None:
    finding = found[suite][scenario]
    assert finding.complaints == []
    assert finding.is_passed


@pytest.mark.parametrize(
    ("suite", "scenario"), [(suite, scenario) for suite in SUITES for scenario in EXCEPTIONS[suite]], ids=str
)
def test_an_exception_is_still_one(suite: Suite, scenario: str, found: dict[Suite, Findings]) -> None:
    assert not found[suite][scenario].is_passed, f"{scenario} passes now: it belongs among those that do"


@pytest.mark.parametrize(
    ("suite", "scenario"), [(suite, scenario) for suite in SUITES for scenario in EXCEPTIONS[suite]], ids=str
)
def test_an_exception_is_refused_in_the_words_of_the_protocol(
    suite: Suite, scenario: str, found: dict[Suite, Findings]
) -> None:
    assert not found[suite][scenario].breaks_the_schema


def test_the_page_names_every_exception_with_its_reason() -> None:
    page = PAGE.read_text("utf-8")
    named = {(scenario, reason) for exceptions in EXCEPTIONS.values() for scenario, reason in exceptions.items()}
    assert [each for each in sorted(named) if f"`{each[0]}`" not in page or each[1] not in page] == []


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_the_page_counts_right(suite: Suite) -> None:
    passing, exceptions = len(PASSING[suite]), len(EXCEPTIONS[suite])
    counts = rf"{passing + exceptions} \| {passing} \| {exceptions}"
    row = rf"^\| {suite.package[-3:]}\.\S+ \| {suite.revision}s? \| {counts} \|$"
    assert re.search(row, PAGE.read_text("utf-8"), re.MULTILINE)
