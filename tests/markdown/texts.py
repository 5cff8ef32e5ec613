"""Texts that Markdown, YAML, file systems or terminals give another meaning, and random memories
made of them.
"""

from hypothesis import strategies as st

from polymnia.engine.transfer.intake import Item
from polymnia.model import Entity, Fact, Note, Relation
from polymnia.search.embedding import pack_vector

ODD = (
    "", " ", "plain", "two\nlines", "a\n\nb", "ends\n", "\nstarts", "- list", "# title", "## Observations",
    "## Relations", "^o7", "text ^o3", "x\n^o3", '`"json"`', '`["a","b"]`', "[[link]]", "[[a]] r [[b]]",
    "a|b", "tab\tin",
    "  indented", "trail  ", "a\r\nb", "a\rb", "\u2028", "---", "key: value", "<!-- polymnia\n-->", "-->", "é",
    "e\u0301",
    "数据", "*", "+ plus", "%%c%%", "a\n  b\n\tc", "null", "true", "1e5", "2026-01-01", "'q'", '"q"', "#tag", "a: b",
    "[x, y]", "|", ">", "~", "\\", "a\\nb", "\x1b[31m", "con", "../x", "a/b", "a-b", "A-B", ".x", "_relations", "notes",
    "<<<<<<< a\nb\n=======\nc\n>>>>>>> d", "- item ^o3",
)  # fmt: skip
characters = st.characters(codec="utf-8", exclude_characters="\x00")
texts = st.sampled_from(ODD) | st.text(characters, max_size=12)
names = texts.filter(bool)
times = st.integers(1, 4_000_000_000_000_000)
maybe = st.just(0) | times
tags = st.lists(texts, unique=True, max_size=3).map(tuple)
ordinals = st.lists(st.integers(1, 50), unique=True, max_size=4).map(sorted)


@st.composite
def entities(draw: st.DrawFn) -> Entity:
    """Draw an entity as a store returns it."""
    places = draw(ordinals)
    summary = draw(st.none() | texts)
    facts = [Fact(place, draw(texts), draw(times), draw(maybe), draw(texts)) for place in places]
    return Entity(
        draw(names),
        draw(texts),
        tuple(facts),
        str(draw(st.uuids())),
        max(places, default=0) + 1 + draw(st.integers(0, 2)),
        summary,
        0 if summary is None else draw(times),
        draw(tags),
        draw(times),
        draw(times),
    )


vectors = st.lists(
    st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2
).filter(any)
embeddings = st.just(b"") | vectors.map(lambda vector: pack_vector(vector, 2, "v"))
notes = st.builds(
    Note, key=names, content=texts, tags=tags, embedding=embeddings, created_at=times, updated_at=times
)  # fmt: skip


@st.composite
def memories(draw: st.DrawFn) -> list[Item]:
    """Draw the items of a memory, with relations among its entities and to names without one."""
    some = draw(st.lists(entities(), max_size=4, unique_by=lambda entity: entity.name))
    ends = st.sampled_from([item.name for item in some]) | names if some else names
    links = draw(
        st.lists(
            st.builds(Relation, ends, ends, texts, times),
            max_size=5,
            unique_by=lambda relation: relation.key,
        )
    )
    kept = draw(st.lists(notes, max_size=3, unique_by=lambda note: note.key))
    return [*some, *links, *kept]
