"""Every command in a real terminal of 80 columns, over a memory with hostile texts.

The screens are quoted.
"""

import re
import shlex
import sys
import unicodedata
from pathlib import Path

import pytest

from polymnia.cli.main import COMMANDS
from polymnia.clients.table import CLIENTS
from polymnia.engine import notes
from polymnia.engine.graph import entities, relations
from polymnia.engine.memory import Memory
from polymnia.model import EntityDraft, Note, Relation
from polymnia.stores import open_store
from tests.cli.commands import EXAMPLES, make_place, run
from tests.cli.terminal import COLUMNS, screen

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no tmux")

# A part of a line on the screen after the call in EXAMPLES.
SHOWN = {
    "demo": "Ines Duarte [person]: prefers tea to coffee",
    "remember": "added to Zoë [person] in memory.db",
    "revise": "nothing to change: Zoë in memory.db is like that already",
    "forget": "would forget 1 fact in memory.db",
    "erase": "default: Zoë; ",
    "audit": "no reads are recorded; ",
    "list": "Zoë  person  ",
    "serve": "  --metrics             serve Prometheus metrics at /metrics",
    "ui": "usage: polymnia ui [-h] ",
    "install": "client          scope  state      file",
    "hook": "usage: polymnia hook [-h] ",
    "search": " 1. Zoë [person]: likes tea",
    "show": "Zoë [person] in memory.db",
    "stats": "store           memory.db",
    "import": "in.jsonl: would import 1 entity (0 new) and 1 relation (0 new)",
    "export": '{"type":"entity","name":"Zoë","entityType":"person","observations":["likes tea",',
    "sync": "memory.db: would be unchanged",
    "embedder": "local works: ",
    "index": "[##############################] ",
    "doctor": "store: memory.db",
    "backup": "backed up memory.db to copy.db",
    "restore": "restored memory.db from backup.db",
    "migrate": "copied 1 workspace; every copy equals its source",
    "migrate-schema": "usage: polymnia migrate-schema [-h] ",
    "history": "change 4  20",
    "undo": "would remove 2 facts and restore nothing",
    "trash": "  entity  Gone (thing)",
    "workspace": "plans  active  20",
    "perspective": "text  ",
    "token": "name  can  workspaces  state  created  expires  last used",
    "user": "name  can  workspaces  state  since  logged in",
    "completion": "complete -o default -F _polymnia polymnia",
}
RED, TITLE, LONG = "\x1b[31mred\x1b[0m", "\x1b]0;owned\x07", "long " * 40


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a memory whose texts try to take over the terminal."""
    directory = tmp_path_factory.mktemp("terminal")
    store = open_store(str(directory / "memory.db"))
    memory = Memory(store)
    drafts = [
        EntityDraft(
            "Zoë",
            "person",
            ("likes tea", f"wears {RED}", "two\nlines", "日本語のとても長い文章 " * 8),
        ),
        EntityDraft(f"Evil{TITLE}", "per\x9bson", (LONG,)),
        EntityDraft("Gone\x1b[2J", "thing", (LONG,)),
    ]
    entities.create(memory, drafts, by="test")
    relations.create(memory, [Relation("Zoë", f"Evil{TITLE}", "kno\x1bws")], by="test")
    notes.commit(memory, Note("key\x1b[1m", f"tea {RED}\r\nmore"), by="test")
    entities.delete(memory, ["Gone\x1b[2J"], by="test")
    store.close()
    return directory


def test_without_arguments_there_is_help(place: Path) -> None:
    shown = screen("polymnia; echo status $?", place)
    assert shown[0] == "usage: polymnia COMMAND [OPTIONS]"
    assert [line.split() for line in shown if line.startswith("  search ")] == [
        ["search", "find", "what", "answers", "a", "question"]
    ]
    assert shown[-1] == "status 0"


def test_a_mistyped_command_gets_a_suggestion(place: Path) -> None:
    assert screen("polymnia serch tea; echo status $?", place) == [
        "polymnia: there is no command 'serch'; did you mean search or user?",
        "Run `polymnia --help` to see what is possible.",
        "status 2",
    ]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (
            "trash lst",
            "polymnia: ACTION: 'lst' is not one of list, restore, purge; did you mean list?",
        ),
        (
            "export --format jsn",
            "polymnia: --format: 'jsn' is not one of json, jsonl, markdown; did you mean json",
        ),
        ("search tea --limit many", "polymnia: argument --limit: invalid int value: 'many'"),
        (
            "show Zoe --store memory.db",
            "polymnia: there is no entity and no note 'Zoe' in memory.db; did you mean 'Zoë'?",
        ),
        ("stats --store typo.db", "polymnia: there is no file typo.db"),
        (
            "export --store memory.db -o /dev/null",
            "polymnia: /dev/null is not a regular file: leave out -o and",
        ),
    ],
)
def test_wrong_arguments_are_explained_in_a_sentence(line: str, first: str, place: Path) -> None:
    assert screen(f"polymnia {line}", place)[0].startswith(first[:COLUMNS])


def test_an_unknown_option_leads_to_the_help_of_its_command(place: Path) -> None:
    assert screen("polymnia trash list --all", place) == [
        "polymnia: unrecognized arguments: --all",
        "Run `polymnia trash list --help` to see what is possible.",
    ]


def test_an_entity_is_shown_without_its_control_characters(place: Path) -> None:
    shown = screen("polymnia show Zoë --store memory.db", place)
    assert shown[:5] == [
        "Zoë [person] in memory.db",
        "   1  likes tea",
        "   2  wears \\x1b[31mred\\x1b[0m",
        "   3  two",
        "      lines",
    ]
    assert shown[-1] == "      Zoë -[kno\\x1bws]-> Evil\\x1b]0;owned\\x07"


def test_the_trash_fits_the_terminal(place: Path) -> None:
    line = screen("polymnia trash list --store memory.db", place)[0]
    assert re.fullmatch(r"[0-9a-f-]{36}  \S{10} \S{8}  entity  Gone.*…", line)
    assert len(line) == COLUMNS


def test_statistics_fit_the_terminal(place: Path) -> None:
    shown = screen("polymnia stats --store memory.db", place)
    assert "entities        2" in shown
    assert "entity types    person 1, per\\x9bson 1" in shown
    assert max(map(len, shown)) <= COLUMNS


def test_the_clients_are_listed_in_a_table_that_fits(place: Path) -> None:
    home = place / ("a-home-directory-with-a-rather-long-name-" + "x" * 60)
    home.mkdir(exist_ok=True)
    shown = screen("polymnia install --list", place, HOME=str(home))
    assert shown[0] == "client          scope  state      file"
    assert shown[1].startswith("claude-code     user   ")
    assert max(map(len, shown)) <= COLUMNS
    assert len(shown) == 1 + len(CLIENTS)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("examples")
    make_place(directory)
    return directory


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_fits(command: str, examples: Path) -> None:
    # The terminal breaks longer lines, so they are measured before it shows them.
    widest, status = screen(
        f"COLUMNS=80 polymnia {command} --help | wc -L; echo status ${{PIPESTATUS[0]}}", examples
    )
    assert (int(widest) <= COLUMNS, status) == (True, "status 0")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_did_and_what_is_wrong_with_its_arguments(
    command: str, examples: Path
) -> None:
    call = shlex.join([command, *EXAMPLES[command]])
    shown = screen(
        f"polymnia {call}; echo status $?; polymnia {command} --no-such-option; echo status $?",
        examples,
    )
    assert [line for line in shown if SHOWN[command] in line], shown
    # An agent goes on even if its hook fails.
    mistaken = "status 0" if command == "hook" else "status 2"
    assert [line for line in shown if line.startswith("status")] == ["status 0", mistaken]
    assert shown[-3].startswith("polymnia: "), shown
    assert not [line for line in shown if "Traceback" in line]


@pytest.mark.parametrize("color", ["1", ""])
def test_nothing_is_coloured_when_the_user_wants_no_colours(color: str, place: Path) -> None:
    line = "polymnia search likes tea --embedder none --store memory.db | od -c | grep -c 033"
    assert screen(line, place, NO_COLOR=color)[0] == "0"


def test_the_rest_of_the_line_is_the_query(place: Path) -> None:
    shown = screen("polymnia search who likes tea --embedder none --store memory.db", place)
    assert "Zoë" in shown[0]
    assert not [line for line in shown if len(line) > COLUMNS or "\x1b" in line]


@pytest.mark.parametrize(
    "line",
    [
        "search tea red long lines --embedder none",
        "show Zoë",
        "history",
        "undo 1 --dry-run",
        "trash list",
        "stats",
        "doctor",
    ],
)
def test_no_command_passes_control_characters_on(line: str, place: Path) -> None:
    printed = run(*line.split(), "--store", "memory.db", directory=place)
    assert printed.stdout
    assert [
        item
        for item in printed.stdout + printed.stderr
        if unicodedata.category(item) == "Cc" and item != "\n"
    ] == []


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_an_export_shows_control_characters_as_escapes(form: str, place: Path) -> None:
    shown = "".join(screen(f"polymnia export --format {form} --store memory.db", place))
    assert "per\\u009bson" in shown.replace(" ", "")


def test_an_export_to_a_pipe_has_the_bytes_of_the_file(place: Path) -> None:
    printed = run("export", "--store", "memory.db", directory=place).stdout
    assert "per\x9bson" in printed


def test_an_import_draws_its_progress(place: Path) -> None:
    line = (
        "polymnia export --store memory.db -o out.jsonl && polymnia import out.jsonl --store new.db"
    )
    shown = screen(line, place)
    assert shown[:2] == [
        "skipped 1 vault note: JSON lines cannot hold notes; use --format json",
        "out.jsonl: 2 entities, 1 relation of memory.db",
    ]
    assert shown[2] == "[##############################] 3 of 3 items"
    assert shown[3].startswith("out.jsonl: imported 2 entities (2 new) and 1 relation (1 new)")
