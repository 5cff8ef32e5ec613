// Print VS Code's JSON schema of mcp.json, from its source as published on npm.
import { mcpServerSchema } from "@codingame/monaco-vscode-api/vscode/vs/workbench/contrib/mcp/common/mcpConfiguration";

console.log(JSON.stringify(mcpServerSchema));
