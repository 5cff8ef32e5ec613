"""Facts that name files, compared with the git work tree: is a file gone, did it change since?

Only what git confirms is said. A path that git never had may belong to another project, so a file
counts as gone only if a commit deleted it since the fact was written, or if it is still in the
index. Texts without a path cost nothing; all others of a reply cost two git commands at most.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from polymnia.search.terms import count_noun

# The facts of a reply that are checked, and how long git may take for all of them.
MAX_CHECKED_FACTS = 12
GIT_TIMEOUT_S = 0.25
_LOG = ("--format=%x00%ct", "--name-status", "--no-renames")
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


def remarks_on_files(
    root: Path | None,
    facts: Sequence[tuple[str, int]],
    *,
    limit: int = MAX_CHECKED_FACTS,
    timeout: float = GIT_TIMEOUT_S,
) -> list[str]:
    """Return for each text, with the time of its writing, what became of the files that it names.

    It is empty for a text without a path, for files that did not change, and without a root. Only
    the first `limit` texts with a path are checked.
    """
    remarks = [""] * len(facts)
    if root is None:
        return remarks
    checked: dict[int, list[str]] = {}
    for number, (text, _) in enumerate(facts):
        paths = paths_in(text)
        if paths and len(checked) < limit:
            checked[number] = paths
    if not checked:
        return remarks
    all_paths = sorted({path for paths in checked.values() for path in paths})
    git = partial(_git, root, timeout)
    since = min(facts[number][1] for number in checked)
    commits = _parse_log(git("log", f"--since=@{since // 1_000_000}", *_LOG, "--", *all_paths))
    missing = [path for path in all_paths if not (root / path).exists()]
    indexed = git("ls-files", "--", *missing).splitlines() if missing else []
    for number, paths in checked.items():
        since = facts[number][1]
        later = [files for at, files in commits if at > since]
        gone = []
        for path in paths:
            is_deleted = any(files.get(path) == "D" for files in later)
            if path in missing and (is_deleted or path in indexed):
                gone.append(path)
        changes = sum(not files.keys().isdisjoint(paths) for files in later)
        if gone:
            verb = "is" if len(gone) == 1 else "are"
            remarks[number] = f"{', '.join(gone)} {verb} gone"
        elif changes:
            remarks[number] = f"changed in {count_noun(changes, 'commit')} since"
    return remarks


def _parse_log(log: str) -> list[tuple[int, dict[str, str]]]:
    """Return when each commit was made, in microseconds, and a letter for each path in it."""
    commits = []
    for entry in log.split("\0")[1:]:
        at, *lines = entry.split("\n")
        files = {}
        for line in lines:
            letter, _, path = line.partition("\t")
            if path:
                files[path] = letter
        commits.append((int(at) * 1_000_000, files))
    return commits


def _git(root: Path, timeout: float, *arguments: str) -> str:
    """Return what git prints; nothing if it fails, is not installed, or takes too long."""
    import subprocess  # few facts name a file

    # No setting of the repository may start another program.
    settings = ("core.fsmonitor=false", "log.showSignature=false", "core.quotePath=false")
    options = [part for setting in settings for part in ("-c", setting)]
    command = ["git", *options, "--literal-pathspecs", "-C", str(root), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
