"""A memory as one document: decoding it returns everything that was encoded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymnia.engine.transfer.document import (
    encode_document,
    parse_entity,
    parse_note,
    parse_relation,
)
from polymnia.errors import BadInput
from polymnia.model import Entity, Fact, Graph, Note, Relation
from polymnia.search.embedding import pack_vector

words = st.text(max_size=8)
times = st.integers(1, 4_000_000_000_000_000)
maybe = st.just(0) | times
tags = st.lists(words, unique=True, max_size=3).map(tuple)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
vectors = st.lists(floats, min_size=1, max_size=4).filter(any)
embeddings = st.just(b"") | vectors.map(lambda item: pack_vector(item, len(item), "v"))
notes = st.builds(
    Note,
    key=st.text(min_size=1, max_size=8),
    content=words,
    tags=tags,
    embedding=embeddings,
    created_at=times,
    updated_at=times,
)
ordinals = st.lists(st.integers(1, 50), unique=True, max_size=3).map(sorted)
entities = st.builds(
    lambda name, kind, places, said, about: Entity(
        name,
        kind,
        tuple([Fact(place, *one) for place, one in zip(places, said, strict=False)]),
        about[0],
        max(places, default=0) + 1 + about[1],
        *about[2:],
    ),
    words,
    words,
    ordinals,
    st.lists(st.tuples(words, maybe, maybe, words), min_size=3, max_size=3),
    st.tuples(words, st.integers(0, 2), st.none() | words, maybe, tags, maybe, maybe),
)
relations = st.builds(Relation, words, words, words, maybe)


@given(st.lists(entities, max_size=3), st.lists(relations, max_size=3), st.lists(notes, max_size=3))
def test_parsing_reverses_encoding(
    some: list[Entity], links: list[Relation], kept: list[Note]
) -> None:
    document = json.loads(encode_document(Graph(some, links), kept))
    found = [
        [parse(json.dumps(item).encode(), "") for item in document[section]]
        for section, parse in (
            ("entities", parse_entity),
            ("relations", parse_relation),
            ("notes", parse_note),
        )
    ]
    assert found == [some, links, kept]


@pytest.mark.parametrize(
    ("origins", "sentence"),
    [
        ([{}, {}], "e.origins: expected one for each of the 1 observations, got 2"),
        ([{"ordinal": -1}], "e.origins[0].ordinal: expected more than 0, got -1"),
        (
            [{"validAt": "9999-12-31T23:00:00-02:00"}],
            "e.origins[0].validAt: '9999-12-31T23:00:00-02:00' is not an ISO",
        ),
        ([{"createdAt": "soon"}], "e.origins[0].createdAt: 'soon' is not an ISO 8601 date"),
        ([{"source": 1}], "Expected `str`, got `int`"),
    ],
)
def test_a_mistake_is_named_with_its_place(origins: list[object], sentence: str) -> None:
    shape = {"name": "a", "entityType": "t", "observations": ["x"], "origins": origins}
    with pytest.raises(BadInput) as caught:
        parse_entity(json.dumps(shape).encode(), "e")
    assert sentence in str(caught.value)
