"""Back up and restore a store of any kind while servers use it."""

import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from time import gmtime, strftime

from polymnia.disk.files import (
    dated_name,
    fsync_directory,
    make_parent,
    map_os_errors,
    replace_file,
    sync_directory,
)
from polymnia.disk.lock import file_lock
from polymnia.errors import BadInput, SettingsError
from polymnia.stores.open import is_in_memory, open_store, store_kind

logger = logging.getLogger(__name__)

# A store that `restore` replaced keeps its name, followed by this and the time.
_KEPT = ".bak-"
# What a data directory holds: the registry, a copy of it as text, and the workspaces.
_REGISTRY, _REGISTRY_COPY = "_meta.db", "_meta.json"
_PARTS = ("projects", "archive")
# The names that `back_up_now` gives to copies.
_BACKUP_NAME = re.compile(r"\d{8}T\d{6}Z(-\d+)?(\.\w+)?$")


def back_up(url: str, target: str, *, overwrite: bool = False) -> None:
    """Write a checked copy of the store, as it is at one moment, to a new file or directory.

    Raise BadInput if the target exists and may not be overwritten, StoreError for a damaged store.
    """
    kind, path = _find_store(url)
    goal = Path(target)
    if goal.exists() and not overwrite:
        raise BadInput(f"{target} exists; choose another name, or overwrite it with --force")
    if goal.exists() and goal.resolve() == Path(path).resolve():
        raise BadInput(f"{target} is the store itself; choose another name")
    if kind != "directory" and not _has_kind(goal, kind):
        raise BadInput(
            f"{target} needs the suffix {Path(path).suffix} to be recognized as a backup of {path}"
        )
    make_parent(goal.resolve())
    with _new_path(goal) as new:
        _copy(kind, Path(path), new)
        with map_os_errors(target), sync_directory(goal.resolve().parent):
            if new.is_dir() and goal.exists():
                goal.rename(dated_name(goal, _KEPT))  # it cannot be replaced in one step
            if new.is_dir():
                new.rename(goal)
            elif overwrite:
                new.replace(goal)
            else:
                try:
                    goal.hardlink_to(new)
                except FileExistsError:
                    raise  # another process has created it meanwhile
                except OSError:  # not every file system has hard links
                    new.replace(goal)


def back_up_now(url: str, folder: str = "") -> Path:
    """Back the store up into its folder, named by the time. Return the copy. Raise as `back_up`."""
    _, path = _find_store(url)
    now = strftime("%Y%m%dT%H%M%SZ", gmtime())
    suffix = "" if Path(path).is_dir() else Path(path).suffix
    names = (f"{now}-{number}{suffix}" if number else f"{now}{suffix}" for number in count())
    place = backup_folder(url, folder)
    target = next(place / name for name in names if not (place / name).exists())
    back_up(url, str(target))
    return target


def find_backups(url: str, folder: str = "") -> list[Path]:
    """Return the copies of the store that `back_up_now` made, the latest first."""
    try:
        files = list(backup_folder(url, folder).iterdir())
    except (BadInput, OSError):
        return []
    backups = [file for file in files if _BACKUP_NAME.match(file.name)]
    return sorted(backups, key=lambda backup: backup.name, reverse=True)


def backup_folder(url: str, folder: str = "") -> Path:
    """Return the folder of the store's backups, by default `NAME.backups` beside it.

    Raise BadInput.
    """
    path = Path(_require_file(url)[1])
    return Path(folder) if folder else path.with_name(f"{path.name}.backups")


def restore(url: str, source: str) -> Path | None:
    """Replace the store by a checked copy of a backup. Return where the former store is, if any.

    Running servers of a JSONL file or binary log continue with the new content; others refuse every
    call until they are restarted. Raise BadInput, and StoreError for a damaged backup; then the
    store is unchanged.
    """
    kind, path = _require_file(url)
    backup_kind, backup = _find_backup(source)
    if backup_kind != kind:
        raise BadInput(
            f"{source} is not a backup of a store like {url}; "
            "move memories between them with `import`"
        )
    if kind == "directory":
        return _restore_directory(Path(backup), Path(path))
    target = Path(path).resolve()
    make_parent(target)
    with _new_path(target) as new:
        _copy(kind, Path(backup), new)
        if kind == "sqlite":
            from polymnia.stores.sqlite.backup import replace_store

            name = dated_name(target, _KEPT)
            return name if replace_store(new, target, name) else None
        kept = dated_name(target, _KEPT) if target.exists() else None
        with map_os_errors(str(target)), file_lock(target):
            if kept is not None:
                shutil.copy2(target, kept)
            replace_file(target, [new.read_bytes()])
        return kept


def _find_store(url: str) -> tuple[str, str]:
    """Return the kind and the path of a store. Raise BadInput if there is none."""
    kind, path = _require_file(url)
    if not (Path(path) / _REGISTRY if kind == "directory" else Path(path)).is_file():
        raise BadInput(f"there is no memory at {path}")
    return kind, path


def _find_backup(url: str) -> tuple[str, str]:
    """Return the kind and the path of a backup, or of a file that `restore` kept."""
    if not Path(url).is_file():
        return _find_store(url)
    return store_kind(Path(url).name.partition(_KEPT)[0])[0], url


def _has_kind(path: Path, kind: str) -> bool:
    try:
        return store_kind(str(path))[0] == kind
    except SettingsError:
        return False


def _require_file(url: str) -> tuple[str, str]:
    kind, path = store_kind(url)
    if is_in_memory(kind, path):
        raise BadInput("a store in memory has no file; name one with --store")
    if kind == "postgres":
        raise BadInput(
            "PostgreSQL has its own backups: use pg_dump, or continuous archiving; "
            "docs/scaling.md says how"
        )
    return kind, path


@contextmanager
def _new_path(goal: Path) -> Iterator[Path]:
    """Yield an unused path beside the target. After the block, remove what is still there."""
    new = goal.resolve().with_name(f"{goal.resolve().name}.{os.urandom(8).hex()}.new")
    try:
        yield new
    finally:
        if new.is_dir():
            shutil.rmtree(new)
        with suppress(OSError):  # a leftover file only takes space
            new.unlink(missing_ok=True)


def _copy(kind: str, source: Path, target: Path) -> None:
    """Copy a store of that kind and check the copy."""
    if kind == "directory":
        with map_os_errors(str(source)), file_lock(source / _REGISTRY):
            _copy_directory(source, target)
    elif kind == "sqlite":
        from polymnia.stores.sqlite.backup import copy_store

        copy_store(source, target)
    else:
        # Copy the bytes of a file under its lock, with damage that the store tolerates.
        with map_os_errors(str(source)), file_lock(source, create=False):
            replace_file(target, [source.read_bytes()])
        with closing(open_store(f"{kind}:{target}", read_only=True)) as store:
            with store.reading() as reader:
                reader.counts()  # raises if the file cannot be loaded at all
            for problem in store.check():
                logger.warning(
                    "copied with a problem: %s", problem.replace(str(target), str(source))
                )


def _copy_directory(source: Path, target: Path) -> None:
    """Copy the registry, then each workspace. The caller holds the lock of a directory in use."""
    from polymnia.stores.sqlite.backup import copy_database

    with map_os_errors(str(target)):
        target.mkdir(0o700)
        copy_database(source / _REGISTRY, target / _REGISTRY)
        if (source / _REGISTRY_COPY).is_file():
            replace_file(target / _REGISTRY_COPY, [(source / _REGISTRY_COPY).read_bytes()])
        for part in _PARTS:
            (target / part).mkdir(0o700)
            for file in sorted((source / part).glob("*.db")):
                copy_database(file, target / part / file.name)
            fsync_directory(target / part)
        fsync_directory(target)


def _restore_directory(backup: Path, directory: Path) -> Path | None:
    """Replace the contents, not the directory, which may be a mount point. The registry is last."""
    from polymnia.stores.sqlite.backup import replace_store

    make_parent(directory.resolve() / _REGISTRY)
    with _new_path(directory / "restore") as new, map_os_errors(str(directory)):
        _copy_directory(backup, new)
        kept = dated_name(directory / "before-restore", "-")
        with file_lock(directory / _REGISTRY):
            kept.mkdir(0o700)
            for name in (*_PARTS, _REGISTRY_COPY):
                if (directory / name).exists():
                    (directory / name).rename(kept / name)
                if (new / name).exists():
                    (new / name).rename(directory / name)
            existed = replace_store(new / _REGISTRY, directory / _REGISTRY, kept / _REGISTRY)
            fsync_directory(directory)
    if not existed:
        shutil.rmtree(kept)
    return kept if existed else None
