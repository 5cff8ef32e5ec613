"""Completion scripts in the real shells, and the manual page in the real man."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.grammar import read_grammar
from polymnia.cli.completion import SCRIPTS
from polymnia.cli.main import COMMANDS, build_parser
from tests.cli.commands import run

MANUAL = Path(__file__).parents[2] / "docs" / "man" / "polymnia.1"


def shell(name: str) -> str:
    return shutil.which(name) or pytest.skip(f"{name} is not on the PATH")


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "script"
    path.write_text(run("completion", request.param, directory=tmp_path).stdout, "utf-8")
    return path


@pytest.mark.parametrize(
    ("script", "name"), [(name, name) for name in SCRIPTS], indirect=["script"]
)
def test_the_shell_accepts_its_script(script: Path, name: str) -> None:
    subprocess.run([shell(name), "-n", str(script)], check=True)


OPTIONS = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["-N"]}
CASES = [
    ("polymnia se", {"serve", "search"}),
    ("polymnia trash ", {"list", "restore", "purge"}),
    ("polymnia trash list --js", {"--json"}),
    ("polymnia export --format ", {"json", "jsonl", "markdown"}),
    ("polymnia install claude-", {"claude-code", "claude-desktop"}),
    ("polymnia search tea --lim", {"--limit"}),
]


PROGRAMS = {
    "bash": "source {script}; COMP_WORDS=({words}); COMP_CWORD={last}; "
    '_polymnia; printf "%s\\n" "${{COMPREPLY[@]}}"',
    # compadd works in a completion widget only, so a function takes its place.
    "zsh": "compdef() {{ :; }}; source {script}; compadd() {{ print -l -- $found; }}; "
    "_files() {{ :; }}; words=({words}); CURRENT=$((1 + {last})); _polymnia",
    "fish": "source {script}; complete -C'{line}'",
}


@pytest.mark.parametrize(
    ("script", "name"), [(name, name) for name in SCRIPTS], indirect=["script"]
)
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_the_shell_completes(script: Path, name: str, line: str, expected: set[str]) -> None:
    words = line.split(" ")
    program = PROGRAMS[name].format(
        script=script,
        line=line,
        words=" ".join(f"'{word}'" for word in words),
        last=len(words) - 1,
    )
    done = subprocess.run(
        [shell(name), *OPTIONS[name], "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    found = {each.partition("\t")[0] for each in done.stdout.splitlines()}
    assert expected <= found, done.stderr
    if name != "fish":  # it adds the files of the directory
        assert found - {""} == expected


def test_the_manual_page_has_every_command_and_option() -> None:
    text = MANUAL.read_text("utf-8").replace("\\-", "-")
    root = read_grammar(build_parser())
    leaves = [action for command in root.actions for action in (command.actions or (command,))]
    flags = {flag for command in leaves for option in command.options for flag in option.flags}
    flags -= {"-h", "--help"}
    assert [flag for flag in flags if f"\\fB{flag}\\fR" not in text] == []
    assert [name for name in COMMANDS if f".SS \\fBpolymnia {name}" not in text] == []


def test_man_formats_the_manual_page_without_a_warning() -> None:
    man = shell("man")
    done = subprocess.run(
        [man, "--warnings", "-l", str(MANUAL)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "polymnia search" in done.stdout
