"""Facts that name files, compared with the git work tree: is a file gone, did it change since?

Only what git confirms is said. A path that git never had may belong to another project, so a file
counts as gone only if a commit deleted it since the fact was written, or if it is still in the
index. Texts without a path cost nothing. For the paths of a reply git is asked at most once, and a
reply waits for it WAIT_S at most: in a long history the answer comes later and is there for the
next reply. It stays until the work tree has another commit.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Lock, Thread

from msgspec import Struct

from polymnia.search.terms import count_noun

# The facts of a reply that are checked, and how long the reply waits for git.
MAX_CHECKED_FACTS = 12
WAIT_S = 0.03
GIT_TIMEOUT_S = 5.0
# A path has a directory and an ending, or the ending of a source file.
_PATH = re.compile(
    r"(?<![\w/.:@~-])"
    r"(?:(?:[\w-][\w.-]*/)+[\w.-]+\.\w{1,8}"
    r"|[\w-]+\.(?:c|cpp|css|go|h|html|ini|java|json|jsx|kt|lock|md|php|py|rb|rs|sh|sql|swift"
    r"|toml|ts|tsx|yaml|yml))"
    r"(?![\w/])"
)


def paths_in(text: str) -> list[str]:
    """Return the paths of files that a text names."""
    if "." not in text:
        return []
    return [path for path in dict.fromkeys(_PATH.findall(text)) if "/../" not in f"/{path}/"]


class _PathLog(Struct, frozen=True):
    """The commits since a time that changed a path."""

    since: int
    commits: list[tuple[int, str, str]]  # when, its hash, and the letter that git has for it


class _WorkTree:
    """What git said about the paths of a work tree, as long as it has the same commit."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = Lock()
        self._state: tuple[int, ...] = ()
        self._logs: dict[str, _PathLog] = {}
        self._reader: Thread | None = None

    def logs(self, oldest: dict[str, int], wait: float) -> dict[str, _PathLog]:
        """Return what is known of paths since these times. Wait that long for the rest."""
        with self._lock:
            state = self._read_state()
            if state != self._state or len(self._logs) > 1_000:
                self._state, self._logs = state, {}
            unknown = []
            for path, since in oldest.items():
                log = self._logs.get(path)
                if log is None or log.since > since:
                    unknown.append(path)
            reader = self._reader
            if unknown and (reader is None or not reader.is_alive()):
                since = min(oldest[path] for path in unknown)
                reader = Thread(target=self._read, args=(state, unknown, since), daemon=True)
                self._reader = reader
                reader.start()
        if unknown and reader is not None:
            reader.join(wait)
        with self._lock:
            return {path: log for path, log in self._logs.items() if path in oldest}

    def _read(self, state: tuple[int, ...], paths: list[str], since: int) -> None:
        """Ask git, and keep its answer if there is no newer commit. If it fails, it knows none."""
        import subprocess  # few facts name a file

        # No setting of the repository may start another program.
        settings = ("core.fsmonitor=false", "log.showSignature=false", "core.quotePath=false")
        command = ["git", "--literal-pathspecs", "-C", str(self._root)]
        for setting in settings:
            command += ["-c", setting]
        command += ["log", f"--since=@{since // 1_000_000}", "--format=%x00%ct %H"]
        command += ["--name-status", "--no-renames", "--", *paths]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=GIT_TIMEOUT_S,
                check=True,
            )
            output = done.stdout
        except (OSError, subprocess.SubprocessError):
            output = ""
        logs = {path: _PathLog(since, []) for path in paths}
        for entry in output.split("\0")[1:]:
            heading, *lines = entry.split("\n")
            at, _, commit = heading.partition(" ")
            for line in lines:
                letter, _, path = line.partition("\t")
                if path in logs:
                    logs[path].commits.append((int(at) * 1_000_000, commit, letter))
        with self._lock:
            if state == self._state:
                self._logs |= logs

    def _read_state(self) -> tuple[int, ...]:
        """Return times of files that git writes with every commit and checkout."""
        times = []
        for name in ("HEAD", "logs/HEAD", "index"):
            try:
                times.append((self._git_directory / name).stat().st_mtime_ns)
            except OSError:
                times.append(0)
        return tuple(times)

    @property
    def _git_directory(self) -> Path:
        directory = self._root / ".git"
        try:
            text = directory.read_text("utf-8")  # a linked work tree or a submodule
        except (OSError, UnicodeDecodeError):
            return directory
        return self._root / text.removeprefix("gitdir:").strip()

    def indexed(self, paths: Collection[str]) -> set[str]:
        """Return the paths that the index names. One that compresses names (version 4) has none."""
        try:
            index = (self._git_directory / "index").read_bytes() if paths else b""
        except OSError:
            return set()
        found = set()
        for path in paths:
            name = path.encode()
            if len(name).to_bytes(2) + name + b"\0" in index:  # as gitformat-index has an entry
                found.add(path)
        return found


_work_trees: dict[Path, _WorkTree] = {}


def remarks_on_files(
    root: Path | None,
    facts: Sequence[tuple[str, int]],
    *,
    limit: int = MAX_CHECKED_FACTS,
    wait: float | None = None,
) -> list[str]:
    """Return for each text, with the time of its writing, what became of the files that it names.

    It is empty for a text without a path, for files that did not change, and without a root. Only
    the first `limit` texts with a path are checked.
    """
    remarks = [""] * len(facts)
    if root is None:
        return remarks
    checked: dict[int, list[str]] = {}
    oldest: dict[str, int] = {}  # the time of the first fact that names a path
    for number, (text, written_at) in enumerate(facts):
        paths = paths_in(text)
        if paths and len(checked) < limit:
            checked[number] = paths
            for path in paths:
                oldest[path] = min(written_at, oldest.get(path, written_at))
    if not checked:
        return remarks
    work_tree = _work_trees.setdefault(root, _WorkTree(root))
    logs = work_tree.logs(oldest, WAIT_S if wait is None else wait)
    missing = [path for path in oldest if not (root / path).exists()]
    indexed = work_tree.indexed(missing)
    for number, paths in checked.items():
        written_at = facts[number][1]
        deleted = set(indexed)
        commits = set()
        for path in paths:
            for at, commit, letter in logs[path].commits if path in logs else ():
                if at > written_at:
                    commits.add(commit)
                    if letter == "D":
                        deleted.add(path)
        gone = [path for path in paths if path in missing and path in deleted]
        if gone:
            verb = "is" if len(gone) == 1 else "are"
            remarks[number] = f"{', '.join(gone)} {verb} gone"
        elif commits:
            remarks[number] = f"changed in {count_noun(len(commits), 'commit')} since"
    return remarks
