"""Write the parts of the documentation that are made from code: `python -m docs.generate`.

tests/test_docs.py checks that the files are what this module makes.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from polymnia import __version__
from polymnia.cli.grammar import read_grammar
from polymnia.cli.install import DEFAULT_NAME
from polymnia.cli.main import build_parser
from polymnia.cli.manual import manual_page
from polymnia.clients.configuration import edit
from polymnia.clients.table import CLIENTS, Client, cursor_link, vscode_link
from polymnia.settings import ClientRoots

ROOT = Path(__file__).parent.parent
# A command that works on any machine that has uv.
ANYWHERE = ("uvx", "polymnia", "serve")
_ABSOLUTE = ("/home/me/.local/bin/polymnia", "serve")
_URL, _TOKEN = "https://memory.example.com/mcp", "TOKEN"
_ROOTS = {
    "Linux": ("~", "~/.config", "~", "~/.codex", "~/.config/zed"),
    "macOS": ("~", "~/Library/Application Support", "~", "~/.codex", "~/.config/zed"),
    "Windows": ("%USERPROFILE%", "%APPDATA%", "%USERPROFILE%", "%USERPROFILE%/.codex", "%APPDATA%/Zed"),
}

_CLIENTS_PAGE = """\
# Clients

`polymnia install CLIENT` adds the server to a client's configuration file: with the absolute path of the command, after
a test that it starts and answers. Comments and everything else in the file stay, and the former file is kept beside it.
`polymnia install --list` shows which clients are on this machine and what they have.

| client | command | file on Linux |
|---|---|---|
{rows}

| option | what it does |
|---|---|
| `--scope project` | writes the file of the project in the working directory instead of yours |
| `--print` | prints the entry and changes nothing |
| `--remove` | removes the entry |
| `--http URL --token TOKEN` | connects to a [team's server](../http.md) instead of starting one |
| `--name NAME` | names the server; the default is `memory` |
| `--store`, `--dialect`, `--workspace` | go into the entry; without them it is just `polymnia serve` |
| `--yes` | replaces another server of the same name, or the reference memory server, without asking |

If the client has an entry of the reference memory server, `install` offers to replace it and imports the file in its
`MEMORY_FILE_PATH`.
"""


def pages() -> Mapping[Path, str]:
    """Return the text of every file that is made, wholly or in part, from code."""
    made = {ROOT / "docs" / "clients" / f"{name}.md": client_page(client) for name, client in CLIENTS.items()}
    made[ROOT / "docs" / "clients" / "index.md"] = clients_page()
    made[ROOT / "docs" / "man" / "polymnia.1"] = manual_page(read_grammar(build_parser()), __version__)
    readme = ROOT / "README.md"
    made[readme] = _with_block(readme.read_text("utf-8"), "clients", readme_clients())
    return made


def readme_clients() -> str:
    cursor, vscode = cursor_link(DEFAULT_NAME, ANYWHERE), vscode_link(DEFAULT_NAME, ANYWHERE)
    names = ", ".join(f"`{name}`" for name in CLIENTS)
    return (
        f"Clients: {names}.\n\n"
        f"[![Add to Cursor](https://img.shields.io/badge/Add_to-Cursor-black)]({cursor})\n"
        f"[![Add to VS Code](https://img.shields.io/badge/Add_to-VS_Code-0098FF)]({vscode})\n"
        "(these two need [uv](https://docs.astral.sh/uv/))\n"
    )


def clients_page() -> str:
    rows = [
        f"| [{client.title}]({name}.md) | `polymnia install {name}` | `{_place(client, 'Linux')}` |"
        for name, client in CLIENTS.items()
    ]
    return _CLIENTS_PAGE.format(rows="\n".join(rows))


def client_page(client: Client) -> str:
    """Return the page of one client."""
    places = "\n".join(f"| {system} | `{_place(client, system)}` |" for system in _ROOTS)
    parts = [
        f"# {client.title}\n",
        f"```sh\npolymnia install {client.name}\n```\n",
        f"{client.then}\n",
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


def _project_part(client: Client) -> str:
    if not client.project_file:
        return f"{client.title} has no file for one project.\n"
    return f"For one project it is `{client.project_file}`: `polymnia install {client.name} --scope project`.\n"


def _snippet(client: Client, entry: dict[str, object]) -> str:
    return f"```{client.form}\n{edit(client, '', {DEFAULT_NAME: entry})}```\n"


def _place(client: Client, system: str) -> str:
    names = ("home", "applications", "claude", "codex", "zed")
    roots = ClientRoots(**{name: Path(each) for name, each in zip(names, _ROOTS[system], strict=True)})
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
