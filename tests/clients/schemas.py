"""What each client accepts in its configuration file, written down from its documentation or source.

Sources: Claude Code `docs/mcp`; VS Code `mcpConfiguration.ts`; Codex `mcp_types.rs`; Gemini CLI `settings.schema.json`;
Zed `ContextServerSettingsContent`; Continue `claudeDesktopLikeConfigFileSchema`; Cursor, Windsurf and Claude Desktop:
their pages about MCP. Claude Code, Codex, Gemini CLI and Continue are also asked themselves, in
tests/interop/test_client_programs.py.
"""

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_MAP = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _servers(key: str, *forms: dict[str, Any]) -> dict[str, Any]:
    return _object([key], **{key: {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": forms}}})


_STDIO = _object(["command"], command=_TEXT, args=_TEXTS, env=_MAP)
_TYPED_STDIO = _object(["type", "command"], type={"const": "stdio"}, command=_TEXT, args=_TEXTS, env=_MAP)
_TYPED_HTTP = _object(["type", "url"], type={"const": "http"}, url=_TEXT, headers=_MAP)
_HTTP = _object(["url"], url=_TEXT, headers=_MAP)

SCHEMAS: dict[str, dict[str, Any]] = {
    "claude-code": _servers("mcpServers", _TYPED_STDIO, _TYPED_HTTP),
    "claude-desktop": _servers("mcpServers", _STDIO),
    "cursor": _servers("mcpServers", _STDIO, _HTTP),
    "vscode": _servers("servers", _TYPED_STDIO, _TYPED_HTTP),
    "codex": _servers("mcp_servers", _STDIO, _object(["url"], url=_TEXT, http_headers=_MAP)),
    "windsurf": _servers("mcpServers", _STDIO, _object(["serverUrl"], serverUrl=_TEXT, headers=_MAP)),
    "gemini": _servers("mcpServers", _STDIO, _object(["httpUrl"], httpUrl=_TEXT, headers=_MAP)),
    # Zed requires `args`.
    "zed": _servers("context_servers", _object(["command", "args"], command=_TEXT, args=_TEXTS, env=_MAP), _HTTP),
    "continue": _servers("mcpServers", _TYPED_STDIO, _TYPED_HTTP),
}
