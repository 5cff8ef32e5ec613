"""Random documents and random query expressions, and FTS5 tables that judge them."""

from collections.abc import Sequence

import apsw
from hypothesis import strategies as st

# A few words, so that documents and expressions often agree; some differ only in their endings,
# some in accents.
WORDS = [
    "tea",
    "teas",
    "run",
    "running",
    "runner",
    "organize",
    "organization",
    "Zoë",
    "zoe",
    "a",
    "x1",
    "user_name",
]
PREFIXES = ["t", "te", "tea", "runn", "running", "organiza", "organizat", "zo", "zoë"]
NAMES = ["name", "labels", "content"]
COLUMNS = {name: name for name in NAMES}

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
documents = st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, texts)), min_size=1, max_size=6)

_bare = st.sampled_from([word for word in WORDS if word != "user_name"])
_quoted = st.lists(st.sampled_from([*WORDS, "-", '""']), max_size=3).map(
    lambda words: f'"{" ".join(words)}"'
)
_phrases = (_bare | _quoted | st.just("user_name")).flatmap(
    lambda first: st.sampled_from([first, first, first, f"{first} + tea"])
)
_near = st.builds(
    lambda phrases, end: f"NEAR({' '.join(phrases)}{end})",
    st.lists(_phrases, min_size=1, max_size=3),
    st.sampled_from(["", ", 0", ", 1", ", 2"]),
)
_filters = st.sampled_from(["name : ", "- name : ", "{name content} : ", "-{labels}:", "CONTENT:"])


def expressions(phrases: st.SearchStrategy[str] = _phrases) -> st.SearchStrategy[str]:
    """Return valid queries in FTS5's syntax that are made of the phrases."""
    items = phrases | st.builds("^ {}".format, phrases) | _near if phrases is _phrases else phrases
    items |= st.builds("{}{}".format, _filters, items)
    lists = st.lists(items, min_size=1, max_size=3).map(" ".join)
    return st.recursive(lists, _combine, max_leaves=5)


def prefix_expressions() -> st.SearchStrategy[str]:
    """Return queries that are made of prefixes only."""
    return expressions(st.sampled_from(PREFIXES).map("{}*".format))


def table(rows: Sequence[dict[str, str]], tokenizer: str) -> apsw.Connection:
    """Return a database with the rows in an FTS5 table `documents`."""
    connection = apsw.Connection(":memory:")
    tokenize = f"{tokenizer} remove_diacritics 2"
    connection.execute(
        f"CREATE VIRTUAL TABLE documents USING fts5 ({', '.join(NAMES)}, tokenize = '{tokenize}')"
    )
    for row in rows:
        connection.execute("INSERT INTO documents VALUES (:name, :labels, :content)", row)
    return connection


def matching_rows(connection: apsw.Connection, query: str) -> list[int]:
    """Return the numbers of the rows that FTS5 finds, from 0."""
    found = connection.execute(
        "SELECT rowid - 1 FROM documents WHERE documents MATCH ? ORDER BY rowid", (query,)
    )
    return [number for (number,) in found]


def _combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from([" AND ", " OR ", " NOT "])
    joined = st.builds("{}{}{}".format, inner, operators, inner)
    grouped = st.builds("({}){}({})".format, inner, operators, inner)
    return joined | grouped | st.builds("{}({})".format, _filters, inner)
