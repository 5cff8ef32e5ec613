"""The plugin in the programs it is made for.

Real sessions of Claude Code and Codex with a scripted model.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers.samples import read_items
from tests.interop.install import client_programs
from tests.interop.model_server import ModelServer, ToolCall, serve_model

ROOT = Path(__file__).parent.parent.parent
PLUGIN = ROOT / "packages" / "plugin"
FACT = "Deploys run on Fridays at noon."
QUESTION = "When do we deploy?"
REPLY = "The cat is called Mia."
# Claude Code asks its model without the tools of a server that starts slowly, as on a busy machine.
PATIENCE = {
    "MCP_TIMEOUT": "120000",
    "MCP_CONNECT_TIMEOUT_MS": "120000",
    "MCP_CONNECTION_NONBLOCKING": "0",
}
# A command `polymnia` that holds a lock while it runs, so that a test can wait for the hooks.
SCRIPT = """#!{python}
import fcntl, sys
held = open({lock!r})
fcntl.flock(held, fcntl.LOCK_SH)
from polymnia.cli import start
sys.exit(start())
"""
# Hooks end after a few seconds, which a busy machine may need to start one: then another session is
# asked, as a user would have one.
_MAX_SESSIONS = 6


class Home:
    """A user's home with a project in it, where the programs run."""

    def __init__(self, path: Path, programs: Path) -> None:
        self.path = path
        self.project = path / "shop"
        (self.project / ".git").mkdir(parents=True)
        (path / ".codex").mkdir()
        self._programs = programs / "node_modules"
        self._lock = path / "lock"
        self._lock.touch()
        self._script = path / "bin" / "polymnia"
        self._script.parent.mkdir()
        self._script.write_text(SCRIPT.format(python=sys.executable, lock=str(self._lock)), "utf-8")
        self._script.chmod(0o755)

    def run(
        self, *command: str | Path, variables: dict[str, str] | None = None, status: int | None = 0
    ) -> str:
        """Run a command in the project and return what it prints."""
        path = f"{self._script.parent}{os.pathsep}{os.environ['PATH']}"
        moved = (
            "XDG_",
            "CODEX",
            "CLAUDE",
            "ANTHROPIC",
            "OPENAI",
            "COPILOT",
            "OPENCODE",
            "POLYMNIA_STORE",
        )
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(moved)
        }
        # OpenCode works where PWD says, not where it was started.
        environment |= {"HOME": str(self.path), "PATH": path, "PWD": str(self.project)}
        environment["DISABLE_AUTOUPDATER"] = "1"
        environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **PATIENCE}
        environment |= variables or {}
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert status in (None, done.returncode), done.stdout + done.stderr
        return done.stdout + done.stderr

    def claude(self, *arguments: str | Path, model: ModelServer | None = None) -> str:
        self.run("node", self._programs / "@anthropic-ai" / "claude-code" / "install.cjs")
        access = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "scripted"} if model else {}
        return self.run(self._programs / ".bin" / "claude", *arguments, variables=access)

    def ask_claude(
        self, model: ModelServer, question: str, *options: str, plugin: Path = PLUGIN
    ) -> str:
        return self.claude("-p", question, "--plugin-dir", plugin, *options, model=model)

    def codex(self, *arguments: str) -> str:
        return self.run(self._programs / ".bin" / "codex", *arguments)

    def ask_codex(self, model: ModelServer, question: str) -> str:
        provider = {
            "name": "scripted",
            "base_url": f"{model.url}/v1",
            "env_key": "KEY",
            "wire_api": "responses",
        }
        inline = ", ".join([f"{name} = {json.dumps(value)}" for name, value in provider.items()])
        options = [
            f"model_providers.scripted={{{inline}}}",
            'model_provider="scripted"',
            'model="scripted"',
        ]
        flags = [word for option in options for word in ("-c", option)]
        # Otherwise the user would be asked whether to trust the project and the hooks.
        flags += ["--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
        return self.run(
            self._programs / ".bin" / "codex",
            "exec",
            *flags,
            question,
            variables={"KEY": "scripted"},
        )

    def ask_gemini(self, model: ModelServer, question: str) -> str:
        variables = {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": model.url}
        variables["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        gemini = self._programs / ".bin" / "gemini"
        return self.run(gemini, "-m", "gemini-2.5-flash", "-p", question, variables=variables)

    def ask_copilot(self, model: ModelServer, question: str) -> str:
        variables = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
        variables |= {"COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_MODEL": "claude-sonnet-4.5"}
        variables |= {
            "COPILOT_PROVIDER_BASE_URL": model.url,
            "COPILOT_PROVIDER_API_KEY": "scripted",
        }
        copilot = self._programs / ".bin" / "copilot"
        return self.run(copilot, "-p", question, "--allow-all-tools", variables=variables)

    def ask_opencode(self, model: ModelServer, question: str) -> str:
        access = {"baseURL": f"{model.url}/v1", "apiKey": "scripted"}
        models = {"scripted": {"name": "scripted", "limit": {"context": 200_000, "output": 1_000}}}
        provider = {"npm": "@ai-sdk/anthropic", "options": access, "models": models}
        named = dict.fromkeys(("model", "small_model"), "scripted/scripted")
        configuration = json.dumps({**named, "provider": {"scripted": provider}})
        variables = {"OPENCODE_CONFIG_CONTENT": configuration}
        variables |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        return self.run(self._programs / ".bin" / "opencode", "run", question, variables=variables)

    def is_stored(self, text: str) -> bool:
        """Tell whether the memory has the text when all hooks, which outlive programs, ended."""
        wait = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"
        self.run(sys.executable, "-c", wait, self._lock)
        return text in self.polymnia("search", text, "--json", status=None)

    def polymnia(self, *arguments: str, status: int | None = 0) -> str:
        return self.run(self._script, *arguments, status=status)


@pytest.fixture
def home(cache: Path, tmp_path: Path) -> Home:
    return Home(tmp_path, client_programs(cache))


def test_claude_code_accepts_the_plugin_and_the_marketplace(home: Home) -> None:
    assert "Validation passed" in home.claude("plugin", "validate", PLUGIN)
    assert "Validation passed" in home.claude("plugin", "validate", ROOT)


def test_claude_code_installs_the_plugin_from_the_repository(home: Home) -> None:
    home.claude("plugin", "marketplace", "add", str(ROOT))
    home.claude("plugin", "install", "polymnia@polymnia")
    assert "polymnia@polymnia" in home.claude("plugin", "list")
    assert re.search(
        r"^plugin:polymnia:memory: polymnia serve - .*Connected",
        home.claude("mcp", "list"),
        re.MULTILINE,
    )


def test_a_session_of_claude_code_is_briefed_on_the_one_before(home: Home) -> None:
    with serve_model(FACT) as model:
        home.ask_claude(model, QUESTION)
        home.ask_claude(model, "Hello again")
        first, second = model.prompts()
    assert FACT not in first
    assert f"assistant: {FACT}" in second
    assert FACT in home.polymnia("search", "deploys", "--json")


def test_the_tools_and_the_skill_of_the_plugin_are_offered_to_claude(home: Home) -> None:
    with serve_model("Hello") as model:
        home.ask_claude(model, "Hello")
        (prompt,) = model.prompts()
    assert "mcp__plugin_polymnia_memory__recall" in prompt
    assert "polymnia:memory" in prompt


def test_claude_code_is_checkpointed_before_it_compacts(home: Home) -> None:
    plugin = home.path / "plugin"
    shutil.copytree(PLUGIN, plugin)
    hooks = json.loads((plugin / "hooks" / "hooks.json").read_text("utf-8"))
    for event in ("Stop", "SessionEnd"):  # so that no other hook can have stored anything
        del hooks["hooks"][event]
    (plugin / "hooks" / "hooks.json").write_text(json.dumps(hooks), "utf-8")
    with serve_model(FACT) as model:
        home.ask_claude(model, QUESTION, plugin=plugin)
        home.ask_claude(model, "And then?", "--continue", plugin=plugin)
        assert "nothing has been remembered there yet" in home.polymnia(
            "search", "deploys", status=1
        )
        home.ask_claude(model, "/compact", "--continue", plugin=plugin)
    assert FACT in home.polymnia("search", "deploys", "--json")


def test_a_session_of_claude_code_is_imported_without_its_tools(home: Home) -> None:
    with serve_model(
        ToolCall("Bash", {"command": "echo noise", "description": "Say it"}), FACT
    ) as model:
        home.claude("-p", QUESTION, "--allowedTools", "Bash", model=model)
    kind, items, report = read_items(home.path / ".claude" / "projects")
    assert (kind, report.dropped_parts) == ("claude-code", [])
    assert [item.texts for item in items] == [(f"user: {QUESTION}", f"assistant: {FACT}")]  # type: ignore[union-attr]


def test_a_session_of_codex_is_briefed_on_the_one_before(home: Home) -> None:
    home.codex("plugin", "marketplace", "add", str(ROOT))
    home.codex("plugin", "add", "polymnia@polymnia")
    with serve_model(FACT) as model:
        home.ask_codex(model, QUESTION)
        home.ask_codex(model, "Hello again")
        first, second = model.prompts()
    assert FACT not in first
    assert f"assistant: {FACT}" in second
    assert "memory" in home.codex("mcp", "list")


def test_a_session_of_codex_is_imported_without_its_tools(home: Home) -> None:
    with serve_model(ToolCall("exec_command", {"cmd": "echo noise"}), FACT) as model:
        home.ask_codex(model, QUESTION)
    kind, items, report = read_items(home.path / ".codex" / "sessions")
    assert (kind, report.dropped_parts) == ("codex", [])
    assert [item.texts for item in items] == [(f"user: {QUESTION}", f"assistant: {FACT}")]  # type: ignore[union-attr]


def prepare_gemini(home: Home) -> None:
    settings = home.path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}', "utf-8")


# The programs whose hooks `polymnia install` adds, and how each is asked.
ASK = {"gemini": Home.ask_gemini, "copilot": Home.ask_copilot, "opencode": Home.ask_opencode}


@pytest.mark.parametrize("program", ASK)
def test_a_session_is_briefed_and_stored_until_its_hooks_are_removed(
    program: str, home: Home
) -> None:
    home.polymnia("remember", "deployment", FACT)
    if program == "gemini":
        prepare_gemini(home)
    home.polymnia("install", program, "--hooks")
    with serve_model(REPLY) as model:
        for _ in range(_MAX_SESSIONS):
            ASK[program](home, model, QUESTION)
            with_hooks = model.prompts()
            if home.is_stored(REPLY) and any(FACT in prompt for prompt in with_hooks):
                break
        else:
            pytest.fail(f"not stored, or not briefed: {with_hooks}")
        home.polymnia("install", program, "--hooks", "--remove")
        ASK[program](home, model, QUESTION)
        without = model.prompts()[len(with_hooks) :]
    assert not any(FACT in prompt for prompt in without)
