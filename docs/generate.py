"""Write the parts of the documentation that are made from code: `python -m docs.generate`.

tests/test_docs.py checks that the files are what this module makes.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlencode

from argparse_manpage.manpage import Manpage
from msgspec import json

from docs.grammar import Command, read_grammar
from polymnia import __version__
from polymnia.cli.main import build_parser
from polymnia.clients.configuration import edit
from polymnia.clients.connect import DEFAULT_NAME
from polymnia.clients.hooks import HOOK_FILES, PLUGIN_FILES
from polymnia.clients.table import CLIENTS, ClientProgram
from polymnia.dialects.registry import DEFAULT_DIALECT, DIALECTS, open_dialect
from polymnia.settings import ClientRoots

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# A command that works on any machine that has uv.
ANYWHERE = ("uvx", "polymnia", "serve")
_ABSOLUTE = ("/home/me/.local/bin/polymnia", "serve")
_URL, _TOKEN = "https://memory.example.com/mcp", "TOKEN"
_ROOTS = {
    "Linux": {
        "home": "~",
        "applications": "~/.config",
        "claude": "~",
        "codex": "~/.codex",
        "copilot": "~/.copilot",
        "opencode": "~/.config/opencode",
        "zed": "~/.config/zed",
    },
    "macOS": {
        "home": "~",
        "applications": "~/Library/Application Support",
        "claude": "~",
        "codex": "~/.codex",
        "copilot": "~/.copilot",
        "opencode": "~/.config/opencode",
        "zed": "~/.config/zed",
    },
    "Windows": {
        "home": "%USERPROFILE%",
        "applications": "%APPDATA%",
        "claude": "%USERPROFILE%",
        "codex": "%USERPROFILE%/.codex",
        "copilot": "%USERPROFILE%/.copilot",
        "opencode": "%USERPROFILE%/.config/opencode",
        "zed": "%APPDATA%/Zed",
    },
}

_CLIENTS_PAGE = """\
# Clients

```sh
polymnia install claude-code
```

This adds the server to the client's configuration file, with the absolute path of the command. It first tests that the
server starts and answers. Comments and everything else in the file stay, and a copy of the old file is kept beside it.

`polymnia install --list` shows which clients are on this machine and whether they have the server.

{checkout}

| client | command | file on Linux |
|---|---|---|
{rows}

## Options

| option | what it does |
|---|---|
| `--scope project` | writes the file of the project in the working directory instead of yours |
| `--print` | prints the entry and changes nothing |
| `--remove` | removes the entry |
| `--http URL --token TOKEN` | connects to a [team's server](../http.md) instead of starting one |
| `--name NAME` | names the server; the default is `memory` |
| `--store`, `--dialect`, `--workspace` | go into the entry; without them it is just `polymnia serve` |
| `--yes` | replaces another server of the same name, or the reference memory server, without asking |

## Coming from the reference memory server

If the client has an entry of the reference memory server, `install` offers to replace it. It then imports the file
that the entry names in `MEMORY_FILE_PATH`.

## Links

[![Add to Cursor](https://img.shields.io/badge/Add_to-Cursor-black)]({cursor})
[![Add to VS Code](https://img.shields.io/badge/Add_to-VS_Code-0098FF)]({vscode})

These links add `uvx polymnia serve`. They need [uv](https://docs.astral.sh/uv/) and a released package, so in a checkout
use `polymnia install cursor` and `polymnia install vscode`.
"""

# Beside every `polymnia install`: nothing on these pages needs a released package.
_CHECKOUT = """\
If `polymnia` is not on your `PATH`, run `python3 -m venv .venv && .venv/bin/pip install -q '.[semantic]'` in a checkout
and write `.venv/bin/polymnia` instead. Nothing is on PyPI yet."""

_DIALECTS_PAGE = """\
# Dialects

A dialect is a set of tools that clients know. `polymnia serve` serves `{default}`; `--dialect` chooses another one, and
one HTTP server can serve several (`--also`).

Dialect and store are independent: `polymnia serve --dialect reference --store team.db` works too. JSON lines and the
binary log hold only entities, facts and relations, so only `reference` and `graph` run over them.

| dialect | tools | default store when it is chosen by name |
|---|---|---|
{rows}
"""

_COMMANDS_PAGE = """\
# Command line

`polymnia` alone lists the commands, and `polymnia COMMAND --help` shows the options of one. `polymnia completion SHELL`
prints a completion script, and `man polymnia` shows the manual page.
`polymnia recall` is another name of `polymnia search`.

The exit status is 0 for success, 1 for a failure and 2 for wrong arguments. Only results go to standard output;
`--json` prints them as JSON.
"""


def pages() -> Mapping[Path, str]:
    """Return the text of every file that is made, wholly or in part, from code."""
    made = {
        ROOT / "docs" / "clients" / f"{name}.md": client_page(client)
        for name, client in CLIENTS.items()
    }
    made[ROOT / "docs" / "clients" / "index.md"] = clients_page()
    made |= {ROOT / "docs" / "dialects" / f"{name}.md": dialect_page(name) for name in DIALECTS}
    made[ROOT / "docs" / "dialects" / "index.md"] = dialects_page()
    made[ROOT / "docs" / "commands.md"] = commands_page(read_grammar(build_parser()))
    made[ROOT / "docs" / "man" / "polymnia.1"] = manual_page()
    readme = ROOT / "README.md"
    made[readme] = _with_block(readme.read_text("utf-8"), "clients", readme_clients())
    return made


def readme_clients() -> str:
    return f"Clients: {', '.join(f'`{name}`' for name in CLIENTS)}.\n"


def clients_page() -> str:
    rows = [
        f"| [{client.title}]({name}.md) | `polymnia install {name}` | `{_place(client, 'Linux')}` |"
        for name, client in CLIENTS.items()
    ]
    return _CLIENTS_PAGE.format(
        rows="\n".join(rows),
        checkout=_CHECKOUT,
        cursor=cursor_link(DEFAULT_NAME, ANYWHERE),
        vscode=vscode_link(DEFAULT_NAME, ANYWHERE),
    )


def client_page(client: ClientProgram) -> str:
    """Return the page of one client."""
    places = "\n".join(f"| {system} | `{_place(client, system)}` |" for system in _ROOTS)
    parts = [
        f"# {client.title}\n",
        f"```sh\npolymnia install {client.name}\n```\n",
        f"{client.then}\n",
        f"{_CHECKOUT}\n",
        _plugin_part(client),
        f"## The file\n\n| system | file |\n|---|---|\n{places}\n",
        _project_part(client),
        "## By hand\n\nUse the absolute path of the command; `polymnia install --print` shows it.\n",
        _snippet(client, client.local_entry(_ABSOLUTE)),
    ]
    if client.remote is not None:
        parts += [
            f"## A team's server\n\n```sh\npolymnia install {client.name} --http {_URL} --token {_TOKEN}\n```\n",
            _snippet(client, client.remote_entry(_URL, _TOKEN)),
            "[Tokens](../tokens.md) says how to make one.\n",
        ]
    return "\n".join(part for part in parts if part)


def _plugin_part(client: ClientProgram) -> str:
    """Return how the client uses the memory without being asked."""
    parts = []
    if client.name in (*HOOK_FILES, *PLUGIN_FILES):
        what = "hooks" if client.name in HOOK_FILES else "a plugin with hooks"
        parts.append(
            f"`polymnia install {client.name} --hooks` adds {what}: a briefing when a session starts, "
            "and [facts on prompts](../agents.md#facts-on-every-prompt). "
            "The [table of programs](../agents.md#programs) says what each program gets.\n"
        )
    elif not client.has_plugin and client.name != "claude-desktop":
        parts.append(
            "`polymnia install --rules >> AGENTS.md` adds [rules](../agents.md#rules) that tell the agent when to recall and to remember.\n"
        )
    if client.has_plugin:
        parts.append(
            "The [plugin](../agents.md#agents-that-remember-by-themselves) has the same server, a briefing when a session "
            "starts and checkpoints of what was said; use one or the other.\n"
        )
    return "\n".join(parts)


def cursor_link(name: str, command: Sequence[str]) -> str:
    """Return a link that adds a server to Cursor."""
    config = b64encode(json.encode(CLIENTS["cursor"].local_entry(command))).decode()
    return f"https://cursor.com/en/install-mcp?{urlencode({'name': name, 'config': config})}"


def vscode_link(name: str, command: Sequence[str]) -> str:
    """Return a link that adds a server to VS Code."""
    config = json.encode(CLIENTS["vscode"].local_entry(command)).decode()
    query = f"name={name}&config={quote(config, safe='')}"
    return f"https://insiders.vscode.dev/redirect/mcp/install?{query}"


def dialects_page() -> str:
    rows = [
        f"| [`{name}`]({name}.md) | {len(open_dialect(name).tools)} | {_default_store(name)} |"
        for name in DIALECTS
    ]
    return _DIALECTS_PAGE.format(default=DEFAULT_DIALECT, rows="\n".join(rows))


def dialect_page(name: str) -> str:
    """Return the page of one dialect: how to start it, where its memory is, and its tools."""
    dialect = open_dialect(name)
    start = "polymnia serve" if name == DEFAULT_DIALECT else f"polymnia serve --dialect {name}"
    if dialect.requires_workspace:
        start = f"polymnia workspace create team --store {DIALECTS[name].store}\n{start} --workspace team"
    rows = [
        f"| `{tool.name}` | {_first_sentence(tool.description)} | {tool.needs} |"
        for tool in dialect.tools.values()
    ]
    resources = [
        f"| `{resource.uri}` | {_first_sentence(resource.description)} |"
        for resource in dialect.resources
    ]
    resources += [
        f"| `{template.uri_template}` | {_first_sentence(template.description)} |"
        for template in dialect.templates
    ]
    more = next((page for page in (f"{name}.md", f"{name}s.md") if (DOCS / page).exists()), "")
    parts = [
        f"# The {name} dialect\n",
        f"```sh\n{start}\n```\n",
        f"The memory is {_default_store(name)}.\n",
        f"[More about it](../{more}).\n" if more else "",
        "## Tools\n\n| tool | what it does | needs |\n|---|---|---|\n" + "\n".join(rows) + "\n",
        "## Resources\n\n| URI | what it is |\n|---|---|\n" + "\n".join(resources) + "\n"
        if resources
        else "",
    ]
    return "\n".join(part for part in parts if part)


def commands_page(root: Command) -> str:
    """Return the reference of the command line."""
    parts = [_COMMANDS_PAGE]
    for command in root.actions:
        parts.append(f"## polymnia {command.name}\n\n{_sentence(command.help)}\n")
        for action in command.actions or (command,):
            words = [f"polymnia {command.name}", *([action.name] if command.actions else [])]
            words += [
                f"{argument.metavar}..." if argument.is_repeated else argument.metavar
                for argument in action.arguments
            ]
            about = f"{_sentence(action.help)}\n\n" if command.actions else ""
            parts.append(f"```text\n{' '.join(words)}\n```\n\n{about}{_options_table(action)}")
    return "\n".join(parts)


def manual_page() -> str:
    """Return the text of polymnia(1)."""
    about = {
        "project_name": "polymnia",
        "version": __version__,
        "description": "the memory server for AI agents",
        "manual_title": "User Commands",
        "date": "2026",  # of the files in the repository, not of the machine that makes the page
    }
    page = str(Manpage(build_parser(), about, format="single-commands-section"))
    return page.replace(".SH\nPOSITIONAL ARGUMENTS", ".SH COMMANDS")


def _options_table(command: Command) -> str:
    rows = [
        f"| {' '.join(f'`{flag}`' for flag in option.flags)}{f' `{option.metavar}`' if option.metavar else ''} "
        f"| {option.help} |"
        for option in command.options
        if "--help" not in option.flags
    ]
    return "| option | what it does |\n|---|---|\n" + "\n".join(rows) + "\n"


def _default_store(name: str) -> str:
    spec = DIALECTS[name]
    if not spec.store:
        return "the directory `workspaces` in your data directory, with one for each project and a personal one"
    return (
        f"`{spec.store}`, or the file in `{spec.store_variable}`"
        if spec.store_variable
        else f"`{spec.store}`"
    )


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.split()).partition(". ")[0].rstrip(".")
    return sentence.replace("|", "\\|").replace("<", "&lt;")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _project_part(client: ClientProgram) -> str:
    if not client.project_file:
        return f"{client.title} has no file for one project.\n"
    return f"For one project it is `{client.project_file}`: `polymnia install {client.name} --scope project`.\n"


def _snippet(client: ClientProgram, entry: dict[str, object]) -> str:
    return f"```{client.form}\n{edit(client, '', {DEFAULT_NAME: entry})}```\n"


def _place(client: ClientProgram, system: str) -> str:
    roots = ClientRoots(**{name: Path(root) for name, root in _ROOTS[system].items()})
    path = PurePosixPath(client.path("user", roots, Path()) or "")
    return str(path).replace("/", "\\") if system == "Windows" else str(path)


def _with_block(text: str, name: str, block: str) -> str:
    """Return the text with what is between two comments replaced."""
    start, end = f"<!-- {name}: made by docs/generate.py -->\n", f"<!-- end of {name} -->"
    head, _, rest = text.partition(start)
    return head + start + block + end + rest.partition(end)[2]


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
