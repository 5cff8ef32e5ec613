"""Recall by words on every store.

Kinds of match, names, times, conversations, filters, and invariants.
"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft, FactAddition, Hit, PassageKey, Within
from polymnia.search.terms import fold
from polymnia.stores import open_store
from tests.behaviour.graphs import ME, create
from tests.oracle import MemoryStore

LIBRARY = (
    EntityDraft(
        "Caroline", "person", ("Adopted a puppy from the shelter", "Paints sunsets in her studio")
    ),
    EntityDraft(
        "Melanie", "person", ("Runs marathons", "Paints portraits", "Her favorite color is teal")
    ),
    EntityDraft(
        "Redis cache", "service", ("listens on port 6380", "evicts the least recently used keys")
    ),
    EntityDraft("getUserName", "function", ("returns the user_name column", "100% sure: ->>")),
    EntityDraft("北京大学", "大学", ("位于北京市海淀区",)),
)


def hits(memory: Memory, question: str, limit: int = 10, within: Within | None = None) -> list[Hit]:
    return recall(memory, question, limit=limit, within=within).hits


def keys(
    memory: Memory, question: str, limit: int = 10, within: Within | None = None
) -> list[PassageKey]:
    return [hit.passage.key for hit in hits(memory, question, limit, within)]


def talk(memory: Memory, when: datetime, *turns: tuple[str, str]) -> None:
    at = int(when.timestamp()) * 1_000_000
    facts.add(
        memory,
        [FactAddition(name, (text,), at) for name, text in turns],
        by=ME,
        skip_repeats=False,
    )


@pytest.mark.parametrize(
    ("question", "first", "kind"),
    [
        ("redis cache", ("Redis cache", 0), "name"),
        ("Runs marathons", ("Melanie", 1), "text"),
        ("recently used keys", ("Redis cache", 2), "phrase"),
        ("keys evicted", ("Redis cache", 2), "all words"),
        ("which port does it listen on", ("Redis cache", 1), "all words"),
        ("shelter for a kitten", ("Caroline", 1), "any word"),
        ("marat", ("Melanie", 1), "prefix"),
        ("->>", ("getUserName", 2), "substring"),
        ("user name", ("getUserName", 1), "phrase"),
        ("海淀", ("北京大学", 1), "all words"),
        ("海", ("北京大学", 1), "substring"),
    ],
)
def test_every_kind_of_match_is_found_and_named(
    memory: Memory, question: str, first: PassageKey, kind: str
) -> None:
    create(memory, *LIBRARY)
    best = hits(memory, question)[0]
    assert (best.passage.key, best.match_kind) == (first, kind)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Wo schlafen Katzen?", 1),
        ("¿Quiénes gestionan esto?", 2),
        ("Quels journaux supprime-t-on ?", 3),
        ("متى نحذف سجل؟", 4),
    ],
)
def test_a_word_of_another_language_is_found_in_other_forms(
    memory: Memory, question: str, first: int
) -> None:
    create(
        memory,
        EntityDraft(
            "notes",
            "note",
            (
                "Die Katze liegt auf dem Sofa.",
                "Una empresa lo gestiona.",
                "Le journal est supprimé.",
                "تحذف السجلات بعد شهر",
                "hundred dormant journeys",
            ),
        ),
    )
    assert keys(memory, question)[0] == ("notes", first)


def test_a_rare_short_form_does_not_outweigh_the_words_that_were_asked_for(memory: Memory) -> None:
    documents = [f"document {number} is in the archive" for number in range(20)]
    create(
        memory,
        EntityDraft("Ann", "person", ("the doc is out", "the document about turbines", *documents)),
    )
    assert keys(memory, "document about turbines")[0] == ("Ann", 2)
    assert keys(memory, "documents in the archive", 5).count(("Ann", 1)) == 0


def test_a_text_that_names_the_asked_date_is_found_though_it_was_said_at_another(
    memory: Memory,
) -> None:
    create(memory, EntityDraft("Sync", "meeting"))
    talk(
        memory,
        datetime(2023, 5, 22, tzinfo=UTC),
        ("Sync", "[22 May 2023] Launch postponed to 19 June 2023"),
    )
    talk(
        memory,
        datetime(2023, 6, 12, tzinfo=UTC),
        ("Sync", "[12 June 2023] The office was painted all white"),
    )
    assert keys(memory, "What is planned for 19 June 2023?")[0] == ("Sync", 1)


def test_a_question_may_ask_for_yesterday(memory: Memory) -> None:
    create(memory, EntityDraft("Sync", "meeting"))
    today = datetime.now(UTC)
    talk(memory, today - timedelta(60), ("Sync", "We agreed on a budget of five thousand"))
    talk(memory, today - timedelta(1), ("Sync", "We agreed on a new logo"))
    talk(memory, today - timedelta(30), ("Sync", "Yesterday it rained all day long"))
    assert keys(memory, "What did we agree on yesterday?")[0] == ("Sync", 2)
    assert hits(memory, "What did we agree on yesterday?")[0].reasons[-1].startswith("time: ")


def test_a_word_that_is_asked_for_twice_counts_twice(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("A", "text", ("shells are heated",)),
        EntityDraft("Between", "text", ("else", "other")),
    )
    create(memory, EntityDraft("B", "text", ("wings are heavy",)))
    assert keys(memory, "wings or shells, and what shells?")[0] == ("A", 1)
    assert keys(memory, "wings or shells, and what wings?")[0] == ("B", 1)


def test_a_wrong_name_does_not_hide_the_answer(memory: Memory) -> None:
    create(
        memory,
        EntityDraft("Ann", "person", ("adopted a black puppy from the shelter in March",)),
        EntityDraft(
            "Ben",
            "person",
            tuple([f"talked about the weather in town {town}, and a puppy" for town in range(20)]),
        ),
    )
    assert keys(memory, "When did Ben adopt a black puppy from the shelter?")[0] == ("Ann", 1)


def test_facts_of_a_named_entity_come_first(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert keys(memory, "What does Melanie paint?")[0] == ("Melanie", 2)
    assert keys(memory, "What are Caroline's paintings of?")[0] == ("Caroline", 2)


def test_a_part_of_a_name_finds_facts_of_its_entity(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert keys(memory, "which port does redis have")[0] == ("Redis cache", 1)


def test_a_date_in_the_question_favours_passages_of_that_date(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    talk(memory, datetime(2023, 5, 8, tzinfo=UTC), ("Ann", "I had dinner with Tom"))
    talk(memory, datetime(2023, 7, 9, tzinfo=UTC), ("Ann", "I had dinner with Sue"))
    best = hits(memory, "Who did Ann have dinner with in July 2023?")[0]
    assert best.passage.text == "I had dinner with Sue"
    assert best.signals.date == 1
    assert (
        hits(memory, "Who did Ann have dinner with on 8 May 2023?")[0].passage.text
        == "I had dinner with Tom"
    )


def test_a_question_for_a_time_favours_texts_with_a_time(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("camping was fun", "camping was last week")))
    assert keys(memory, "When was the camping?")[0] == ("Ann", 2)


def test_an_answer_is_found_by_the_question_before_it(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person"))
    talk(
        memory,
        datetime(2023, 5, 8, 9, tzinfo=UTC),
        ("Ann", "What did you name your turtle?"),
        ("Ben", "He is called Shelly because of his back"),
        ("Ann", "Lovely weather we are having today here"),
    )
    best = hits(memory, "What is the name of Ben's turtle?")[0]
    assert (best.passage.text, best.match_kind) == (
        "He is called Shelly because of his back",
        "context",
    )
    assert best.signals.before > 0


def test_a_fact_does_not_add_the_fact_written_after_it(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert keys(memory, "marathons") == [("Melanie", 1)]


def test_a_statement_that_ends_with_a_question_is_not_a_question(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"))
    statement = (
        "I planted tomatoes and beans behind the shed this spring, and they grow well. And you?"
    )
    question = (
        "Did you say that somebody planted tomatoes and beans behind the shed this spring or not?"
    )
    talk(memory, datetime(2023, 5, 8, tzinfo=UTC), ("Ann", question), ("Ann", statement))
    first, second = hits(memory, "tomatoes and beans behind the shed")[:2]
    assert first.passage.text == statement
    assert 0 < first.signals.asks < 0.2
    assert second.signals.asks == 1


def test_a_long_text_is_found_by_its_middle_and_shown_there(memory: Memory) -> None:
    filler = [f"Paragraph {number} is about gardens and rivers." for number in range(340)]
    filler[170] = "The valve of the boiler opens at three bar."
    create(
        memory,
        EntityDraft("handbook", "document", ("\n\n".join(filler),)),
        *[EntityDraft(f"boiler {number}", "thing", ("a boiler",)) for number in range(20)],
    )
    best = hits(memory, "At how many bar does the valve of the boiler open?")[0]
    assert best.passage.entity == "handbook"
    assert "opens at three bar" in best.excerpt


def test_a_speaker_before_a_text_counts_like_the_entity_it_belongs_to(memory: Memory) -> None:
    turns = (
        "Ann: I adopted a puppy",
        "Ben: I adopted a puppy from the shelter in town, and Ann was there",
        "Ann: Lovely weather we are having",
        "Ben: Indeed it is",
    )
    create(memory, EntityDraft("session 1", "conversation", turns))
    best = hits(memory, "Which animal did Ann adopt, a puppy?")[0]
    assert best.passage.text == turns[0]
    assert "about: Ann" in best.reasons


def test_a_title_before_a_colon_is_no_speaker() -> None:
    memory = Memory(MemoryStore())
    titles = [f"Turbo: part {number}" for number in range(2)]
    mentions = [f"part {number} was measured with Turbo twice" for number in range(12)]
    create(memory, EntityDraft("reports", "folder", (*titles, *mentions)))
    found = recall(memory, "Which part was measured with Turbo?").hits
    assert found
    assert not any(hit.signals.entity for hit in found)


def test_repeated_facts_are_shown_once(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person"), EntityDraft("Ben", "person", ("likes green tea",)))
    for _ in range(5):
        said = [
            FactAddition("Ann", ("likes green tea",)),
            FactAddition("Ann", ("Likes green tea!",)),
        ]
        facts.add(memory, said, by=ME, skip_repeats=False)
    found = hits(memory, "who likes tea")
    assert sorted(hit.passage.entity for hit in found) == ["Ann", "Ben"]
    assert {hit.passage.entity: hit.alike for hit in found} == {"Ann": 9, "Ben": 0}


def test_a_filter_by_type_name_or_time_restricts_the_hits(memory: Memory) -> None:
    create(memory, *LIBRARY)
    assert {key[0] for key in keys(memory, "paints port", within=Within(types=("service",)))} == {
        "Redis cache"
    }
    assert keys(memory, "paints", within=Within(names=("Melanie",))) == [("Melanie", 2)]
    assert keys(memory, "paints", within=Within(until=5)) == []


def test_an_exact_name_comes_first_however_many_passages_contain_it(memory: Memory) -> None:
    create(
        memory, EntityDraft("Other", "thing", tuple([f"ann ann {number}" for number in range(150)]))
    )
    create(memory, *[EntityDraft(f"Ann {number}", "person") for number in range(60)])
    create(memory, EntityDraft("Ann", "person", ("quiet",)))
    for question in ("Ann", " ann\n"):
        best = hits(memory, question)[0]
        assert (best.passage.key, best.match_kind) == (("Ann", 0), "name")


def test_an_empty_question_finds_nothing(memory: Memory) -> None:
    assert keys(memory, "anything") == []
    create(memory, *LIBRARY)
    assert keys(memory, "") == []
    assert keys(memory, "xyzzy qwertz") == []
    assert keys(memory, "paints", limit=0) == []


def test_recall_says_why_meaning_was_left_out(memory: Memory) -> None:
    assert "no embedder" in recall(memory, "anything").note


SPOKEN = (
    "red green blue tea coffee ann ben likes hates runs 北京 getUserName "
    "May 2023 the of when who a?"
)
WORDS = st.sampled_from(SPOKEN.split())
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
NAMES = st.sampled_from(["Ann", "Ben", "Red Tea", "getUserName", "北京", "May", "the"])
MEMORIES = st.lists(
    st.builds(EntityDraft, NAMES, st.sampled_from(["person", "thing"]), st.lists(TEXTS).map(tuple)),
    max_size=6,
)
ANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def remembered(drafts: list[EntityDraft], url: str = "memory:") -> Memory:
    memory = Memory(open_store(url))
    create(memory, *drafts)
    return memory


@ANY
@given(MEMORIES, TEXTS, st.sampled_from([Within(types=("person",)), Within(names=("Ann", "May"))]))
def test_a_filter_never_changes_the_order_of_what_remains(
    drafts: list[EntityDraft], question: str, within: Within
) -> None:
    memory = remembered(drafts)
    everything = [hit.passage for hit in hits(memory, question, 100)]
    allowed = keys(memory, question, 100, within)
    assert [
        passage.key for passage in everything if within.has(passage) and passage.key in allowed
    ] == [key for key in allowed if key in {passage.key for passage in everything}]


TURNS = st.lists(st.tuples(NAMES, TEXTS, st.sampled_from([1_000, 2_000])), max_size=12)
TIMES = [
    Within(since=1_500),
    Within(names=("Ann",), until=3_000),
    Within(types=("person",)),
    Within(names=("Ben", "May")),
]


@ANY
@given(MEMORIES, TURNS, TEXTS, st.sampled_from(TIMES), st.booleans())
def test_a_filter_changes_no_score_in_a_conversation(
    drafts: list[EntityDraft],
    turns: list[tuple[str, str, int]],
    question: str,
    within: Within,
    ask_when: bool,
) -> None:
    memory = remembered([*drafts, *[EntityDraft(name, "person") for name, *_ in turns]])
    for name, text, at in turns:
        facts.add(memory, [FactAddition(name, (text,), at)], by=ME, skip_repeats=False)
    question = f"When did {question}" if ask_when else question
    everything = {hit.passage.key: hit.score for hit in hits(memory, question, 100)}
    filtered = {hit.passage.key: hit.score for hit in hits(memory, question, 100, within)}
    assert {key: score for key, score in filtered.items() if key in everything} == {
        key: score for key, score in everything.items() if key in filtered
    }


@ANY
@given(MEMORIES, TEXTS, NAMES)
def test_another_fact_never_removes_an_exact_name_from_first_place(
    drafts: list[EntityDraft], text: str, name: str
) -> None:
    memory = remembered([*drafts, EntityDraft(name, "thing"), EntityDraft("Other", "thing")])
    assert keys(memory, name)[0] == (name, 0)
    facts.add(memory, [FactAddition("Other", (text,))], by=ME, skip_repeats=False)
    assert keys(memory, name)[0] == (name, 0)


@ANY
@given(MEMORIES, st.data())
def test_an_fact_is_found_first_by_its_own_text(
    drafts: list[EntityDraft], data: st.DataObject
) -> None:
    """Skip texts that are also names: names come first."""
    memory = remembered(drafts)
    known = entities.read_all(memory).entities
    names = {fold(entity.name) for entity in known}
    texts = sorted({text for entity in known for text in entity.texts if fold(text) not in names})
    assume(texts)
    text = data.draw(st.sampled_from(texts))
    assert hits(memory, text)[0].passage.text.lower() == text.lower()


@ANY
@given(MEMORIES, TEXTS)
def test_sqlite_finds_what_the_oracle_finds(drafts: list[EntityDraft], question: str) -> None:
    """Compare hits, ignoring the order of equal scores."""
    oracle, memory = Memory(MemoryStore()), Memory(open_store(":memory:"))
    for item in (oracle, memory):
        create(item, *drafts)
    mine, theirs = hits(memory, question, 100), hits(oracle, question, 100)
    assert [round(hit.score, 6) for hit in mine] == [round(hit.score, 6) for hit in theirs]
    assert {hit.passage.key: hit.match_kind for hit in mine} == {
        hit.passage.key: hit.match_kind for hit in theirs
    }
    memory.store.close()


def test_a_long_text_full_of_the_words_of_a_question_is_scored_in_one_pass(memory: Memory) -> None:
    create(memory, EntityDraft("log", "file", ("GET error " * 50_000,)))
    assert recall(memory, "error GET").hits[0].passage.key == ("log", 1)


def test_a_very_long_question_or_word_is_no_problem(memory: Memory) -> None:
    create(memory, EntityDraft("Ann", "person", ("likes tea",)))
    assert recall(memory, "x" * 50_000).hits == []
    page = "tea " + " ".join(
        f"zzq{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}k" for number in range(5_000)
    )
    assert recall(memory, page).hits[0].passage.key == ("Ann", 1)


def test_a_question_that_names_an_entity_shows_its_facts_if_nothing_else_matches(
    memory: Memory,
) -> None:
    create(memory, EntityDraft("Ada", "person", ("likes tea", "is from London")))
    create(memory, EntityDraft("Zoe", "person", ("paints",)))
    found = hits(memory, "What does Ada drink?")
    assert {hit.passage.key for hit in found} == {("Ada", 1), ("Ada", 2)}
    assert all(hit.is_weak and "about: Ada" in hit.reasons for hit in found)
    assert hits(memory, "What does Bob drink?") == []
    assert hits(memory, "What does Ada drink?", within=Within(types=("city",))) == []
