"""A client's configuration file: read its servers, add or remove one, and keep a backup."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from polymnia.clients import jsonc, toml
from polymnia.clients.table import ClientProgram
from polymnia.disk.files import dated_name, make_directory, replace_file
from polymnia.disk.lock import file_lock
from polymnia.errors import BadInput
from polymnia.settings import runtime_directory

_BOM = "\ufeff"
# The ending of a former file that was kept.
_KEPT = re.compile(r"\.bak-\d{8}T\d{6}Z(?:-\d+)?")


def read_servers(client: ClientProgram, path: Path) -> dict[str, Any]:
    """Return the servers in the file by name; none if there is no file. Raise BadInput."""
    text = read_text(path)
    try:
        document = toml.parse(text) if client.form == "toml" else jsonc.parse(text)
    except BadInput as exc:
        raise _cannot_edit(path, exc) from exc
    servers = document.get(client.key)
    return servers if isinstance(servers, dict) else {}


def change_servers(client: ClientProgram, path: Path, entries: Mapping[str, Any]) -> Path | None:
    """Write each entry under its name, or remove the name if the entry is None.

    Return where the former file is kept; None if there was none or nothing changed. Raise BadInput.
    """

    def change(text: str) -> str:
        try:
            return edit(client, text, entries)
        except BadInput as exc:
            raise _cannot_edit(path, exc) from exc

    return change_text(path, change)


def change_text(path: Path, change: Callable[[str], str]) -> Path | None:
    """Replace the text of a configuration file, and keep the former file beside it.

    Two of our processes never change a file at the same time. If another program wrote the file
    meanwhile, its text is changed instead. Return where the former file is kept; None if there was
    none or nothing changed. Raise BadInput.
    """
    try:
        make_directory(runtime_directory())
        with file_lock(runtime_directory() / "clients"):
            former = read_text(path)
            while True:
                new = change(former)
                if new == former:
                    return None
                present = read_text(path)
                if present == former:
                    break
                former = present
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = None
            if path.exists():
                kept = dated_name(path, ".bak-")
                shutil.copy2(path, kept)
                if path.read_bytes().startswith(_BOM.encode()):
                    new = _BOM + new
            replace_file(path, [new.encode()])
            # One former file is enough: others would gather beside the user's own.
            for earlier in path.parent.iterdir():
                if earlier != kept and _KEPT.fullmatch(earlier.name.removeprefix(path.name)):
                    earlier.unlink()
            return kept
    except OSError as exc:
        raise BadInput(
            f"cannot write {path}: {exc.strerror}; use --print and add the entry yourself"
        ) from exc


def edit(client: ClientProgram, text: str, entries: Mapping[str, Any]) -> str:
    """Return the text of a configuration file with the entries changed. Raise BadInput."""
    is_toml = client.form == "toml"
    put = toml.set_table if is_toml else jsonc.set_member
    remove = toml.remove_table if is_toml else jsonc.remove_member
    for name, entry in entries.items():
        path = (client.key, name)
        text = remove(text, path) if entry is None else put(text, path, entry)
    if is_toml:
        return text
    document = jsonc.parse(text)
    # A file for servers alone keeps the empty object: Copilot CLI refuses one without it.
    is_empty = document.get(client.key) == {} and len(document) > 1
    return jsonc.remove_member(text, (client.key,)) if is_empty else text


def read_text(path: Path) -> str:
    """Return the text of a configuration file; empty if there is none. Raise BadInput."""
    try:
        return path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as exc:
        raise BadInput(
            f"cannot read {path}: {exc}; use --print and add the entry yourself"
        ) from exc


def _cannot_edit(path: Path, exc: BadInput) -> BadInput:
    return BadInput(f"{path}: {exc}; correct it, or use --print and add the entry yourself")
