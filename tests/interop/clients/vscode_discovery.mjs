// Print where VS Code looks for another client's file below a home directory, and the servers that it finds there.
import { readFileSync } from "node:fs";
import { Platform } from "@codingame/monaco-vscode-api/vscode/vs/base/common/platform";
import { URI } from "@codingame/monaco-vscode-api/vscode/vs/base/common/uri";
import {
  ClaudeDesktopMpcDiscoveryAdapter,
  CursorDesktopMpcDiscoveryAdapter,
  WindsurfDesktopMpcDiscoveryAdapter,
} from "@codingame/monaco-vscode-mcp-service-override/vscode/vs/workbench/contrib/mcp/common/discovery/nativeMcpDiscoveryAdapters";

const adapters = {
  "claude-desktop": ClaudeDesktopMpcDiscoveryAdapter,
  cursor: CursorDesktopMpcDiscoveryAdapter,
  windsurf: WindsurfDesktopMpcDiscoveryAdapter,
};
const [client, home] = process.argv.slice(2);
const details = { platform: Platform.Linux, homedir: URI.file(home) };
const adapter = new adapters[client]("");
const path = adapter.getFilePath(details).fsPath;
const found = await adapter.adaptFile(readFileSync(path), details);
console.log(JSON.stringify({ path, servers: found.map(({ label, launch }) => ({ label, ...launch })) }));
