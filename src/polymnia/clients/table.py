"""The MCP clients that `polymnia install` knows: their files, keys and forms of an entry.

The command, the README and the pages in docs/clients/ are made from CLIENTS.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from polymnia.errors import BadInput
from polymnia.settings import ClientRoots

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")


class Remote(Struct, frozen=True, kw_only=True):
    """How a client writes a server that it reaches over HTTP."""

    url: str = "url"
    headers: str = "headers"
    fixed: Mapping[str, Any] = {}


class ClientProgram(Struct, frozen=True, kw_only=True):
    """One client. `root` is a field of ClientRoots, and `user_file` is below it."""

    name: str
    title: str
    root: Literal["home", "applications", "claude", "codex", "copilot", "opencode", "zed"]
    user_file: str
    # Below the project's directory; empty if the client has no such file.
    project_file: str = ""
    # The object or table that holds the servers.
    key: str = "mcpServers"
    form: Literal["json", "toml"] = "json"
    # Fields that every local entry has.
    fixed: Mapping[str, Any] = {}
    # True if the command and its arguments are one array, and the environment has another name.
    has_command_array: bool = False
    # None if its file has no servers over HTTP.
    remote: Remote | None = None
    # A program on the PATH that shows that the client is installed.
    program: str = ""
    # True if there is a plugin for it, in packages/plugin.
    has_plugin: bool = False
    # What to do when the entry is there.
    then: str

    def path(self, scope: Scope, roots: ClientRoots, project: Path) -> Path | None:
        """Return its configuration file; None if it has none for the scope."""
        if scope == "project":
            return project / self.project_file if self.project_file else None
        base: Path = getattr(roots, self.root)
        return base / self.user_file

    def is_installed(self, roots: ClientRoots) -> bool:
        """Return True if the client seems to be installed."""
        base: Path = getattr(roots, self.root)
        path = base / self.user_file
        if path.exists() or (self.program and shutil.which(self.program)):
            return True
        if self.root == "home":  # which is there anyway
            folder, slash, _ = self.user_file.partition("/")
            return bool(slash) and (base / folder).is_dir()
        return self.root != "claude" and path.parent.is_dir()

    def local_entry(
        self, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the entry of a server that the client starts."""
        entry: dict[str, Any] = dict(self.fixed)
        if self.has_command_array:
            entry["command"] = list(command)
        else:
            entry |= {"command": command[0], "args": list(command[1:])}
        if env:
            entry["environment" if self.has_command_array else "env"] = dict(env)
        return entry

    def remote_entry(self, url: str, token: str) -> dict[str, Any]:
        """Return the entry of a server at a URL. Raise BadInput if the client has none."""
        if self.remote is None:
            raise BadInput(
                f"{self.title} has no servers over HTTP in its configuration file: "
                f"add {url} in its settings"
            )
        entry: dict[str, Any] = {**self.remote.fixed, self.remote.url: url}
        if token:
            entry[self.remote.headers] = {"Authorization": f"Bearer {token}"}
        return entry


CLIENTS: Mapping[str, ClientProgram] = {
    client.name: client
    for client in (
        ClientProgram(
            name="claude-code",
            title="Claude Code",
            root="claude",
            user_file=".claude.json",
            project_file=".mcp.json",
            fixed={"type": "stdio"},
            remote=Remote(fixed={"type": "http"}),
            program="claude",
            has_plugin=True,
            then="Start a new session; `claude mcp list` shows the server.",
        ),
        ClientProgram(
            name="claude-desktop",
            title="Claude Desktop",
            root="applications",
            user_file="Claude/claude_desktop_config.json",
            then="Quit Claude Desktop and start it again.",
        ),
        ClientProgram(
            name="cursor",
            title="Cursor",
            root="home",
            user_file=".cursor/mcp.json",
            project_file=".cursor/mcp.json",
            remote=Remote(),
            program="cursor",
            then="Cursor shows the server under Settings, MCP.",
        ),
        ClientProgram(
            name="vscode",
            title="VS Code",
            root="applications",
            user_file="Code/User/mcp.json",
            project_file=".vscode/mcp.json",
            key="servers",
            fixed={"type": "stdio"},
            remote=Remote(fixed={"type": "http"}),
            program="code",
            then="Run the command `MCP: List Servers` in VS Code and start the server.",
        ),
        ClientProgram(
            name="codex",
            title="Codex",
            root="codex",
            user_file="config.toml",
            project_file=".codex/config.toml",
            key="mcp_servers",
            form="toml",
            remote=Remote(headers="http_headers"),
            program="codex",
            has_plugin=True,
            then="Start a new session; `codex mcp list` shows the server.",
        ),
        ClientProgram(
            name="windsurf",
            title="Windsurf",
            root="home",
            user_file=".codeium/windsurf/mcp_config.json",
            remote=Remote(url="serverUrl"),
            program="windsurf",
            then="Refresh the MCP servers in Cascade's settings.",
        ),
        ClientProgram(
            name="gemini",
            title="Gemini CLI",
            root="home",
            user_file=".gemini/settings.json",
            project_file=".gemini/settings.json",
            remote=Remote(url="httpUrl"),
            program="gemini",
            then="Start a new session in a folder that Gemini CLI trusts; `gemini mcp list` shows "
            "the server.",
        ),
        ClientProgram(
            name="copilot",
            title="GitHub Copilot CLI",
            root="copilot",
            user_file="mcp-config.json",
            fixed={"type": "local", "tools": ["*"]},
            remote=Remote(fixed={"type": "http", "tools": ["*"]}),
            program="copilot",
            then="Start a new session; `copilot mcp list` shows the server.",
        ),
        ClientProgram(
            name="opencode",
            title="OpenCode",
            root="opencode",
            user_file="opencode.json",
            project_file="opencode.json",
            key="mcp",
            fixed={"type": "local"},
            has_command_array=True,
            remote=Remote(fixed={"type": "remote"}),
            program="opencode",
            then="Start a new session; `opencode mcp list` shows the server.",
        ),
        ClientProgram(
            name="zed",
            title="Zed",
            root="zed",
            user_file="settings.json",
            project_file=".zed/settings.json",
            key="context_servers",
            remote=Remote(),
            program="zed",
            then="Zed shows the server in the settings of its agent panel.",
        ),
        ClientProgram(
            name="continue",
            title="Continue",
            root="home",
            user_file=".continue/mcpServers/polymnia.json",
            project_file=".continue/mcpServers/polymnia.json",
            fixed={"type": "stdio"},
            remote=Remote(fixed={"type": "http"}),
            program="cn",
            then="Reload Continue's configuration; its agent mode offers the tools.",
        ),
    )
}


def is_polymnia(entry: Any, url: str = "") -> bool:
    """Return True if an entry starts this program, or connects to it with our token or at `url`."""
    if any(Path(word).stem == "polymnia" for word in _words(entry)):
        return True
    if not isinstance(entry, dict):
        return False
    for member in entry.values():
        header = member.get("Authorization") if isinstance(member, dict) else None
        if isinstance(header, str) and header.startswith("Bearer ply_"):
            return True
    return bool(url) and url in entry.values()


def is_reference_server(entry: Any) -> bool:
    """Return True if an entry starts the reference memory server, from npm or as a container."""
    names = ("@modelcontextprotocol/server-memory", "mcp-server-memory", "mcp/memory")
    return any(name in word for word in _words(entry) for name in names)


def _words(entry: Any) -> list[str]:
    """Return the command and the arguments of an entry, which may be of any form."""
    if not isinstance(entry, dict):
        return []
    command: Any = entry.get("command")
    arguments: Any = entry.get("args")
    if isinstance(command, dict):  # the form that earlier versions of Zed use
        command, arguments = command.get("path"), command.get("args")
    words = command if isinstance(command, list) else [command]
    if isinstance(arguments, list):
        words = [*words, *arguments]
    return [word for word in words if isinstance(word, str)]
