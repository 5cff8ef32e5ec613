"""`polymnia erase` and `export --by`: what concerns a person, in all workspaces and the past."""

import json
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from polymnia.cli.main import main
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.remember import EntityFacts, FactDraft, remember
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import open_workspaces
from tests.postgres import new_database, shared_server

ALICE, BOB = "claude (token alice)", "codex (token bob)"
# Each has the name, or was written by alice, somewhere where a search for living facts fails.
SECRETS = (
    "earns 4100 a month",
    "earned 3900 a month before",
    "Quentin Moreau sold the blue boat",
    "is married to a diver from Malta",
)


def make_files(directory: Path) -> str:
    url = f"{directory / 'data'}/"
    make_store(url)
    return url


def make_store(url: str) -> None:
    """Make a store in whose two workspaces Quentin is an entity, a mention and a summary."""
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
    url = make_files(tmp_path)
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
    url = make_files(tmp_path)
    status, out, _ = run(capsys, "erase", "--by", "alice", "--yes", "--store", url)
    assert status == 0 and "nothing is left" in out
    for text in (SECRETS[1], SECRETS[3], "plays chess", "speaks three"):
        assert not in_files(url, text)
    for text in (SECRETS[0], SECRETS[2], "is painted blue"):
        assert in_files(url, text)


def test_a_text_is_erased_wherever_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_files(tmp_path)
    status, _, _ = run(capsys, "erase", "--matching", "BLUE", "--yes", "--store", url)
    assert status == 0
    assert not in_files(url, "blue") and in_files(url, SECRETS[0])


def test_without_agreement_nothing_is_erased(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_files(tmp_path)
    status, _, err = run(capsys, "erase", "--by", "bob", "--json", "--store", url)
    assert status == 1 and "add --yes" in err
    assert in_files(url, SECRETS[0])


def test_a_person_gets_what_they_wrote_from_every_workspace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_files(tmp_path)
    _, out, _ = run(capsys, "export", "--by", "alice", "--store", url)
    facts = [json.loads(line) for line in out.splitlines()]
    texts = [(line["workspace"], line["fact"]["text"]) for line in facts]
    assert texts == [("home", "plays chess on Mondays"), ("work", "speaks three languages")]


def test_no_byte_of_a_person_is_left_in_postgresql_once_the_receipt_is_followed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables = ("cards", "observations", "relations", "notes", "words", "terms", "entities")
    with (
        new_database(shared_server()) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        ((directory,),) = connection.execute("SHOW data_directory").fetchall()
        ((number,),) = connection.execute(
            "SELECT oid FROM pg_database WHERE datname = current_database()"
        ).fetchall()
        files = f"{directory}/base/{number}"
        make_store(url)
        connection.execute("CHECKPOINT")
        assert in_files(files, SECRETS[2])
        words = ("erase", "--about", "Quentin Moreau", "--yes", "--json", "--store", url)
        status, out, _ = run(capsys, *words)
        receipt = json.loads(out)
        assert (status, receipt["verified"], receipt["still_found"]) == (0, True, [])
        left_to_do = " ".join(receipt["left_to_do"])
        for part in ("Backups", "archived log", "VACUUM FULL"):
            assert part in left_to_do
        for table in tables:
            connection.execute(f"VACUUM FULL polymnia.{table}".encode())
        connection.execute("CHECKPOINT")
        for text in (*SECRETS[:3], "Quentin", "Moreau"):
            assert not in_files(files, text)
        assert in_files(files, "is painted blue every year")


def test_words_that_an_erasure_left_in_an_index_are_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with new_database(shared_server()) as url:
        make_store(url)
        erase = ("erase", "--about", "Quentin Moreau", "--store", url)
        with psycopg.connect(url) as connection:  # a word of the text that comes back by itself
            connection.execute(
                "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN IF OLD.term = 'quentin' THEN RETURN NULL; END IF; RETURN OLD; END $$"
            )
            connection.execute(
                "CREATE TRIGGER keep BEFORE DELETE ON polymnia.terms "
                "FOR EACH ROW EXECUTE FUNCTION keep()"
            )
        status, out, _ = run(capsys, *erase, "--yes")
        assert (status, "still found: home: terms" in out) == (1, True)
