"""Completion scripts in the real shells, and the manual page in the real man."""

import shutil
import subprocess
from pathlib import Path

import pytest

from docs.grammar import read_grammar
from polymnia.cli.completion import SHELLS
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


@pytest.mark.parametrize(("script", "name"), [(name, name) for name in SHELLS], indirect=["script"])
def test_the_shell_accepts_its_script(script: Path, name: str) -> None:
    subprocess.run([shell(name), "-n", str(script)], check=True)


def complete_in_bash(script: Path, line: str) -> set[str]:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {script}; compopt() {{ :; }}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; "
        'COMPREPLY=(); _shtab_polymnia; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [shell("bash"), "-c", program], capture_output=True, text=True, check=False
    )
    return set(done.stdout.split())


CASES = [
    ("polymnia se", {"serve", "search"}),
    ("polymnia trash ", {"list", "restore", "purge"}),
    ("polymnia trash list --js", {"--json"}),
    ("polymnia export --format ", {"json", "jsonl", "markdown"}),
    ("polymnia install claude-", {"claude-code", "claude-desktop"}),
    ("polymnia search tea --lim", {"--limit"}),
]


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(("line", "words"), CASES)
def test_bash_completes(script: Path, line: str, words: set[str]) -> None:
    found = complete_in_bash(script, line)
    assert {
        item for item in found if not item.startswith("-") or line.split(" ")[-1].startswith("-")
    } == words


@pytest.mark.parametrize("script", ["fish"], indirect=True)
@pytest.mark.parametrize(("line", "words"), CASES)
def test_fish_completes(script: Path, line: str, words: set[str]) -> None:
    program = f"source {script}; complete -C'{line}'"
    done = subprocess.run(
        [shell("fish"), "-N", "-c", program], capture_output=True, text=True, check=True
    )
    found = {line.partition("\t")[0] for line in done.stdout.splitlines()}
    assert words <= found


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_knows_the_options_of_every_command(script: Path, tmp_path: Path) -> None:
    program = (
        f"autoload -U compinit; compinit -D -d {tmp_path}/dump; functions -M 2>/dev/null; "
        f"source {script} 2>/dev/null; "
    )
    program += "print -l ${(k)parameters[(I)_shtab_polymnia_*_options]}"
    done = subprocess.run(
        [shell("zsh"), "-f", "-c", program], capture_output=True, text=True, check=True
    )
    names = {f"_shtab_polymnia_{name.replace('-', '_')}_options" for name in COMMANDS}
    assert names <= set(done.stdout.split())


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
