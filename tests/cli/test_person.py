"""`polymnia erase` and `export --by`: what concerns a person, in all workspaces and the past."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from polymnia.cli.main import main
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces.workspaces import open_workspaces

ALICE, BOB = "claude (token alice)", "codex (token bob)"
# Each has the name, or was written by alice, somewhere where a search for living facts fails.
SECRETS = (
    "earns 4100 a month",
    "earned 3900 a month before",
    "Quentin Moreau sold the blue boat",
    "is married to a diver from Malta",
)


def make_store(directory: Path) -> str:
    """Return a store in whose two workspaces Quentin is an entity, a mention and a summary."""
    url = f"{directory / 'data'}/"
    with closing(open_workspaces(url)) as workspaces:
        for name in ("home", "work"):
            workspaces.create(name)
        home, work = workspaces.memory("home"), workspaces.memory("work")
        store(home, "Quentin Moreau", SECRETS[1], "plays chess on Mondays", by=ALICE)
        revise(
            home,
            "Quentin Moreau",
            Revision(supersede=(Edit(SECRETS[1], SECRETS[0]),)),
            by=BOB,
        )
        store(home, "boat", SECRETS[2], "is painted blue every year", by=BOB)
        store(work, "Cy", SECRETS[3], "speaks three languages", by=ALICE)
        forget(work, Unwanted(facts=(("Cy", 1),)), by=BOB)
        revise(work, "Cy", Revision(summary="A friend of quentin moreau since school."), by=BOB)
        revise(work, "Cy", Revision(summary="A friend."), by=BOB)
    return url


def store(memory: Memory, name: str, *texts: str, by: str) -> None:
    facts = tuple(FactDraft(text) for text in texts)
    remember(memory, [EntityFacts(name=name, facts=facts)], by=by)


def in_files(url: str, text: str) -> list[str]:
    """Return the names of the store's files whose bytes have the text."""
    files = [path for path in Path(url).rglob("*") if path.is_file()]
    return [path.name for path in files if text.lower().encode() in path.read_bytes().lower()]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_person_is_erased_by_name_from_the_present_and_the_past_of_all_workspaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_store(tmp_path)
    _, out, _ = run(capsys, "erase", "--about", "Quentin Moreau", "--dry-run", "--store", url)
    assert "home: Quentin Moreau; 3 facts" in out and "#1  Quentin Moreau sold" in out
    assert in_files(url, "Quentin")
    status, out, _ = run(
        capsys, "erase", "--about", "quentin moreau", "--yes", "--json", "--store", url
    )
    receipt = json.loads(out)
    assert (status, receipt["verified"], receipt["still_found"]) == (0, True, [])
    assert [place["workspace"] for place in receipt["workspaces"]] == ["home", "work"]
    assert "Quentin" not in out and "quentin" not in out
    assert not in_files(url, "Quentin") and not in_files(url, "a month")
    assert in_files(url, "is painted blue every year")
    _, out, _ = run(capsys, "history", "--workspace", "work", "--store", url)
    assert "quentin" not in out.lower()


def test_what_an_author_wrote_is_erased_and_what_others_wrote_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_store(tmp_path)
    status, out, _ = run(capsys, "erase", "--by", "alice", "--yes", "--store", url)
    assert status == 0 and "nothing is left" in out
    for text in (SECRETS[1], SECRETS[3], "plays chess", "speaks three"):
        assert not in_files(url, text)
    for text in (SECRETS[0], SECRETS[2], "is painted blue"):
        assert in_files(url, text)


def test_a_text_is_erased_wherever_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_store(tmp_path)
    status, _, _ = run(capsys, "erase", "--matching", "BLUE", "--yes", "--store", url)
    assert status == 0
    assert not in_files(url, "blue") and in_files(url, SECRETS[0])


def test_without_agreement_nothing_is_erased(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_store(tmp_path)
    status, _, err = run(capsys, "erase", "--by", "bob", "--json", "--store", url)
    assert status == 1 and "add --yes" in err
    assert in_files(url, SECRETS[0])


def test_a_person_gets_what_they_wrote_from_every_workspace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_store(tmp_path)
    _, out, _ = run(capsys, "export", "--by", "alice", "--store", url)
    facts = [json.loads(line) for line in out.splitlines()]
    texts = [(line["workspace"], line["fact"]["text"]) for line in facts]
    assert texts == [("home", "plays chess on Mondays"), ("work", "speaks three languages")]
