// Print what Continue reads from a file of MCP servers, which comes on standard input. Fail if its schema refuses it.
import { readFileSync } from "node:fs";
import { claudeDesktopLikeConfigFileSchema } from "@continuedev/config-yaml";

console.log(JSON.stringify(claudeDesktopLikeConfigFileSchema.parse(JSON.parse(readFileSync(0, "utf8")))));
