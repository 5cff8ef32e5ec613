"""Claude's memory tool: the files of `/memories` are notes, so that people and agents see them too.

The file `/memories/team/ada.md` is the note `memories/team/ada.md`. Directories are what the keys
have in common. The replies are those that the tool's documentation gives.
"""

from collections.abc import Sequence
from typing import Any

from polymnia_frameworks.memory import AnyMemory, missing, run

try:
    from anthropic.lib.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncAbstractMemoryTool,
        ToolError,
    )
except ImportError as exc:
    raise missing("anthropic") from exc

_ROOT = "/memories"
_TAG = "memory-tool"
_LINE_NUMBER_WIDTH = 6
_MAX_LEVELS = 2
_CONTEXT_LINES = 2


class PolymniaMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner(tools=[…])`."""

    def __init__(self, memory: AnyMemory, **options: Any) -> None:
        super().__init__(**options)
        self._files = _Files(memory)

    def view(self, command: Any) -> str:
        """Return a file with line numbers, or the files of a directory."""
        return self._files.view(command)

    def create(self, command: Any) -> str:
        """Create a file."""
        return self._files.create(command)

    def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once in a file."""
        return self._files.str_replace(command)

    def insert(self, command: Any) -> str:
        """Insert a text after a line of a file."""
        return self._files.insert(command)

    def delete(self, command: Any) -> str:
        """Delete a file or a directory."""
        return self._files.delete(command)

    def rename(self, command: Any) -> str:
        """Rename or move a file or a directory."""
        return self._files.rename(command)

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return self._files.clear()


class AsyncPolymniaMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool of an asynchronous client."""

    def __init__(self, memory: AnyMemory, **options: Any) -> None:
        super().__init__(**options)
        self._files = _Files(memory)

    async def view(self, command: Any) -> str:
        """Return a file with line numbers, or the files of a directory."""
        return await run(lambda: self._files.view(command))

    async def create(self, command: Any) -> str:
        """Create a file."""
        return await run(lambda: self._files.create(command))

    async def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once in a file."""
        return await run(lambda: self._files.str_replace(command))

    async def insert(self, command: Any) -> str:
        """Insert a text after a line of a file."""
        return await run(lambda: self._files.insert(command))

    async def delete(self, command: Any) -> str:
        """Delete a file or a directory."""
        return await run(lambda: self._files.delete(command))

    async def rename(self, command: Any) -> str:
        """Rename or move a file or a directory."""
        return await run(lambda: self._files.rename(command))

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await run(self._files.clear)


class _Files:
    """The commands of the tool on notes."""

    def __init__(self, memory: AnyMemory) -> None:
        self._notes = memory.notes

    def view(self, command: Any) -> str:
        key = _key(command.path)
        content = self._content(key)
        if content is not None:
            lines = _numbered(content.split("\n"), command.view_range)
            return f"Here's the content of {command.path} with line numbers:\n" + "\n".join(lines)
        if not self._below(key) and command.path.rstrip("/") != _ROOT:
            raise _not_there(command.path)
        header = (
            f"Here're the files and directories up to 2 levels deep in {command.path}, "
            "excluding hidden items:"
        )
        return "\n".join([header, *self._listing(key, command.path.rstrip("/"))])

    def create(self, command: Any) -> str:
        key = _key(command.path)
        if key == _key(_ROOT) or self._below(key):
            raise ToolError(f"{command.path} is a directory")
        if self._content(key) is not None:
            raise ToolError(f"File {command.path} already exists")
        self._put(key, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        content = self._file(command.path)
        old = command.old_str
        if not old or old not in content:
            raise ToolError(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                f"{command.path}."
            )
        lines = _lines_with(content, old)
        if len(lines) > 1:
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(map(str, lines))}. Please ensure it is unique"
            )
        changed = content.replace(old, command.new_str)
        self._put(_key(command.path), changed)
        shown = [max(1, lines[0] - _CONTEXT_LINES), lines[0] + _CONTEXT_LINES]
        snippet = "\n".join(_numbered(changed.split("\n"), shown))
        return (
            "The memory file has been edited. Here is the snippet showing the change "
            f"(with line numbers):\n{snippet}"
        )

    def insert(self, command: Any) -> str:
        lines = self._file(command.path).split("\n")
        if lines[-1] == "":
            lines.pop()  # the end of the last line is no line of its own
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._put(_key(command.path), "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        key = _key(command.path)
        if key == _key(_ROOT):
            raise ToolError("Cannot delete the /memories directory itself")
        keys = self._keys_at(key)
        if not keys:
            raise ToolError(f"The path {command.path} does not exist")
        for file_key in keys:
            self._notes.delete(file_key)
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        old, new = _key(command.old_path), _key(command.new_path)
        if old == _key(_ROOT):
            raise ToolError("Cannot rename the /memories directory itself")
        keys = self._keys_at(old)
        if not keys:
            raise ToolError(f"The path {command.old_path} does not exist")
        if self._keys_at(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        # All copies first, so that a failure in between loses nothing.
        for note in self._notes.read(keys):
            self._put(new + note.key.removeprefix(old), note.content)
        for file_key in keys:
            self._notes.delete(file_key)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear(self) -> str:
        for file_key in self._below(_key(_ROOT)):
            self._notes.delete(file_key)
        return "All memory cleared"

    def _put(self, key: str, content: str) -> None:
        self._notes.put(key, content, tags=[_TAG])

    def _content(self, key: str) -> str | None:
        note = self._notes.get(key)
        return None if note is None else note.content

    def _file(self, path: str) -> str:
        """Return the content of a file. Raise ToolError if there is none."""
        key = _key(path)
        content = self._content(key)
        if content is not None:
            return content
        if self._below(key):
            raise ToolError(f"The path {path} is not a file.")
        raise _not_there(path)

    def _below(self, key: str) -> list[str]:
        return self._notes.keys(f"{key}/")

    def _keys_at(self, key: str) -> list[str]:
        """Return the file with that key, or the files of the directory."""
        if self._content(key) is not None:
            return [key]
        return self._below(key)

    def _listing(self, key: str, path: str) -> list[str]:
        """Return a line with the size for the directory and all that is two levels below it."""
        sizes: dict[str, int] = {"": 0}
        for note in self._notes.read(self._below(key)):
            parts = note.key.removeprefix(f"{key}/").split("/")
            if any(part.startswith(".") for part in parts):
                continue
            size = len(note.content.encode())
            sizes[""] += size
            for level in range(1, min(len(parts), _MAX_LEVELS) + 1):
                name = "/" + "/".join(parts[:level])
                if level < len(parts):
                    name += "/"
                sizes[name] = sizes.get(name, 0) + size
        return [f"{_readable_size(size)}\t{path}{name}" for name, size in sorted(sizes.items())]


def _key(path: str) -> str:
    """Return the key of a path. Raise ToolError if the path leaves the directory."""
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or not parts or f"/{parts[0]}" != _ROOT:
        raise ToolError(f"Path must start with /memories, got: {path}")
    if "." in parts or ".." in parts:
        raise ToolError(f"Path {path} would escape /memories directory")
    return "/".join(parts)


def _not_there(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _numbered(lines: Sequence[str], view_range: Sequence[int] | None) -> list[str]:
    first, last = 1, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        if view_range[1] != -1:
            last = view_range[1]
    numbered = []
    for number, line in enumerate(lines[first - 1 : last], first):
        numbered.append(f"{number:>{_LINE_NUMBER_WIDTH}}\t{line}")
    return numbered


def _lines_with(content: str, text: str) -> list[int]:
    """Return the numbers of the lines in which the text begins."""
    numbers = []
    position = content.find(text)
    while position >= 0:
        numbers.append(content.count("\n", 0, position) + 1)
        position = content.find(text, position + 1)
    return numbers


def _readable_size(size: int) -> str:
    amount, units = float(size), ["B", "K", "M"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.1f}".removesuffix(".0") + units[0]
