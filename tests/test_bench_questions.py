"""The sets of questions that the benchmarks read: tiny files in each form."""

import gzip
import json
from pathlib import Path
from typing import Any

from bench.recall.files import load_file
from bench.recall.questions import Case, Told

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


def load(path: Path, content: Any) -> list[Case]:
    """Return the cases of a file with that content."""
    data = json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return load_file(path)


def counts(cases: list[Case]) -> tuple[int, int, int]:
    """Return how many questions, memories and facts there are."""
    questions = sum(len(case.asked) for case in cases)
    return questions, len(cases), sum(len(case.told) for case in cases)


def test_a_conversation_is_a_memory(tmp_path: Path) -> None:
    assert counts(load(tmp_path / "locomo.json", [CONVERSATION])) == (2, 1, 2)


def test_a_session_may_answer_without_a_marked_turn(tmp_path: Path) -> None:
    unmarked = [{"role": "user", "content": "My brother moved to Lisbon"}]
    content = [
        question("q1", "What grows by the fence?", "early", {"early": EARLY}),
        question("q2", "Where did my brother move?", "late", {"late": unmarked}),
    ]
    (case,) = load(tmp_path / "oracle.json", content)
    assert [bool(asked.answers) for asked in case.asked] == [True, False]
    assert [asked.sessions for asked in case.asked] == [{"early"}, {"late"}]


def test_the_sessions_of_an_oracle_file_are_one_memory(tmp_path: Path) -> None:
    content = [
        question("q1", "What grows by the fence?", "early", {"early": EARLY}),
        question("q2", "Where did my brother move?", "late", {"late": LATE}),
        question("q3_abs", "Where did my sister move?", "late", {"late": LATE}),
    ]
    assert counts(load(tmp_path / "oracle.json.gz", content)) == (2, 1, 2)


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
    tmp_path: Path,
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
    first, second = load_file(tmp_path)
    assert counts([first, second]) == (4, 2, 4)
    assert (first.name, second.name) == ("2", "10")
    assert first.told[1] == Told("user", "My brother moved to Lisbon", 1_710_460_800_000_000, "2")
    assert [asked.kind for asked in first.asked] == ["information extraction", "knowledge update"]
