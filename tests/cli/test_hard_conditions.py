"""Every command under hard conditions.

A closed pipe, a full disk, a narrow encoding, places that cannot be written.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polymnia.cli.main import COMMANDS
from tests.cli.commands import EXAMPLES, make_place, run
from tests.groups import mostly_matrix
from tests.processes import TIMEOUT_S

# The commands that write.
WRITING = (
    "demo",
    "serve",
    "ui",
    "remember",
    "revise",
    "sync",
    "index",
    "backup",
    "restore",
    "migrate",
    "undo",
)
LOOKING = [command for command in COMMANDS if command not in WRITING]
every_command = pytest.mark.parametrize(
    "command", mostly_matrix(COMMANDS, unmarked=["show", "hook"])
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_place(tmp_path)
    return tmp_path


def polymnia(
    place: Path,
    *arguments: str,
    stdout: int | None = None,
    prefix: tuple[str, ...] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", "polymnia", *arguments],
        cwd=place,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other pipes")
@every_command
def test_a_closed_pipe_ends_a_command_quietly(command: str, place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = polymnia(place, command, *EXAMPLES[command], stdout=writing)
    os.close(writing)
    # An agent goes on even if its hook fails.
    assert (done.returncode, done.stderr) == (0 if command == "hook" else 141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@every_command
def test_a_full_disk_is_a_sentence(command: str, place: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = polymnia(place, command, *EXAMPLES[command], stdout=full.fileno())
    assert (done.returncode, done.stderr) == (
        0 if command == "hook" else 1,
        "polymnia: cannot write the output: No space left on device\n",
    )


@pytest.mark.parametrize(
    ("command", "encoding"),
    mostly_matrix(
        [*((command, "cp1252") for command in COMMANDS), ("show", "ascii")],
        unmarked=[("show", "ascii")],
    ),
)
def test_a_narrow_encoding_shows_escapes(command: str, encoding: str, place: Path) -> None:
    done = polymnia(place, command, *EXAMPLES[command], PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")


def test_arguments_are_read_as_utf_8_in_a_locale_without_it(place: Path) -> None:
    polymnia(
        place,
        *("remember", "Zoë", "lives in Zürich", "--store", "z.db"),
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    shown = polymnia(place, "show", "Zoë", "--store", "z.db").stdout
    assert shown == "Zoë [thing] in z.db\n   1  lives in Zürich\n"


def test_what_cp1252_lacks_is_escaped(place: Path) -> None:
    memory = "\n".join(
        json.dumps(
            {"type": "entity", "name": name, "entityType": "thing", "observations": ["日本 😀"]}
        )
        for name in ("Ünal", "→")
    )
    (place / "in.jsonl").write_text(memory, "utf-8")
    polymnia(place, "import", "in.jsonl", "--store", "new.db")
    shown = polymnia(
        place, "show", "Ünal", "--store", "new.db", PYTHONIOENCODING="cp1252", PYTHONUTF8="0"
    ).stdout
    assert (
        shown.encode("utf-8", "surrogateescape")
        == b"\xdcnal [thing] in new.db\n   1  \\u65e5\\u672c \\U0001f600\n"
    )
    found = polymnia(
        place, "show", "→", "--json", "--store", "new.db", PYTHONIOENCODING="cp1252", PYTHONUTF8="0"
    )
    assert json.loads(found.stdout)["facts"][0]["text"] == "日本 😀"


@pytest.fixture
def read_only(place: Path) -> Iterator[tuple[str, ...]]:
    """Make the directory and the memory unwritable, and yield what makes that bind the superuser
    too.
    """
    prefix: tuple[str, ...] = ()
    if sys.platform == "win32":
        pytest.skip("Windows has other permissions")
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("the superuser may write everywhere, and setpriv is not on the PATH")
        prefix = (setpriv, "--bounding-set", "-dac_override,-dac_read_search")
    (place / "memory.db").chmod(0o444)
    place.chmod(0o555)
    yield prefix
    place.chmod(0o755)


@pytest.mark.parametrize("command", mostly_matrix(LOOKING, unmarked=["show"]))
def test_a_command_that_only_looks_needs_no_permission_to_write(
    command: str, read_only: tuple[str, ...], place: Path
) -> None:
    before = sorted(place.rglob("*"))
    done = polymnia(place, command, *EXAMPLES[command], prefix=read_only, HOME=str(place))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    mostly_matrix(
        [
            (("serve",), "polymnia: cannot create the directory of "),
            (("import", "memory.db", "--store", "new.db"), "polymnia: "),
            (
                ("export", "-o", "new.jsonl", "--store", "memory.db"),
                "polymnia: new.jsonl: Permission denied; ",
            ),
            (("backup", "new.db", "--store", "memory.db"), "polymnia: "),
            (("token", "create", "me", "--store", "memory.db"), "polymnia: "),
            (("install", "cursor"), "polymnia: "),
            (("ui", "--no-browser"), "polymnia: cannot create the directory of "),
            (("sync", "notes", "--store", "memory.db"), "polymnia: "),
            (("index", "--embedder", "local", "--store", "memory.db"), "polymnia: "),
            (("restore", "backup.db", "--store", "memory.db"), "polymnia: "),
            (("migrate", "memory.db", "data/"), "polymnia: "),
            (("undo", "1", "--store", "memory.db"), "polymnia: "),
            (("trash", "purge", "--older-than", "0", "--store", "memory.db"), "polymnia: "),
            (("workspace", "create", "new", "--store", "data/"), "polymnia: "),
            (("perspective", "set", "new", "--store", "memory.db"), "polymnia: "),
        ],
        unmarked=[(("sync", "notes", "--store", "memory.db"), "polymnia: ")],
    ),
)
def test_a_command_that_cannot_write_says_so(
    arguments: tuple[str, ...], sentence: str, read_only: tuple[str, ...], place: Path
) -> None:
    done = polymnia(
        place, *arguments, prefix=read_only, HOME=str(place), XDG_DATA_HOME="", XDG_CONFIG_HOME=""
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert done.stderr.splitlines()[-1].startswith(sentence)


def test_an_unreadable_directory_of_settings_is_a_sentence(
    place: Path, read_only: tuple[str, ...]
) -> None:
    place.chmod(0o755)
    (place / "config" / "polymnia").mkdir(parents=True)
    (place / "config").chmod(0o000)
    done = polymnia(
        place,
        "stats",
        "--store",
        "memory.db",
        prefix=read_only,
        XDG_CONFIG_HOME=str(place / "config"),
        HOME=str(place),
    )
    (place / "config").chmod(0o755)
    assert (done.returncode, done.stderr.endswith("config.toml: Permission denied\n")) == (1, True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs in the file system")
def test_an_export_does_not_replace_a_pipe(place: Path) -> None:
    os.mkfifo(place / "pipe")
    done = polymnia(place, "export", "-o", "pipe", "--store", "memory.db")
    assert (done.returncode, done.stderr) == (
        1,
        "polymnia: pipe is not a regular file: leave out -o and redirect standard output to it\n",
    )
    assert (place / "pipe").is_fifo()


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "-o", "out.json", "--format", "json"),
        ("import", "out.jsonl"),
        ("doctor",),
        ("stats",),
        ("backup", "copy.db"),
        ("trash", "purge", "--older-than", "0"),
        ("trash", "list"),
        ("token", "create", "me"),
        ("token", "list"),
        ("search", "tea", "--embedder", "none"),
        ("show", "Zoë"),
        ("sync", "notes"),
        ("index", "--embedder", "local"),
        ("restore", "backup.db"),
        ("history",),
        ("undo", "1", "--dry-run"),
        ("perspective", "list"),
        ("perspective", "set", "named", "--document", "{name}: {text}"),
        ("install", "--list"),
    ],
)
def test_every_result_can_be_json(arguments: tuple[str, ...], place: Path) -> None:
    run("export", "-o", "out.jsonl", "--store", "memory.db", directory=place)
    done = run(*arguments, "--json", "--store", "memory.db", directory=place)
    assert (done.returncode, done.stderr) == (0, "")
    json.loads(done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("migrate", "memory.db", "data/"),
        ("workspace", "create", "new", "--store", "data/"),
        ("workspace", "list", "--store", "workspaces/"),
    ],
)
def test_every_result_about_several_workspaces_can_be_json(
    arguments: tuple[str, ...], place: Path
) -> None:
    done = run(*arguments, "--json", directory=place)
    assert (done.returncode, done.stderr) == (0, "")
    json.loads(done.stdout)


def test_an_unknown_type_gets_a_suggestion(place: Path) -> None:
    search = ("search", "tea", "--type", "persn", "--embedder", "none", "--store", "memory.db")
    found = run(*search, directory=place)
    assert "no entity has the type 'persn'; did you mean 'person'?" in found.stdout + found.stderr
