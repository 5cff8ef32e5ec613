// The plugin of Polymnia for OpenCode. `polymnia install opencode --hooks` writes this file, and
// `--remove` deletes it. An error here does not stop the session.
import { spawn } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const COMMAND = [] // written by `polymnia install`
const TIMEOUT_MS = 5000

// Run `polymnia hook EVENT` with these fields and return its answer; empty if there is none.
function runHook(event, fields) {
  return new Promise((resolve) => {
    const [program, ...words] = COMMAND
    const hook = spawn(program, [...words, "hook", event, "--for", "opencode"], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: TIMEOUT_MS,
    })
    let output = ""
    hook.stdout.on("data", (data) => (output += data))
    hook.on("error", () => resolve(""))
    hook.on("close", () => {
      try {
        resolve(JSON.parse(output).additionalContext ?? "")
      } catch {
        resolve("")
      }
    })
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(fields))
  })
}

// Run `polymnia hook EVENT` so that it outlives the program, which may end at any moment.
function startHook(event, fields) {
  const [program, ...words] = COMMAND
  const folder = mkdtempSync(join(tmpdir(), "polymnia-"))
  try {
    const file = join(folder, "event.json")
    writeFileSync(file, JSON.stringify(fields), { mode: 0o600 })
    const input = openSync(file, "r")
    const options = { stdio: [input, "ignore", "ignore"], detached: true, windowsHide: true }
    const hook = spawn(program, [...words, "hook", event, "--for", "opencode"], options)
    hook.on("error", () => {})
    hook.unref()
    closeSync(input)
  } finally {
    rmSync(folder, { recursive: true, force: true }) // the hook has the file open
  }
}

// Return the words of a message, without the output of tools and what plugins added.
function said(parts) {
  const texts = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  return texts.map((part) => part.text).join("\n\n")
}

export const Polymnia = async ({ client, directory }) => {
  const briefings = new Map() // of sessions

  async function checkpoint(session) {
    const { data: info } = await client.session.get({ path: { id: session } })
    if (info?.parentID) return // the session of a subagent
    const { data } = await client.session.messages({ path: { id: session } })
    const turns = (data ?? []).map(({ info, parts }) => ({
      speaker: info.role,
      text: info.summary === true ? "" : said(parts),
      at: new Date(info.time.created).toISOString(),
    }))
    startHook("Stop", { session_id: session, cwd: directory, turns })
  }

  return {
    "chat.message": async ({ sessionID }, output) => {
      const fields = { session_id: sessionID, cwd: directory }
      if (!briefings.has(sessionID)) briefings.set(sessionID, await runHook("SessionStart", fields))
      const prompt = said(output.parts)
      const text = await runHook("UserPromptSubmit", { ...fields, prompt })
      const last = output.parts.at(-1)
      if (!text || !last) return
      const message = { sessionID, messageID: output.message.id, type: "text", synthetic: true }
      output.parts.push({ ...message, id: `${last.id}m`, text }) // parts are sorted by their ids
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const briefing = briefings.get(sessionID)
      if (briefing) output.system.push(briefing)
    },
    event: async ({ event }) => {
      if (event.type === "session.idle") await checkpoint(event.properties.sessionID)
      if (event.type === "session.compacted") briefings.delete(event.properties.sessionID)
    },
  }
}
