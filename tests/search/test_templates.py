"""Templates: what passages and questions are embedded as, and which templates are refused."""

import pytest

from polymnia.errors import BadInput
from polymnia.search.templates import (
    DOCUMENT_FIELDS,
    QUERY_FIELDS,
    check_template,
    render_document,
    render_query,
)

MAY = 1_683_417_600_000_000  # 7 May 2023


def test_a_document_template_is_filled_with_what_is_known_of_a_passage() -> None:
    rendered = render_document(
        "{date}, {name} ({type}): {text}", text="Runs {name}", name="Ann", kind="person", at=MAY
    )
    assert rendered == "7 May 2023, Ann (person): Runs {name}"


def test_a_query_template_is_filled_with_the_question() -> None:
    assert render_query("When: {query}", "the {query}") == "When: the {query}"


@pytest.mark.parametrize(
    ("template", "fields", "problem"),
    [
        ("{text} {owner}", DOCUMENT_FIELDS, r"unknown field \{owner\}; use \{text\}, \{name\}"),
        ("{name}", DOCUMENT_FIELDS, r"must contain \{text\}"),
        ("{text}", QUERY_FIELDS, r"unknown field \{text\}"),
        ("", QUERY_FIELDS, r"must contain \{query\}"),
    ],
)
def test_a_template_with_other_fields_is_refused(
    template: str, fields: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        check_template(template, fields, "document")
