"""`polymnia bench`: on tiny files in the forms that it reads, without a model."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from polymnia.cli.main import main
from polymnia.evaluation.files import load_file
from polymnia.evaluation.questions import Told

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


def chat(folder: Path, probing: dict[str, Any]) -> None:
    """Write a chat in the form of BEAM."""
    turn = [
        {
            "role": "user",
            "id": 0,
            "time_anchor": "March-15-2024",
            "content": "I planted beans by the fence ->-> 1,1",
        },
        {"role": "assistant", "id": 1, "content": "Beans by the fence sound fine!"},
        {"role": "user", "id": 2, "content": "My brother moved to Lisbon ->-> 1,2"},
    ]
    (folder / "probing_questions").mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": [turn]}]))
    (folder / "probing_questions/probing_questions.json").write_text(json.dumps(probing))


def test_each_chat_of_a_folder_is_a_memory_of_what_the_user_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update = {"original_info": [0], "updated_info": [2]}
    probing = {
        "abstention": [{"question": "Who built the fence?"}],
        "information_extraction": [
            {"question": "What grows by the fence?", "source_chat_ids": [0, 1]},
            {"question": "What did you say of beans?", "source_chat_ids": [1]},
        ],
        "knowledge_update": [{"question": "My brother, my fence?", "source_chat_ids": update}],
    }
    for number in ("2", "10"):
        chat(tmp_path / number, probing)
    assert main(["bench", str(tmp_path), "--embedder", "none", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["questions"], result["memories"], result["facts"]) == (4, 2, 4)
    # A question with two messages as evidence finds one of them first.
    assert result["rankings"]["words alone"]["R@1"]["mean"] == 0.75
    first, second = load_file(tmp_path)
    assert (first.name, second.name) == ("2", "10")
    assert first.told[1] == Told("user", "My brother moved to Lisbon", 1_710_460_800_000_000, "2")
    assert [asked.kind for asked in first.asked] == ["information extraction", "knowledge update"]


@pytest.mark.parametrize(
    ("probing", "problem"),
    [
        ({"a": [{"question": "?", "source_chat_ids": "Session 4"}]}, "has 'Session 4'"),
        ({"a": [{"source_chat_ids": [0]}]}, "has no 'question'"),
    ],
)
def test_a_chat_in_another_form_is_refused(
    probing: dict[str, Any], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat(tmp_path / "1", probing)
    assert main(["bench", str(tmp_path), "--embedder", "none"]) == 1
    assert problem in capsys.readouterr().err


def test_a_folder_without_chats_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(tmp_path), "--embedder", "none"]) == 1
    assert "no chats; needed are folders with chat.json" in capsys.readouterr().err


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
