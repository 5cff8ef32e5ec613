"""A client's configuration file: read its servers, add or remove one, and keep a backup."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polymnia.clients import jsonc, toml
from polymnia.clients.table import Client
from polymnia.disk.replace import dated_name, replace_file
from polymnia.errors import BadInput

_BOM = "\ufeff"


def read_servers(client: Client, path: Path) -> dict[str, Any]:
    """Return the servers in the file by name; none if there is no file. Raise BadInput."""
    text = read_text(path)
    try:
        document = toml.parse(text) if client.form == "toml" else jsonc.parse(text)
    except BadInput as exc:
        raise _cannot(path, exc) from exc
    servers = document.get(client.key)
    return servers if isinstance(servers, dict) else {}


def change_servers(client: Client, path: Path, entries: Mapping[str, Any]) -> Path | None:
    """Write each entry under its name, or remove the name if the entry is None.

    Return where the former file is kept; None if there was none or nothing changed. Raise BadInput.
    """
    text = read_text(path)
    try:
        new = edit(client, text, entries)
    except BadInput as exc:
        raise _cannot(path, exc) from exc
    return replace_text(path, new)


def replace_text(path: Path, new: str) -> Path | None:
    """Replace the text of a configuration file, and keep the former file beside it.

    Return where; None if there was none or nothing changed. Raise BadInput.
    """
    if new == read_text(path):
        return None
    if path.exists() and path.read_bytes().startswith(_BOM.encode()):
        new = _BOM + new
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _back_up(path)
        replace_file(path, [new.encode()])
    except OSError as exc:
        raise BadInput(
            f"cannot write {path}: {exc.strerror}; use --print and add the entry yourself"
        ) from exc
    return kept


def edit(client: Client, text: str, entries: Mapping[str, Any]) -> str:
    """Return the text of a configuration file with the entries changed. Raise BadInput."""
    is_toml = client.form == "toml"
    put = toml.set_table if is_toml else jsonc.set_member
    remove = toml.remove_table if is_toml else jsonc.remove_member
    for name, entry in entries.items():
        path = (client.key, name)
        text = remove(text, path) if entry is None else put(text, path, entry)
    return text


def read_text(path: Path) -> str:
    """Return the text of a configuration file; empty if there is none. Raise BadInput."""
    try:
        return path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as exc:
        raise BadInput(
            f"cannot read {path}: {exc}; use --print and add the entry yourself"
        ) from exc


def _back_up(path: Path) -> Path | None:
    if not path.exists():
        return None
    kept = dated_name(path, ".bak-")
    shutil.copy2(path, kept)
    return kept


def _cannot(path: Path, exc: BadInput) -> BadInput:
    return BadInput(f"{path}: {exc}; correct it, or use --print and add the entry yourself")
