"""What each client accepts in its configuration file, compared with what its makers publish.

| client | source |
|---|---|
| Claude Code, Codex, Gemini CLI, GitHub Copilot CLI, OpenCode | their programs on npm connect to what was installed |
| Continue | `claudeDesktopLikeConfigFileSchema` of `@continuedev/config-yaml` on npm |
| VS Code | `mcpServerSchema` in microsoft/vscode, `workbench/contrib/mcp/common/mcpConfiguration.ts`, as on npm |
| Cursor | the type `McpServerConfig` of `@cursor/sdk` 1.0.18; VS Code's reader of its file |
| Claude Desktop, Windsurf | their pages about MCP; VS Code's readers of their files (`nativeMcpDiscoveryAdapters.ts`) |
| Zed | `ContextServerSettingsContent` in zed-industries/zed 006ce51, `crates/settings_content/src/project.rs` |

tests/interop/test_client_programs.py runs the programs, schemas and readers that are on npm. The
schemas here are stricter than their sources: they have only the fields that we write.
"""

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_MAP = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _servers(key: str, *forms: dict[str, Any]) -> dict[str, Any]:
    return _object(
        [key],
        **{key: {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": forms}}},
    )


_STDIO = _object(["command"], command=_TEXT, args=_TEXTS, env=_MAP)
_TYPED_STDIO = _object(
    ["type", "command"], type={"const": "stdio"}, command=_TEXT, args=_TEXTS, env=_MAP
)
_TYPED_HTTP = _object(["type", "url"], type={"const": "http"}, url=_TEXT, headers=_MAP)
_HTTP = _object(["url"], url=_TEXT, headers=_MAP)

SCHEMAS: dict[str, dict[str, Any]] = {
    "claude-code": _servers("mcpServers", _TYPED_STDIO, _TYPED_HTTP),
    "claude-desktop": _servers("mcpServers", _STDIO),
    "cursor": _servers("mcpServers", _STDIO, _HTTP),
    "vscode": _servers("servers", _TYPED_STDIO, _TYPED_HTTP),
    "codex": _servers("mcp_servers", _STDIO, _object(["url"], url=_TEXT, http_headers=_MAP)),
    "windsurf": _servers(
        "mcpServers", _STDIO, _object(["serverUrl"], serverUrl=_TEXT, headers=_MAP)
    ),
    "gemini": _servers("mcpServers", _STDIO, _object(["httpUrl"], httpUrl=_TEXT, headers=_MAP)),
    "copilot": _servers(
        "mcpServers",
        _object(
            ["type", "command", "tools"],
            type={"const": "local"},
            command=_TEXT,
            args=_TEXTS,
            env=_MAP,
            tools=_TEXTS,
        ),
        _object(
            ["type", "url", "tools"], type={"const": "http"}, url=_TEXT, headers=_MAP, tools=_TEXTS
        ),
    ),
    "opencode": _servers(
        "mcp",
        _object(["type", "command"], type={"const": "local"}, command=_TEXTS, environment=_MAP),
        _object(["type", "url"], type={"const": "remote"}, url=_TEXT, headers=_MAP),
    ),
    # Older versions of Zed require `args`.
    "zed": _servers(
        "context_servers", _object(["command", "args"], command=_TEXT, args=_TEXTS, env=_MAP), _HTTP
    ),
    "continue": _servers("mcpServers", _TYPED_STDIO, _TYPED_HTTP),
}
