"""`polymnia bench`: on tiny files in the forms that it reads, without a model."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from polymnia.cli.main import main

CONVERSATION = {
    "conversation": {
        "session_1_date_time": "9:05 am on 3 April, 2024",
        "session_1": [
            {"speaker": "Otto", "dia_id": "D1:1", "text": "I planted beans by the fence"},
            {"speaker": "Nora", "dia_id": "D1:2", "text": "My brother moved to Lisbon"},
        ],
    },
    "qa": [
        {"question": "What grows by the fence?", "evidence": ["D1:1"], "category": 4},
        {"question": "Zebra quagga xylophone?", "evidence": ["D1:2"], "category": 4},
    ],
}
EARLY = [{"role": "user", "content": "I planted beans by the fence", "has_answer": True}]
LATE = [{"role": "user", "content": "My brother moved to Lisbon", "has_answer": True}]


def question(number: str, text: str, answer: str, sessions: dict[str, Any]) -> dict[str, Any]:
    return {
        "question_id": number,
        "question_type": "single-session-user",
        "question": text,
        "haystack_session_ids": list(sessions),
        "haystack_dates": ["2024/04/03 (Wed) 09:05"] * len(sessions),
        "haystack_sessions": list(sessions.values()),
        "answer_session_ids": [answer],
    }


def bench(path: Path, content: Any, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    """Return what the command prints for programs about a file with that content."""
    data = json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    assert main(["bench", str(path), "--embedder", "none", "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_conversation_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = bench(tmp_path / "locomo.json", [CONVERSATION], capsys)
    assert (result["questions"], result["memories"], result["facts"]) == (2, 1, 2)
    measures = result["rankings"]["words alone"]
    assert list(measures) == ["R@1", "R@10"]
    assert measures["R@1"] == {"questions": 2, "mean": 0.5, "low": 0.0, "high": 1.0}


def test_a_limit_spreads_the_questions_over_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = [CONVERSATION, CONVERSATION]
    result = bench(tmp_path / "locomo.json", content, capsys, "--limit", "2")
    assert (result["questions"], result["memories"], result["facts"]) == (2, 2, 4)
    # The first question of each conversation is the one that words can answer.
    assert result["rankings"]["words alone"]["R@1"]["mean"] == 1


def test_a_measure_says_how_many_questions_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unmarked = [{"role": "user", "content": "My brother moved to Lisbon"}]
    content = [
        question("q1", "What grows by the fence?", "early", {"early": EARLY}),
        question("q2", "Where did my brother move?", "late", {"late": unmarked}),
    ]
    path = tmp_path / "oracle.json"
    measures = bench(path, content, capsys)["rankings"]["words alone"]
    assert (measures["R@1"]["questions"], measures["any@1"]["questions"]) == (1, 2)
    assert main(["bench", str(path), "--embedder", "none"]) == 0
    assert (
        "R@1 and R@10 count only the 1 with a marked turn in the memory" in capsys.readouterr().out
    )


def test_the_sessions_of_an_oracle_file_are_one_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = [
        question("q1", "What grows by the fence?", "early", {"early": EARLY}),
        question("q2", "Where did my brother move?", "late", {"late": LATE}),
        question("q3_abs", "Where did my sister move?", "late", {"late": LATE}),
    ]
    result = bench(tmp_path / "oracle.json.gz", content, capsys)
    assert (result["questions"], result["memories"], result["facts"]) == (2, 1, 2)
    measures = result["rankings"]["words alone"]
    assert list(measures) == ["R@1", "R@10", "any@1", "any@5", "all@5"]
    assert {measure["mean"] for measure in measures.values()} == {1}


def test_a_question_with_other_sessions_has_a_memory_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions = {"early": EARLY, "late": LATE}
    content = [
        question("q1", "What grows by the fence?", "early", sessions),
        question("q2", "Where did my brother move?", "late", sessions),
    ]
    result = bench(tmp_path / "s.json", content, capsys)
    assert (result["questions"], result["memories"], result["facts"]) == (2, 2, 4)


def test_the_table_has_intervals_and_says_what_was_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([CONVERSATION]))
    assert main(["bench", str(path), "--embedder", "none"]) == 0
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "questions R@1 R@10",
        "words alone 2 50.0 [0.0, 100.0] 50.0 [0.0, 100.0]",
        "2 questions about 2 facts in 1 memory",
        "not asked by meaning: the embedder is `none`",
    ]


def test_a_model_that_is_missing_leaves_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([CONVERSATION]))
    assert main(["bench", str(path), "--embedder", f"onnx:{tmp_path}"]) == 0
    printed = capsys.readouterr().out
    assert "words and meaning" not in printed
    assert "not asked by meaning: " in printed
    assert "no model.onnx" in printed


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"{", "not JSON"),
        ("a.json", b"\xff", "not JSON"),
        ("a.json.gz", b"[]", "not a whole gzip file"),
        ("a.json.gz", gzip.compress(b"[1, 2, 3]", mtime=0)[:-4], "not a whole gzip file"),
        ("a.json", b"[]", "not a set of questions"),
        ("a.json", b'{"conversation": {}, "qa": []}', "not a set of questions"),
        ("a.json", b"[7]", "not a set of questions"),
        ("a.json", b'[{"haystack_sessions": []}]', "has no 'haystack_session_ids'"),
        ("a.json", b'[{"conversation": {}, "qa": [{}]}]', "has no 'category'"),
        ("a.json", b'[{"conversation": {}, "qa": []}]', "no question has an answer"),
    ],
)
def test_a_file_in_another_form_is_refused(
    name: str, content: bytes, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["bench", str(path), "--embedder", "none"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"polymnia: {path}: ")
    assert problem in error


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(tmp_path / "gone.json")]) == 1
    assert f"{tmp_path / 'gone.json'}: No such file" in capsys.readouterr().err
