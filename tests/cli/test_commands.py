"""The command line, with real processes and files."""

import json
import subprocess
from pathlib import Path

import pytest

from polymnia import __version__
from polymnia.cli.main import main
from polymnia.engine import notes
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.model import VAULT, ChangeQuery, EntityDraft, Note
from polymnia.stores import open_store
from polymnia.stores.sqlite.store import SqliteStore
from tests.cli.commands import LINES, fill, run
from tests.processes import TIMEOUT_S, polymnia_command

DOCUMENT = {
    "entities": [
        {"name": "Zoë", "entityType": "person", "observations": ["likes tea", "likes tea"]}
    ],
    "relations": [{"from": "Zoë", "to": "Bob", "relationType": "knows"}],
}


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    assert run("--version", directory=tmp_path).stdout == f"polymnia {__version__}\n"


def test_help_names_every_command(tmp_path: Path) -> None:
    text = run("--help", directory=tmp_path).stdout
    assert all(command in text for command in ("serve", "doctor", "import", "export"))


def test_a_memory_is_exported_as_lines(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    assert run("export", "--store", store_path, directory=tmp_path).stdout == LINES + "\n"


def test_a_memory_is_exported_as_one_document(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    assert export_document(store_path, tmp_path) == DOCUMENT


def test_an_export_can_go_to_a_file(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    run("export", "--store", store_path, "-o", "out.jsonl", directory=tmp_path)
    assert (tmp_path / "out.jsonl").read_text("utf-8") == LINES


def export_document(store: str, directory: Path) -> dict[str, list[dict[str, object]]]:
    """Return the entities and relations of an exported document, with the fields that every store
    can hold.
    """
    document = json.loads(
        run("export", "--store", store, "--format", "json", directory=directory).stdout
    )
    names = {"name", "entityType", "observations", "from", "to", "relationType"}
    return {
        section: [
            {name: value for name, value in item.items() if name in names}
            for item in document[section]
        ]
        for section in DOCUMENT
    }


@pytest.mark.parametrize("form", ["json", "jsonl", "db"])
def test_what_was_exported_can_be_imported(store_path: str, form: str, tmp_path: Path) -> None:
    source = tmp_path / f"source.{form}"
    if form == "db":
        fill(str(source))
    else:
        source.write_text(LINES if form == "jsonl" else json.dumps(DOCUMENT), "utf-8")
    said = run("import", str(source), "--store", store_path, directory=tmp_path)
    assert "1 entity (1 new) and 1 relation (1 new)" in said.stdout
    assert export_document(store_path, tmp_path) == DOCUMENT


def test_a_json_file_may_hold_json_lines(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(LINES, "utf-8")
    assert (
        "1 entity (1 new)"
        in run("import", "old.json", "--store", "new.db", directory=tmp_path).stdout
    )


def test_importing_a_missing_file_creates_nothing(tmp_path: Path) -> None:
    said = run("import", "nowhere.jsonl", "--store", "new.db", directory=tmp_path)
    assert (said.returncode, said.stderr) == (1, "polymnia: there is no file nowhere.jsonl\n")
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_finds_a_sound_store_sound(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    said = run("doctor", "--store", store_path, directory=tmp_path)
    assert said.returncode == 0
    assert "holds: 1 entity, 2 facts, 1 relation" in said.stdout
    assert "sound" in said.stdout


@pytest.mark.parametrize("command", ["doctor", "export"])
def test_reading_a_missing_store_does_not_create_it(command: str, tmp_path: Path) -> None:
    said = run(command, "--store", "typo.db", directory=tmp_path)
    assert (said.returncode, said.stderr) == (1, "polymnia: there is no file typo.db\n")
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_counts_vault_notes(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "memory.db"))
    notes.commit(Memory(store), Note("key", "text"), by="test")
    store.close()
    told = run("doctor", "--store", "memory.db", directory=tmp_path).stdout
    assert "holds: 0 entities, 0 facts, 0 relations, 1 vault note\n" in told


def test_the_doctor_names_a_bad_line_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").write_text(LINES + "\nbroken", "utf-8")
    said = run("doctor", "--store", "memory.jsonl", directory=tmp_path)
    assert said.returncode == 1
    assert "memory.jsonl, line 3: not valid JSON" in said.stdout
    assert "What to do" in said.stdout


def test_the_doctor_salvages_what_a_damaged_log_still_has(tmp_path: Path) -> None:
    fill(str(tmp_path / "memory.mcpmem"))
    log = tmp_path / "memory.mcpmem"
    whole = log.read_bytes()
    first_record = whole[: 9 + int.from_bytes(whole[5:9], "little")]
    damaged = whole.replace(b"knows", b"knew!") + first_record
    log.write_bytes(damaged)
    said = run("doctor", "--store", "memory.mcpmem", directory=tmp_path)
    assert said.returncode == 1
    assert f"damaged at byte {len(first_record)}" in said.stdout
    assert "polymnia doctor --salvage --store memory.mcpmem" in said.stdout
    said = run("doctor", "--salvage", "--store", "memory.mcpmem", directory=tmp_path)
    assert "memory.mcpmem.salvaged.mcpmem: 1 entity, 2 facts, 0 relations" in said.stdout
    saved = run("export", "--store", "memory.mcpmem.salvaged.mcpmem", directory=tmp_path).stdout
    assert saved == LINES.split("\n")[0] + "\n"
    assert log.read_bytes() == damaged


def test_a_damaged_log_can_be_salvaged_to_a_given_file(tmp_path: Path) -> None:
    fill(str(tmp_path / "memory.bin"))
    run("doctor", "--salvage", "new.mcpmem", "--store", "memory.bin", directory=tmp_path)
    assert run("export", "--store", "new.mcpmem", directory=tmp_path).stdout == LINES + "\n"


def test_the_doctor_says_where_the_remains_of_an_unfinished_write_are(tmp_path: Path) -> None:
    log = tmp_path / "memory.mcpmem"
    fill(str(log))
    log.write_bytes(log.read_bytes()[:-1])
    said = run("doctor", "--store", "memory.mcpmem", directory=tmp_path)
    assert (said.returncode, (tmp_path / "memory.mcpmem.torn").exists()) == (1, False)
    assert "the next write moves its remains to memory.mcpmem.torn" in said.stdout
    fill(str(log))
    assert run("doctor", "--store", "memory.mcpmem", directory=tmp_path).returncode == 0


def test_the_doctor_salvages_what_a_damaged_database_still_has(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(str(database))
    damaged = b"\xff" * 4096 + database.read_bytes()[4096:]
    database.write_bytes(damaged)
    said = run("doctor", "--store", "memory.db", directory=tmp_path)
    assert (said.returncode, "polymnia doctor --salvage --store memory.db" in said.stdout) == (
        1,
        True,
    )
    said = run("doctor", "--salvage", "--store", "memory.db", directory=tmp_path)
    assert "memory.db.salvaged.db: 1 entity, 2 facts, 1 relation" in said.stdout
    assert (
        run("export", "--store", "memory.db.salvaged.db", directory=tmp_path).stdout == LINES + "\n"
    )
    assert database.read_bytes() == damaged


def test_the_doctor_changes_nothing_and_finds_an_empty_file_empty(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    said = run("doctor", "--store", "memory.db", directory=tmp_path)
    assert (said.returncode, "memory.db is empty" in said.stdout, "What to do" in said.stdout) == (
        1,
        True,
        False,
    )
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("memory.db", 0)]


def test_json_lines_cannot_be_salvaged(tmp_path: Path) -> None:
    said = run("doctor", "--salvage", "--store", "memory.jsonl", directory=tmp_path)
    assert (
        said.returncode,
        said.stderr.startswith("polymnia: --salvage works on binary logs"),
    ) == (1, True)


def test_an_unknown_kind_of_store_is_a_clear_error(tmp_path: Path) -> None:
    said = run("serve", "--store", "memory.xyz", directory=tmp_path)
    assert said.returncode == 1
    assert said.stderr.startswith("polymnia: 'memory.xyz' is not a store; use a path ending in .db")


def test_the_change_log_says_who_imported(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LINES, "utf-8")
    assert main(["import", str(tmp_path / "in.jsonl"), "--store", str(tmp_path / "new.db")]) == 0
    store = SqliteStore(str(tmp_path / "new.db"))
    with store.reading() as read:
        changes = read.history.changes(ChangeQuery(limit=None))[::-1]
    assert [(change.id, change.actor, change.operation) for change in changes] == [
        (1, "polymnia import", "import")
    ]
    store.close()


SERVED = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_graph"}}\n'
REMEMBERED = SERVED.replace('"read_graph"', '"remember","arguments":{"entities":[{"name":"Zoë"}]}')


def serve(directory: Path, *arguments: str, message: str = SERVED, **environment: str) -> str:
    command = polymnia_command("serve", *arguments)
    given = {"HOME": str(directory), "PATH": "", **environment}
    done = subprocess.run(
        command,
        cwd=directory,
        input=message,
        capture_output=True,
        text=True,
        env=given,
        timeout=TIMEOUT_S,
        check=True,
    )
    return done.stdout


def test_the_reference_dialect_reads_memory_jsonl_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").write_text(LINES, "utf-8")
    assert "likes tea" in serve(tmp_path, "--dialect", "reference")


def test_the_reference_variable_is_relative_to_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "graph.jsonl").write_text(LINES, "utf-8")
    assert "likes tea" in serve(
        tmp_path, "--dialect", "reference", MEMORY_FILE_PATH="data/graph.jsonl"
    )


def test_a_legacy_memory_json_is_renamed_to_memory_jsonl(tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_bytes(LINES.encode() + b"\n\n")
    assert "likes tea" in serve(tmp_path, "--dialect", "reference")
    assert not (tmp_path / "memory.json").exists()
    assert (tmp_path / "memory.jsonl").read_bytes() == LINES.encode() + b"\n\n"


def test_a_legacy_memory_json_stays_if_there_is_a_memory_jsonl(tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text(LINES, "utf-8")
    (tmp_path / "memory.jsonl").write_text("", "utf-8")
    assert "likes tea" not in serve(tmp_path, "--dialect", "reference")
    assert (tmp_path / "memory.json").read_text("utf-8") == LINES


def test_another_programs_memory_json_stays(tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text('{"setting": 1}', "utf-8")
    serve(tmp_path, "--dialect", "reference")
    assert (tmp_path / "memory.json").read_text("utf-8") == '{"setting": 1}'


def test_with_no_options_the_memory_is_a_directory_of_workspaces_in_the_data_directory(
    tmp_path: Path,
) -> None:
    assert "personal:1 stored Zoë." in serve(
        tmp_path, message=REMEMBERED, XDG_DATA_HOME=str(tmp_path / "data")
    )
    assert (tmp_path / "data" / "polymnia" / "workspaces" / "_meta.db").is_file()


def test_a_question_is_answered_as_a_table(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    found = run(
        "search", "who drinks teas", "--embedder", "none", "--store", store_path, directory=tmp_path
    )
    assert found.returncode == 0
    assert found.stdout.splitlines()[0] == " 1. Zoë [person]: likes tea"
    assert found.stdout.splitlines()[1] == "    word: teas; 1 more say the same"
    assert "note: no embedder" in found.stdout


def test_a_question_is_answered_as_json(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    arguments = (
        "--json",
        "--embedder",
        "none",
        "--limit",
        "1",
        "--type",
        "person",
        "--store",
        store_path,
    )
    found = json.loads(run("search", "Zoe", *arguments, directory=tmp_path).stdout)
    assert [(hit["entity"], hit["ordinal"], hit["alike"]) for hit in found["hits"]] == [
        ("Zoë", 0, 0)
    ]
    assert found["hits"][0]["why"]["meaning"] is None


def test_a_question_is_answered_by_meaning_once_the_memory_is_indexed(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    fill(path)
    question = ("search", "favourite hot drink", "--json", "--embedder", "local", "--store", path)
    assert (
        "nothing is embedded yet" in json.loads(run(*question, directory=tmp_path).stdout)["note"]
    )
    shown = run(*[word for word in question if word != "--json"], directory=tmp_path).stdout
    assert shown.endswith("to search by meaning: polymnia index\n")
    assert run("index", "--embedder", "local", "--store", path, directory=tmp_path).stdout.endswith(
        "2 passages embedded\n"
    )
    found = json.loads(run(*question, directory=tmp_path).stdout)
    assert (found["note"], found["coverage"]) == ("", 1.0)
    assert (found["hits"][0]["text"], found["hits"][0]["matched"]) == ("likes tea", "meaning")


def test_a_question_about_a_named_person_has_its_answer_first(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    run("remember", "Ada", "lives in London", "likes tea", *store, directory=tmp_path)
    run("index", "--embedder", "local", *store, directory=tmp_path)
    question = ("search", "what does Ada drink", "--json", "--embedder", "local", *store)
    found = json.loads(run(*question, directory=tmp_path).stdout)
    assert [hit["text"] for hit in found["hits"]] == ["likes tea", "lives in London"]


def test_a_search_that_finds_nothing_says_so(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    found = run("search", "xyzzy", "--embedder", "none", "--store", store_path, directory=tmp_path)
    first = found.stdout.splitlines()[0]
    assert (found.returncode, first) == (1, f"nothing found in {store_path}")


def test_a_note_is_found_and_shown_by_its_key(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    fill(path)
    store = open_store(path)
    notes.commit(Memory(store), Note("deploy steps", "restart the tea kettle", ("ops",)), by="test")
    notes.commit(Memory(store), Note("Zoë", "prefers calls"), by="test")
    store.close()
    arguments = ("--embedder", "none", "--store", path)
    found = run("search", "which kettle to restart", *arguments, directory=tmp_path).stdout
    assert "1. note deploy steps: restart the tea kettle\n" in found
    (hit, *_) = json.loads(
        run("search", "deploy steps", "--json", *arguments, directory=tmp_path).stdout
    )["hits"]
    assert (hit["kind"], hit["key"], hit["text"], hit["matched"]) == (
        "note",
        "deploy steps",
        "restart the tea kettle",
        "key",
    )
    shown = run("show", "deploy steps", "--store", path, directory=tmp_path).stdout
    assert shown == f"note deploy steps in {path}\n      tags: ops\n      restart the tea kettle\n"
    both = json.loads(run("show", "Zoë", "--json", "--store", path, directory=tmp_path).stdout)
    assert (both["type"], both["note"]["content"]) == ("person", "prefers calls")


def test_an_entity_is_shown(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    lines = run("show", "Zoë", "--store", store_path, directory=tmp_path).stdout.splitlines()
    assert lines[0] == f"Zoë [person] in {store_path}"
    assert lines[-1].strip() == "Zoë -[knows]-> Bob"
    shown = json.loads(
        run("show", "Zoë", "--json", "--store", store_path, directory=tmp_path).stdout
    )
    assert [fact["text"] for fact in shown["facts"]] == [
        "likes tea",
        "likes tea",
    ]
    assert shown["relations"] == [{"from": "Zoë", "to": "Bob", "type": "knows"}]


def test_an_unknown_entity_or_embedder_is_an_error(store_path: str, tmp_path: Path) -> None:
    fill(store_path)
    assert (
        "there is no entity and no note 'Nobody'"
        in run("show", "Nobody", "--store", store_path, directory=tmp_path).stderr
    )
    wrong = run(
        "search", "tea", "--embedder", "word2vec", "--store", store_path, directory=tmp_path
    )
    assert (wrong.returncode, "onnx:DIRECTORY" in wrong.stderr) == (1, True)


@pytest.mark.parametrize(
    "command", [("search", "tea"), ("show", "Zoë"), ("trash", "list"), ("export",)]
)
def test_commands_that_only_look_change_no_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "memory.db"
    fill(str(path))
    before = {
        file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.iterdir()
    }
    assert run(*command, "--store", str(path), directory=tmp_path).returncode == 0
    assert {
        file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.iterdir()
    } == before


def test_a_pruned_note_is_listed_and_restored_by_its_key(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    store = open_store(path)
    notes.commit(Memory(store), Note("plan", "walk the dog"), by="test")
    notes.prune(Memory(store), [VAULT], key="plan", by="test")
    store.close()
    listed = run("trash", "list", "--store", path, directory=tmp_path).stdout
    assert "note" in listed and "plan: walk the dog" in listed
    assert (
        run("trash", "restore", "plan", "--store", path, directory=tmp_path).stdout
        == f"restored plan in {path}\n"
    )
    assert "walk the dog" in run("show", "plan", "--store", path, directory=tmp_path).stdout


def test_long_hits_are_wrapped_at_the_matching_sentence(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "memory.db")
    store = open_store(path)
    text = (
        "The weather was fine. " * 20
        + "We deploy \x1b[31m the kettle on Tuesday. "
        + "The weather was fine. " * 20
    )
    entities.create(Memory(store), [EntityDraft("Zoë", "person", (text,))], by="test")
    store.close()
    arguments = ("--embedder", "none", "--store", path)
    lines = run(
        "search", "which kettle to deploy", *arguments, directory=tmp_path
    ).stdout.splitlines()
    assert lines[0].startswith(" 1. Zoë [person]: …We deploy \\x1b[31m the kettle on Tuesday.")
    # The last line names the store, whose path may be long.
    assert max(len(line) for line in lines if path not in line) <= 80
    assert "    words: kettle, deploy" in lines
