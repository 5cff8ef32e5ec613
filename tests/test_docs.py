"""Check the documentation that can drift.

Settings, commands, dialects, links, and the commands that people copy.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from docs.generate import pages
from polymnia.cli.main import COMMANDS, build_parser
from polymnia.clients.table import CLIENTS
from polymnia.dialects import DIALECTS
from polymnia.dialects.base import ServerRules
from polymnia.dialects.registry import open_dialect
from polymnia.importers.registry import KINDS
from polymnia.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("bench/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob(".github/**/*.md"),
    ]
)
MAX_README_LINES = 110
# What ends a command on its line of the shell.
COMMAND_ENDS = ("|", "&&", ";", "<", ">", ">>", "&")
# A word for each placeholder of a command that takes only some words.
EXAMPLES = {"CLIENT": "cursor", "SHELL": "bash", "ID": "1", "ID…": "1", "ID...": "1"}


def test_every_setting_is_documented() -> None:
    page = text("docs/settings.md")
    names = [
        item
        for name in Settings.__struct_fields__
        for item in (f"`{name}`", f"`POLYMNIA_{name.upper()}`")
    ]
    assert [name for name in names if name not in page] == []


def test_every_command_is_on_the_page_of_the_command_line() -> None:
    page = text("docs/commands.md")
    assert "serve" in COMMANDS
    assert [name for name in COMMANDS if f"\n## polymnia {name}\n" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_that_a_page_names_takes_these_options(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for command in named_commands(page):
        words = shlex.split(re.sub(r"\$\(.*?\)", "x", command), comments=True)[1:]
        words = list(takewhile(lambda word: word not in COMMAND_ENDS, words))
        # Placeholders, and the first of several words that are possible.
        words = [EXAMPLES.get(word, word).partition("|")[0] for word in words]
        try:
            build_parser(words[0]).parse_args(words)
        except SystemExit as exc:
            said = capsys.readouterr().err
            # A sentence may name a command without what it needs.
            wrong += [command] if exc.code and " required" not in said else []
    assert wrong == []


def test_every_dialect_is_in_the_readme() -> None:
    assert [name for name in DIALECTS if f"| `{name}` |" not in text("README.md")] == []


def test_every_tool_of_native_is_on_the_page_for_agents() -> None:
    page = (ROOT / "docs/agents.md").read_text("utf-8")
    tools = open_dialect("native", ServerRules(toolsets=("all",))).tools
    assert [name for name in tools if f"`{name}`" not in page] == []


def test_every_importer_has_a_row_on_the_page_about_moving_in() -> None:
    page = (ROOT / "docs/moving-in.md").read_text("utf-8")
    assert [kind for kind in KINDS if f"\n| `{kind}` |" not in page] == []


def test_the_readme_is_short() -> None:
    assert len(text("README.md").splitlines()) <= MAX_README_LINES


def test_every_relative_link_resolves() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md"])
def test_every_source_file_that_a_page_for_contributors_names_exists(name: str) -> None:
    """A path may begin anywhere: `write.py`, `mcp/tools.py` and `tests/groups.py` are all found."""
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("this is not a git work tree")
    files = [f"/{file}/" for file in listed.splitlines()]
    named = re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|sql)|(?:[\w-]+/)+)`", text(name))
    real = [path.strip("/") for path in named if not re.search("KEY|NAME", path)]
    missing = [path for path in real if not any(f"/{path}/" in file for file in files)]
    assert missing == []


def test_every_link_to_a_heading_resolves() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{heading}"
        for page in PAGES
        for target, heading in re.findall(
            r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text("utf-8")
        )
        if heading not in headings(page.parent / target if target else page)
    ]
    assert broken == []


def test_what_is_made_from_code_is_up_to_date() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, made in pages().items()
        if path.read_text("utf-8") != made
        # Later versions of argparse write usage lines in another way.
        and (sys.version_info < (3, 13) or path.suffix == ".md")
    ]
    assert stale == [], "run `python -m docs.generate`"


def test_every_client_has_a_page_and_no_page_is_left_over() -> None:
    assert {path.stem for path in (ROOT / "docs" / "clients").glob("*.md")} == {"index", *CLIENTS}


def test_every_dialect_has_a_page_and_no_page_is_left_over() -> None:
    assert {path.stem for path in (ROOT / "docs" / "dialects").glob("*.md")} == {"index", *DIALECTS}


def test_the_test_command_of_the_readme_is_one_line_and_creates_an_environment() -> None:
    command = first_command("## Test")
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert "\n" not in command


def test_the_gate_runs_the_test_command_of_the_readme() -> None:
    command = first_command("## Test").replace(".venv", ".ci-venv")
    # What fails runs a second time.
    assert f"{command} ||\n    .ci-venv/bin/python -m tests.rerun $?\n" in text(".ci/run")


def test_every_just_command_that_the_pages_name_exists() -> None:
    recipes = set(re.findall(r"^([a-z]+)(?: .*)?:$", text("justfile"), re.MULTILINE))
    named = {
        name for page in PAGES for name in re.findall(r"`just ([a-z]+)", page.read_text("utf-8"))
    }
    assert "test" in named
    assert named - recipes == set()


def test_the_workflow_tests_every_python_that_the_package_names() -> None:
    classifiers = tomllib.loads(text("pyproject.toml"))["project"]["classifiers"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    workflow = yaml.safe_load(text(".github/workflows/test.yml"))
    assert workflow["jobs"]["platforms"]["strategy"]["matrix"]["python"] == supported


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def named_commands(page: Path) -> list[str]:
    """Return the commands in the blocks and the sentences of a page."""
    found = page.read_text("utf-8")
    lines = [
        line.removeprefix("$ ")
        for block in re.findall(r"^```\w*\n(.*?)^```", found, re.DOTALL | re.MULTILINE)
        for line in re.sub(r"\\\n\s*", " ", block).splitlines()
    ]
    either = [*lines, *re.findall(r"`(polymnia [^`]+)`", found)]
    return [
        line.replace("\\|", "|")
        for line in either
        if re.match(rf"polymnia ({'|'.join(COMMANDS)})\b", line)
    ]


def first_command(heading: str) -> str:
    """Return the first shell block below a heading of the README."""
    section = text("README.md").partition(f"{heading}\n")[2]
    return section.partition("```sh\n")[2].partition("\n```")[0]


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
