"""Compare the tool with the SDK's own, which keeps files, in every command and every mistake."""

import asyncio
import tempfile

from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from memory import open_memory

from polymnia_frameworks.anthropic import AsyncPolymniaMemoryTool, PolymniaMemoryTool

LONG = "\n".join(f"line {number}" for number in range(1, 31))
COMMANDS = [
    {"command": "create", "path": "/memories/ada.md", "file_text": "Ada\nlikes tea\nAda\n"},
    {"command": "create", "path": "/memories/ada.md", "file_text": "again"},
    {"command": "create", "path": "/memories/team/notes/long.txt", "file_text": LONG},
    {"command": "view", "path": "/memories/ada.md"},
    {"command": "view", "path": "/memories/ada.md", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/team/notes/long.txt", "view_range": [28, -1]},
    {"command": "view", "path": "/memories/unknown"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": "/memories/../etc"},
    {
        "command": "str_replace",
        "path": "/memories/ada.md",
        "old_str": "likes tea",
        "new_str": "likes coffee",
    },
    {"command": "str_replace", "path": "/memories/ada.md", "old_str": "Ada", "new_str": "Bob"},
    {"command": "str_replace", "path": "/memories/ada.md", "old_str": "Eve", "new_str": "Bob"},
    {"command": "str_replace", "path": "/memories/no.md", "old_str": "a", "new_str": "b"},
    {"command": "str_replace", "path": "/memories/team", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": "/memories/ada.md", "insert_line": 0, "insert_text": "# Ada\n"},
    {"command": "insert", "path": "/memories/ada.md", "insert_line": 4, "insert_text": "end"},
    {"command": "insert", "path": "/memories/ada.md", "insert_line": 99, "insert_text": "no"},
    {"command": "view", "path": "/memories/ada.md"},
    {"command": "rename", "old_path": "/memories/ada.md", "new_path": "/memories/people/ada.md"},
    {"command": "rename", "old_path": "/memories/ada.md", "new_path": "/memories/b.md"},
    {"command": "rename", "old_path": "/memories/team", "new_path": "/memories/people"},
    {"command": "rename", "old_path": "/memories/team", "new_path": "/memories/group"},
    {"command": "view", "path": "/memories/group/notes/long.txt", "view_range": [1, 2]},
    {"command": "delete", "path": "/memories/group/notes"},
    {"command": "delete", "path": "/memories/nothing"},
    {"command": "delete", "path": "/memories"},
]


def replies(tool):
    return [reply(tool, command) for command in COMMANDS]


def reply(tool, command):
    try:
        return tool.call(command)
    except ToolError as error:
        return f"error: {error}"


with open_memory() as memory, tempfile.TemporaryDirectory() as directory:
    tool = PolymniaMemoryTool(memory)
    ours, theirs = replies(tool), replies(BetaLocalFilesystemMemoryTool(directory))
    different = [pair for pair in zip(COMMANDS, ours, theirs, strict=True) if pair[1] != pair[2]]
    assert different == [], different
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}

    listing = tool.call({"command": "view", "path": "/memories"})
    assert listing.splitlines()[1:] == [
        "31B\t/memories",
        "31B\t/memories/people/",
        "31B\t/memories/people/ada.md",
    ], listing
    # People and other agents see the files.
    assert "likes coffee" in memory.notes.get("memories/people/ada.md").content
    again = AsyncPolymniaMemoryTool(memory)
    text = asyncio.run(again.call({"command": "view", "path": "/memories/people/ada.md"}))
    assert "likes coffee" in text
    tool.clear_all_memory()
    assert memory.notes.keys("memories/") == []
print("passed")
