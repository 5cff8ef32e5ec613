"""Check the recall benchmark on a small conversation."""

import gzip
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bench.recall import editions, perspectives, scale, vectors
from bench.recall.__main__ import main
from bench.recall.mcp import McpStage
from bench.recall.measures import score
from bench.recall.questions import Asked
from bench.recall.sets import load_cases
from bench.recall.smart import load_collection
from bench.recall.stage import Stage
from bench.recall.variants import VARIANTS
from tests.embedders.ollama import serve_ollama

AGENT_MEMORY = """
[[session]]
date = 2026-03-02
facts = [["kiln", "thing", "reaches 1,280 degrees"], ["choir", "group", "sings on Tuesdays"]]
[[questions]]
kind = "fact"
list = [{ ask = "How hot does the kiln get?", needs = ["1,280 degrees"] }]
"""

CONVERSATION = {
    "sample_id": "garden",
    "conversation": {
        "speaker_a": "Nora",
        "speaker_b": "Otto",
        "session_1_date_time": "9:05 am on 3 April, 2024",
        "session_1": [
            {"speaker": "Nora", "dia_id": "D1:1", "text": "What did you plant by the fence?"},
            {"speaker": "Otto", "dia_id": "D1:2", "text": "Three rows of beans, they climb nicely"},
            {
                "speaker": "Nora",
                "dia_id": "D1:3",
                "text": "Look at this!",
                "blip_caption": "a photo of a red wheelbarrow",
            },
        ],
        "session_2_date_time": "6:40 pm on 20 June, 2024",
        "session_2": [
            {"speaker": "Otto", "dia_id": "D2:1", "text": "We harvested the beans yesterday"},
            {"speaker": "Nora", "dia_id": "D2:2", "text": "My brother moved to Lisbon"},
        ],
    },
    "qa": [
        {
            "question": "When did Otto harvest the beans?",
            "answer": "19 June",
            "evidence": ["D2:1"],
            "category": 2,
        },
        {
            "question": "What did Otto plant by the fence?",
            "answer": "beans",
            "evidence": ["D1:2"],
            "category": 4,
        },
        {
            "question": "What colour is Nora's wheelbarrow?",
            "answer": "red",
            "evidence": ["D1:3"],
            "category": 4,
        },
        {
            "question": "Where do people of Nora live?",
            "answer": "Lisbon",
            "evidence": ["D2:2; D1:1"],
            "category": 1,
        },
        {"question": "Who stole the beans?", "answer": "", "evidence": ["D1:2"], "category": 5},
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "garden.json"
    file.write_bytes(msgspec.json.encode([CONVERSATION]))
    return file


def test_a_conversation_is_loaded_in_order_with_its_times(path: Path) -> None:
    (case,) = load_cases(path)
    assert [told.label for told in case.told] == ["1:1", "1:2", "1:3", "2:1", "2:2"]
    assert case.told[2].text == "Look at this! [shared image: a photo of a red wheelbarrow]"
    assert case.told[0].valid_at == 1712135100 * 1_000_000
    assert [(asked.kind, set(asked.answers)) for asked in case.asked][-1] == (
        "multi-hop",
        {"2:2", "1:1"},
    )
    assert len(case.asked) == 4


ABSTRACTS = """.I 1
.T
wings
.W
wings in a slipstream
.I 2
.T
Shells
.W
the buckling of heated cylinders
"""
QUERIES = """.I 1
.W
buckling cylinders
.I 4
.W
nothing judged
"""


@pytest.mark.parametrize(
    ("files", "grade", "gain"),
    [
        (("cran.all.1400", "cran.qry", "cranqrel"), 2, 3),
        (("CISI.ALL", "CISI.QRY", "CISI.REL"), 0, 1),
    ],
)
def test_a_collection_is_read_with_its_judgements(
    tmp_path: Path, files: tuple[str, str, str], grade: int, gain: int
) -> None:
    for name, text in zip(files, (ABSTRACTS, QUERIES, f"1 2 {grade} 0\n"), strict=True):
        (tmp_path / name).write_text(text)
    (case,) = load_collection(tmp_path)
    assert [told.text for told in case.told] == [
        "wings in a slipstream",
        "Shells the buckling of heated cylinders",
    ]
    assert [(asked.text, asked.answers) for asked in case.asked] == [
        ("buckling cylinders", {"2": gain})
    ]


def test_questions_are_varied(path: Path) -> None:
    cases = load_cases(path)
    asked = {
        name: [item.text for case in vary(cases) for item in case.asked]
        for name, vary in VARIANTS.items()
    }
    assert (
        asked["plain"][0]
        == asked["no-times"][0]
        == asked["one-store"][0]
        == "When did Otto harvest the beans?"
    )
    assert asked["wrong-names"][0] == "When did Nora harvest the beans?"
    assert asked["keywords"][0] == "otto harvest beans"
    assert all(typed != plain for typed, plain in zip(asked["typos"], asked["plain"], strict=True))
    assert {told.valid_at for case in VARIANTS["no-times"](cases) for told in case.told} == {0}
    (one,) = VARIANTS["one-store"](cases)
    assert one.told[0].label == "garden 1:1"
    assert set(one.asked[0].answers) == {"garden 2:1"}


def test_every_ranking_is_measured(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path)]) == 0
    printed = capsys.readouterr().out
    overall = {
        row.split(" | ")[0][2:]: row.split(" | ")
        for row in printed.splitlines()
        if " | all | " in row
    }
    assert list(overall) == [
        "whole query as substring",
        "BM25, all words",
        "BM25, any word",
        "vectors alone",
        "RRF of both",
        "polymnia, words alone",
        "polymnia, words and meaning",
    ]
    assert float(overall["polymnia, words and meaning"][4].split()[0]) == 100.0
    assert float(overall["whole query as substring"][5].split()[0]) == 0.0
    assert "5 observations embedded" in printed


def test_a_score_counts_what_is_found_and_at_which_rank() -> None:
    measured = score(["x", "a", "y", "b"], Asked("?", "kind", {"a": 1, "b": 1, "c": 1}))
    assert measured.recall == (0.0, 2 / 3, 2 / 3, 2 / 3)
    assert measured.reciprocal_rank == 0.5
    assert measured.gain is not None
    assert 0 < measured.gain < 1
    assert score(["a"], Asked("?", "kind", {"a": 3})).gain == 1
    assert measured.any_at_1 is None


def test_sessions_are_ranked_by_their_first_turn() -> None:
    asked = Asked("?", "kind", {}, frozenset({"s2", "s3"}))
    measured = score(["s1:1", "s1:2", "s2:5", "s4:1", "s5:1", "s6:1", "s3:1"], asked)
    assert (measured.any_at_1, measured.any_at_5, measured.all_at_5) == (0.0, 1.0, 0.0)
    assert measured.recall is None


SESSIONS = [
    {
        "question_id": "q1_abs",
        "question_type": "single-session-user",
        "question": "Where does my sister live?",
        "haystack_session_ids": ["late"],
        "haystack_dates": ["2024/06/20 (Thu) 18:40"],
        "haystack_sessions": [[{"role": "user", "content": "My brother moved to Lisbon"}]],
        "answer_session_ids": ["late"],
    },
    {
        "question_id": "q2",
        "question_type": "single-session-user",
        "question": "What did I plant by the fence?",
        "haystack_session_ids": ["early"],
        "haystack_dates": ["2024/04/03 (Wed) 09:05"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I planted beans by the fence", "has_answer": True},
                {"role": "assistant", "content": "Beans climb nicely", "has_answer": True},
            ],
        ],
        "answer_session_ids": ["early"],
    },
]


def test_longmemeval_is_pooled_in_the_order_of_its_sessions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sessions.json.gz"
    file.write_bytes(gzip.compress(msgspec.json.encode(SESSIONS)))
    (case,) = load_cases(file)
    assert [told.label for told in case.told] == ["early:0", "late:0"]
    (asked,) = case.asked
    assert (asked.answers, asked.sessions) == ({"early:0": 1}, frozenset({"early"}))
    assert main([str(file), "--embedder", "none"]) == 0
    head, *_, last = capsys.readouterr().out.strip().splitlines()
    assert "| any@1 | any@5 | all@5 |" in head
    assert last.startswith("| polymnia, words alone | all | 1 | 100.0 [100.0, 100.0] |")


def test_scale_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert scale.main(["--facts", "200", "--questions", "3", "--writes", "3"]) == 0
    printed = capsys.readouterr().out
    assert "words and meaning:" in printed
    assert "with a model that embeds it:" in printed
    judged = [line for line in printed.splitlines() if ", budget <= " in line]
    assert len(judged) == 2
    assert all(line.endswith((": met", ": missed")) for line in judged)


def test_vector_search_reports_the_share_that_it_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vectors.main(["--count", "700", "--questions", "20"]) == 0
    printed = capsys.readouterr().out
    assert "700 vectors of 384 numbers, 20 questions" in printed
    assert printed.count("100.00 % of them found") == 3  # all vectors of a small set are compared
    np.save(tmp_path / "own.npy", np.random.default_rng(1).normal(size=(150, 8)))
    assert vectors.main(["--file", str(tmp_path / "own.npy"), "--questions", "10"]) == 0
    assert "140 vectors of 8 numbers, 10 questions" in capsys.readouterr().out


def test_perspectives_are_compared_with_one_vector(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_ollama() as ollama:
        assert perspectives.main([str(path), "--embedder", f"ollama:bag@{ollama.url}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(perspectives.RANKINGS)
    assert lines[2].startswith("| one vector of {text} | ")
    numbers = [[float(cell) for cell in line.split("|")[2:-1]] for line in lines[2:]]
    assert all(0 <= number <= 100 for row in numbers for number in row)
    assert numbers[0][-1] > 0


def test_recall_through_the_protocol_ranks_as_the_engine_does(path: Path, tmp_path: Path) -> None:
    (case,) = load_cases(path)
    homes = [tmp_path / way for way in ("engine", "mcp")]
    for home in homes:
        home.mkdir()
    with (
        closing(Stage(case, homes[0], None)) as engine,
        closing(McpStage(case, homes[1], None)) as protocol,
    ):
        direct = engine.rankings()["polymnia, words alone"]
        remote = protocol.rankings()["through MCP, words alone"]
        found = {asked.text: direct(asked.text) for asked in case.asked}
        assert {asked.text: remote(asked.text) for asked in case.asked} == found
    assert any(found.values())


@pytest.mark.parametrize(
    "arguments", [("--through", "mcp"), ("--coverage", "40"), ("--variant", "no-names")]
)
def test_the_questions_can_be_asked_in_other_ways(
    path: Path, arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(path), *arguments, "--embedder", "local"]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if " all |" in line]
    assert "words and meaning" in rows[-1][1]
    assert float(rows[-1][6].split()[0]) > 50  # R@10


@pytest.mark.slow
def test_an_edition_is_compared_with_itself(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "memory.toml"
    facts.write_text(AGENT_MEMORY)
    here = Path(__file__).parents[1]
    assert editions.main([str(path), str(facts), "--other", str(here)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| 1000 ")]
    assert len(rows) == 2
    for row in rows:
        ours, same_call = row.strip("| ").split(" | ")[1:3]
        assert ours == same_call
    assert "100.0 %" in rows[0]
