"""A memory as one document: decoding it returns everything that was encoded."""

from hypothesis import given
from hypothesis import strategies as st

from polymnia.dialects.document import encode_document, parse_document
from polymnia.model import Entity, Graph, Note, Observation, Relation
from polymnia.search.embedding import pack_vector

words = st.text(max_size=8)
times = st.integers(1, 4_000_000_000_000_000)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
vectors = st.lists(floats, min_size=1, max_size=4).filter(any)
embeddings = st.just(b"") | vectors.map(lambda each: pack_vector(each, len(each), "v"))
notes = st.builds(
    Note,
    key=st.text(min_size=1, max_size=8),
    content=words,
    tags=st.lists(words, unique=True, max_size=3).map(tuple),
    embedding=embeddings,
    created_at=times,
    updated_at=times,
)
entities = st.builds(
    lambda name, kind, said: Entity(
        name,
        kind,
        tuple([Observation(place, text, 0, at, source) for place, (text, at, source) in enumerate(said, 1)]),
        next_ordinal=len(said) + 1,
    ),
    words,
    words,
    st.lists(st.tuples(words, st.just(0) | times, words), max_size=3),
)
relations = st.builds(Relation, words, words, words)


@given(st.lists(entities, max_size=3), st.lists(relations, max_size=3), st.lists(notes, max_size=3))
def test_parsing_reverses_encoding(some: list[Entity], links: list[Relation], kept: list[Note]) -> None:
    assert parse_document(encode_document(Graph(some, links), kept)) == (Graph(some, links), kept)


def test_other_json_is_not_a_document() -> None:
    assert parse_document(b'{"type":"entity","name":"a","entityType":"t","observations":[]}') is None
    assert parse_document(b"[]") is None
    assert parse_document(b'{"a":1}\n{"b":2}') is None
    assert parse_document(b"\xff") is None
